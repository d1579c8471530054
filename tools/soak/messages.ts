import { randomInt, randomUUID } from 'node:crypto';
import type { Call, Json } from './caller.ts';

export const ACCOUNTS = '{ accounts(first: 10) { edges { node { id name } } pageInfo { hasNextPage endCursor } } }';
export const TRANSACTIONS =
  '{ transactions(first: 10) { edges { node { id status } } } gasFees { networkId gasPrice error } }';
export const REGISTER = `mutation ($input: RegisterTransactionInput!) {
  registerTransaction(input: $input) { __typename }
}`;
export const STATUSES = [1, 2, 3];
const BEGUN_MS = Date.UTC(2026, 0, 1);

/** A transaction, and how many notifications of it were sent. */
export interface Notified {
  id: string;
  step: number;
}

/** The next notification of a transaction, in the size of a real one. */
export function notification({ id, step }: Notified): object {
  const at = (seconds: number) => new Date(BEGUN_MS + seconds * 1_000).toISOString();
  return {
    id,
    type: 1,
    status: STATUSES[step],
    created_at: at(0),
    updated_at: at(step + 1),
    transaction_hash: `0x${id}`,
  };
}

/** A user nobody has migrated yet. */
export function newUser() {
  const id = randomUUID();
  return { wallet_address: `0x${id}`, email: `${id}@example.com` };
}

/** What is wrong with an answer of GraphQL. */
export function errorsOf(json: Json): string | undefined {
  return json?.errors === undefined ? undefined : 'errors';
}

/** Whether a network's fee is known. */
export function isPriced(fee: Json): boolean {
  return fee.error === undefined;
}

/** A limit of transfers, as a rule of a wallet. */
export function limitRule({ network_id, network_currency_id }: { network_id: string; network_currency_id: string }) {
  return {
    name: 'Daily limit',
    type: 'permissionless_transfer_limit',
    network_id,
    network_currency_id,
    permissionless_transfer_limit_rule: { max_amount: 1 + randomInt(1_000), time_period: 'day', time_period_value: 1 },
  };
}

/** Calls with credentials that nobody has: 401. */
export function wrongCalls(token: string): Omit<Call, 'kind' | 'expected'>[] {
  const client = { client_id: randomUUID(), client_secret: randomUUID() };
  return [
    { method: 'POST', path: '/v2/oauth/token', json: { grant_type: 'client_credentials', ...client } },
    { method: 'GET', path: '/v1/accounts', token: `${token}x`, headers: { 'x-target-server': 'accounts' } },
    {
      method: 'POST',
      path: '/v2/webhooks/custodial',
      headers: { authorization: 'Basic eDp4' },
      json: notification({ id: 'x', step: 0 }),
    },
  ];
}
