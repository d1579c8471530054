import { randomUUID } from 'node:crypto';
import { request } from 'undici';
import { atRate } from '../lib/at-rate.ts';

const REGISTER = `mutation ($input: RegisterTransactionInput!) {
  registerTransaction(input: $input) { __typename }
}`;

/** Registers so many new transactions and gives their ids. */
export async function register(url: string, token: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  for (const id of ids) {
    const input = { id, collection: 'NODE_TRANSACTIONS', type: 1 };
    const { body } = await request(`${url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query: REGISTER, variables: { input } }),
    });
    const text = await body.text();
    if (!text.includes('"__typename":"Transaction"')) throw new Error(`not registered: ${text}`);
  }
  return ids;
}

interface NotifyOptions {
  url: string;
  webhook: { username: string; password: string };
  ids: readonly string[];
  perSecond: number;
}

/** Notifies of each transaction once, at an even rate; gives `performance.now()` of each 200. */
export async function notifyAll({ url, webhook, ids, perSecond }: NotifyOptions): Promise<Map<string, number>> {
  const basic = Buffer.from(`${webhook.username}:${webhook.password}`).toString('base64');
  const answered = new Map<string, number>();
  const notify = async (id = '') => {
    const at = new Date().toISOString();
    const { statusCode, body } = await request(`${url}/v2/webhooks/custodial`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...NOTIFICATION, id, created_at: at, updated_at: at }),
    });
    answered.set(id, performance.now());
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`refused: ${statusCode} ${text}`);
  };
  await atRate(perSecond, ids.length, (index) => notify(ids[index]));
  return answered;
}

const NOTIFICATION = { type: 1, status: 3, transaction_hash: '0xfeed', contract_address: '0xc0ffee', gas_used: 21_000 };
