import { issueToken } from '../../features/oauth/oauth.rest.ts';
import { statusName } from '../../features/transactions/type-codes.rules.ts';
import { notifyTransaction } from '../../features/webhook/webhook.rest.ts';
import { STATUS, type TransactionCollection, type TransactionStatus } from '../../tables/transaction-content.ts';
import type { DemoFile } from './demo.ts';

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
