import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { getGraphql, sendMcpMessage, showConsole, showSwagger } from '../../api/rest/system.rest.ts';
import { listAccounts } from '../../features/accounts/accounts.rest.ts';
import { issueToken } from '../../features/oauth/oauth.rest.ts';
import { statusName } from '../../features/transactions/type-codes.rules.ts';
import { notifyTransaction } from '../../features/webhook/webhook.rest.ts';
import { makeFolder, writeWhole } from '../../lib/files.ts';
import { demoPath, notWhole, PARTS, type Secrets } from '../../platform/config/secrets.ts';
import {
  STATUS,
  TRANSACTION_COLLECTIONS,
  type TransactionCollection,
  type TransactionStatus,
} from '../../tables/transaction-content.ts';

const id = z.string();

/** What both nodes of the demo have. */
const nodeSchema = z.object({
  node_id: id,
  account_id: id,
  wallet_id: id,
  supervisor: z.object({ username: z.string(), password: z.string() }),
  client: z.object({ client_id: id, client_secret: z.string() }),
});

/** The schema of the generated values: `demo.json` without the addresses and the webhook credentials. */
export const demoSchema = nodeSchema.extend({
  /** The id of the embedded database that contains the demo; undefined for a demo on a database server. */
  instance_id: id.optional(),
  user_id: id,
  asset_id: id,
  network_id: id,
  second_network_id: id,
  other_chain_network_id: id,
  network_currency_id: id,
  target_wallet_id: id,
  transactions: z.record(z.enum(TRANSACTION_COLLECTIONS), id),
  other_node: nodeSchema,
  /** The client for signing in to the console; earlier releases have generated none. */
  console_client_id: id.default(() => randomUUID()),
});

export type Demo = z.output<typeof demoSchema>;
/** The content of `demo.json`: the demo, and how to reach the instance that has it. */
export interface DemoFile extends Demo {
  base_url: string;
  graphql_url: string;
  mcp_url: string;
  console_url: string;
  webhook: { username: string; password: string };
}
/** One of the two nodes of the demo. */
export type DemoNode = z.output<typeof nodeSchema>;

/** Returns a new demo, with new ids and credentials. */
export function newDemo(): Demo {
  const transactions = TRANSACTION_COLLECTIONS.map((collection) => [collection, randomUUID()]);
  return {
    ...newNode(),
    user_id: randomUUID(),
    asset_id: randomUUID(),
    network_id: randomUUID(),
    second_network_id: randomUUID(),
    other_chain_network_id: randomUUID(),
    network_currency_id: randomUUID(),
    target_wallet_id: randomUUID(),
    transactions: demoSchema.shape.transactions.parse(Object.fromEntries(transactions)),
    other_node: newNode(),
    console_client_id: randomUUID(),
  };
}

function newNode(): DemoNode {
  return {
    node_id: randomUUID(),
    account_id: randomUUID(),
    wallet_id: randomUUID(),
    supervisor: { username: 'admin', password: randomBytes(15).toString('base64url') },
    client: { client_id: randomUUID(), client_secret: randomBytes(32).toString('base64url') },
  };
}

/**
 * Reads the demo that was generated at the first start; undefined if there is none yet.
 * @throws StartError for a damaged file.
 */
export function readDemo(dataDir: string): Demo | undefined {
  const path = demoPath(dataDir);
  if (!existsSync(path)) return undefined;
  const text = readFileSync(path, 'utf8');
  try {
    return demoSchema.parse(JSON.parse(text));
  } catch {
    throw notWhole(dataDir, `${PARTS.demo} is damaged`);
  }
}

/** Returns the address at which a supervisor of the demo signs in to the console. */
function consoleUrl(baseUrl: string, { console_client_id: clientId }: Demo): string {
  return `${baseUrl}${showConsole.path.replace('**', '')}?client=${clientId}`;
}

/** Writes the file again, with mode 0600 and the current addresses and webhook credentials. */
export function writeDemo(
  dataDir: string,
  demo: Demo,
  { baseUrl, webhook: { username, password } }: { baseUrl: string; webhook: Secrets['webhook'] },
): void {
  const { transactions, other_node, console_client_id, ...sharedMembers } = demo;
  const document: DemoFile = {
    base_url: baseUrl,
    graphql_url: `${baseUrl}${getGraphql.path}`,
    mcp_url: `${baseUrl}${sendMcpMessage.path}`,
    console_url: consoleUrl(baseUrl, demo),
    console_client_id,
    ...sharedMembers,
    webhook: { username, password: password.current },
    transactions,
    other_node,
  };
  makeFolder(dataDir);
  writeWhole(demoPath(dataDir), `${JSON.stringify(document, null, 2)}\n`);
}

const PROGRAM = resolve(import.meta.dirname, '../../../bin/portcullis');

/**
 * Returns the text that an embedded run prints at its start: the addresses, the credentials, a header to paste into
 * GraphiQL, and three commands to paste into a POSIX shell.
 */
export function greeting({
  demo,
  token,
  hasConsole,
  baseUrl,
  adminUrl,
  dataDir,
  webhook,
  startedInMs,
}: {
  demo: Demo;
  /** An access token of the demo's client; undefined if the client no longer exists. */
  token: string | undefined;
  baseUrl: string;
  adminUrl: string;
  dataDir: string;
  hasConsole: boolean;
  webhook: Secrets['webhook'];
  startedInMs: number;
}): string {
  const transaction = demo.transactions.token_transactions;
  return `
Portcullis is up: ${baseUrl} (in ${(startedInMs / 1000).toFixed(1)} s)
${hasConsole ? `  Console, for the supervisor:\n    ${consoleUrl(baseUrl, demo)}\n` : ''}  GraphiQL    ${baseUrl}${getGraphql.path}
  Swagger UI  ${baseUrl}${showSwagger.path.replace('*', '')}
  MCP         ${baseUrl}${sendMcpMessage.path} (Bearer: the client's secret)
  Metrics     ${adminUrl}/metrics
  Client      ${demo.client.client_id}
              ${demo.client.client_secret}
  Supervisor  ${demo.supervisor.username} / ${demo.supervisor.password}
  Webhook     ${webhook.username} / ${webhook.password.current}
  Demo file   ${dataDir}/demo.json

The embedded database survives a crash of the process, but not of the machine:
it writes without fsync. Production runs on PostgreSQL, Redis and Kafka.

Paste this into GraphiQL, under Headers; it is good for an hour:

{"Authorization": "Bearer ${token ?? '…'}"}

1. Get a token:

TOKEN=$(curl -s ${baseUrl}${issueToken.path} \\
  -H 'content-type: application/json' -d '{
    "grant_type": "client_credentials",
    "client_id": "${demo.client.client_id}",
    "client_secret": "${demo.client.client_secret}"
  }' | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/'); echo "$TOKEN"

2. List accounts:

curl -s '${baseUrl}${listAccounts.path}?limit=3' \\
  -H "authorization: Bearer $TOKEN"; echo

3. Simulate a transaction while a subscriber waits, and watch it arrive:

({ sleep 1; DATA_DIR=${shellWord(dataDir)} \\
  ${shellWord(PROGRAM)} simulate transaction; } &
curl -sN ${baseUrl}${getGraphql.path} \\
  -H "authorization: Bearer $TOKEN" -H 'accept: text/event-stream' \\
  -H 'content-type: application/json' -d '{
    "variables": {"id": "${transaction}"}, "query":
    "subscription ($id: ID!) {transaction(id: $id) {status transactionHash}}"
  }'; wait)

`;
}

/** Returns a text as one word of a POSIX shell, quoted only if needed. */
function shellWord(text: string): string {
  return /^[\w.:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const REGISTER = `mutation ($input: RegisterTransactionInput!) {
  registerTransaction(input: $input) { __typename ... on Error { message } }
}`;

/** The type of simulated transactions, which every collection has. */
const TYPE = 1;

/** A request of a simulation, and its response. */
export interface SimulationStep {
  step: string;
  accepted: boolean;
  http_status: number;
  response: string;
}

/** Registers a transaction at the running instance, with a token of the demo's client. */
export async function registerByDemo(
  { base_url, graphql_url, client }: DemoFile,
  id: string,
  collection: TransactionCollection,
): Promise<SimulationStep> {
  const issued = await postJson(`${base_url}${issueToken.path}`, undefined, {
    grant_type: 'client_credentials',
    ...client,
  });
  const token: { access_token?: string } = JSON.parse(issued.response);
  const registered = await postJson(graphql_url, `Bearer ${token.access_token}`, {
    query: REGISTER,
    variables: { input: { id, collection: collection.toUpperCase(), type: TYPE } },
  });
  const accepted = registered.response.includes('"__typename":"Transaction"');
  return { step: `register in ${collection}`, accepted, ...registered };
}

/** Posts a notification with the current time to the webhook of the running instance. */
export async function notify(
  { base_url, webhook: { username, password } }: DemoFile,
  id: string,
  status: TransactionStatus,
): Promise<SimulationStep> {
  const now = new Date().toISOString();
  const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const posted = await postJson(`${base_url}${notifyTransaction.path}`, basic, {
    ...{ id, type: TYPE, status, created_at: now, updated_at: now },
    ...(status === STATUS.Started ? {} : { transaction_hash: '0xfeed', contract_address: '0xc0ffee' }),
    ...(status === STATUS.Error ? { error: 'simulated' } : {}),
  });
  return { step: `notify ${statusName(status)}`, accepted: posted.http_status === 200, ...posted };
}

async function postJson(url: string, authorization: string | undefined, body: object) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
    body: JSON.stringify(body),
  });
  return { http_status: response.status, response: await response.text() };
}
