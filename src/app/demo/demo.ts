import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { getGraphql } from '../../api/rest/graphql.rest.ts';
import { sendMcpMessage } from '../../api/rest/mcp.rest.ts';
import { showConsole } from '../../api/rest/static-files.rest.ts';
import { makeFolder, writeWhole } from '../../lib/files.ts';
import { demoPath, notWhole, PARTS, type Secrets } from '../../platform/config/secrets.ts';
import { TRANSACTION_COLLECTIONS } from '../../tables/transaction-content.ts';

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
export function consoleUrl(baseUrl: string, { console_client_id: clientId }: Demo): string {
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
