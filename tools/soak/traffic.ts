import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { basic } from '../exchanges/values.ts';
import type { Call, Caller, Json, Reply } from './caller.ts';
import type { World } from './world.ts';

/** One kind of traffic, and how often it comes compared with the others. */
export interface Kind {
  name: string;
  weight: number;
  ask(): Promise<unknown>;
}

/** The traffic on an instance, and what its answers acknowledged. */
export interface Traffic {
  /** All kinds but those of subscribers. */
  kinds: readonly Kind[];
  /** Accepted notifications that say something new: the number of changes that the log must have. */
  changes: number;
  /** Users and rules that were acknowledged as created. */
  made: { users: number; rules: number };
  token: string;
  /** Gets another access token of the client, which all kinds use from then on. */
  renewToken(): Promise<void>;
}

const ACCOUNTS = '{ accounts(first: 10) { edges { node { id name } } pageInfo { hasNextPage endCursor } } }';
const TRANSACTIONS =
  '{ transactions(first: 10) { edges { node { id status } } } gasFees { networkId gasPrice error } }';
const REGISTER = 'mutation ($input: RegisterTransactionInput!) { registerTransaction(input: $input) { __typename } }';
const STATUSES = [1, 2, 3];
const BEGUN_MS = Date.UTC(2026, 0, 1);
const PAGES = 3;
const BULK_USERS = 20;
const RULES = 20;
const REPEAT_EVERY = 10;
const TICK_MS = 25;
/** With so many requests in flight nothing more is sent: the instance is behind, and the verdict tells its pace. */
const MOST_AT_ONCE = 64;

/** Returns the traffic of all kinds on an instance. Its state is what answers gave, as a client's would be. */
export function trafficOn(caller: Caller, { demo }: World): Traffic {
  const waiting: { id: string; step: number }[] = [];
  const rules: string[] = [];
  let refreshToken: string | undefined;

  const call = (kind: string, path: string, expected: number, rest: Partial<Call> = {}): Promise<Reply | undefined> =>
    caller.call({ kind, method: rest.json === undefined ? 'GET' : 'POST', path, expected, ...rest });
  const token = (kind: string, parameters: object) =>
    call(kind, '/v2/oauth/token', 200, { json: { ...parameters, ...demo.client } });
  const graphql = (kind: string, query: string, variables?: object, faultOf = errorsOf) =>
    call(kind, '/graphql', 200, { token: traffic.token, json: { query, variables }, faultOf });
  const toService = (name: string) => ({ token: traffic.token, headers: { 'x-target-server': name } });
  const rule = () => ({ ...toService('wallet-rules'), json: limitRule(demo) });

  async function notify(kind: string): Promise<void> {
    const next = waiting.shift();
    if (next === undefined) return register('graphql.register');
    const headers = { authorization: basic(demo.webhook.username, demo.webhook.password) };
    const times = randomInt(REPEAT_EVERY) === 0 ? 2 : 1;
    for (let time = 0; time < times; time += 1) {
      const answer = await call(kind, '/v2/webhooks/custodial', 200, {
        headers,
        json: notification(next.id, next.step),
      });
      // What is sent again says nothing new.
      if (answer && time === 0) traffic.changes += 1;
    }
    next.step += 1;
    if (next.step < STATUSES.length) waiting.push(next);
  }

  async function register(kind: string): Promise<void> {
    const id = randomUUID();
    const faultOf = ({ data }: Json) =>
      data?.registerTransaction?.__typename === 'Transaction' ? undefined : 'not registered';
    const input = { id, collection: 'USER_TRANSACTIONS', type: 1 };
    if (await graphql(kind, REGISTER, { input }, faultOf)) waiting.push({ id, step: 0 });
  }

  async function login(kind: string, parameters: object): Promise<void> {
    const answer = await token(kind, parameters);
    if (answer) refreshToken = answer.json.refresh_token;
  }

  async function refresh(kind: string): Promise<void> {
    const spent = refreshToken;
    refreshToken = undefined;
    if (spent !== undefined) await login(kind, { grant_type: 'refresh_token', refresh_token: spent });
  }

  async function createRule(kind: string): Promise<void> {
    const answer = await call(kind, `/v1/wallets/${demo.wallet_id}/rules`, 201, rule());
    if (answer) traffic.made.rules += 1;
    const location = answer?.headers.location;
    if (typeof location === 'string' && rules.length < RULES) rules.push(location);
  }

  async function replaceRule(kind: string): Promise<void> {
    const path = rules[randomInt(Math.max(1, rules.length))];
    if (path === undefined) return createRule('rule.create');
    await call(kind, path, 200, { method: 'PUT', ...rule() });
  }

  async function migrate(kind: string): Promise<void> {
    const sent = { token: traffic.token, json: newUser() };
    if (await call(kind, '/v2/users/migrate/with-wallet', 201, sent)) traffic.made.users += 1;
  }

  async function migrateMany(kind: string): Promise<void> {
    const json = { users: Array.from({ length: BULK_USERS }, newUser) };
    const answer = await call(kind, '/v2/users/migrate/with-wallet/bulk', 200, { token: traffic.token, json });
    if (answer) traffic.made.users += Number(answer.json.success);
  }

  function listByTool(kind: string) {
    const params = { name: 'list_accounts', arguments: { limit: 5 } };
    return call(kind, '/v2/mcp', 200, {
      token: demo.client.client_secret,
      headers: { accept: 'application/json, text/event-stream' },
      json: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
      faultOf: ({ result }) => (result?.structuredContent ? undefined : 'no structured content'),
    });
  }

  /** Sends credentials that nobody has, others each time: the same ones would be throttled. */
  function sendWrong(kind: string) {
    const [client_id, client_secret] = [randomUUID(), randomUUID()];
    const wrong = [
      () =>
        call(kind, '/v2/oauth/token', 401, { json: { grant_type: 'client_credentials', client_id, client_secret } }),
      () => call(kind, '/v1/accounts', 401, { ...toService('accounts'), token: `${traffic.token}x` }),
      () =>
        call(kind, '/v2/webhooks/custodial', 401, {
          headers: { authorization: basic('x', 'x') },
          json: notification('x', 0),
        }),
    ];
    return wrong[randomInt(wrong.length)]?.();
  }

  const kinds: Record<string, readonly [weight: number, ask: (kind: string) => unknown]> = {
    accounts: [
      20,
      (kind) => call(kind, `/v1/accounts?limit=10&page=${1 + randomInt(PAGES)}`, 200, toService('accounts')),
    ],
    webhook: [24, notify],
    'graphql.register': [8, register],
    'graphql.accounts': [8, (kind) => graphql(kind, ACCOUNTS)],
    'graphql.transactions': [6, (kind) => graphql(kind, TRANSACTIONS)],
    'token.client': [4, () => traffic.renewToken()],
    'token.refresh': [3, refresh],
    'token.password': [1, (kind) => login(kind, { grant_type: 'password', ...demo.supervisor })],
    'rule.create': [1, createRule],
    'rule.replace': [3, replaceRule],
    migrate: [4, migrate],
    'migrate.bulk': [1, migrateMany],
    'gas.fee': [4, (kind) => call(kind, '/v2/blockchain/gas-fee', 200, { faultOf: priceFault })],
    mcp: [3, listByTool],
    health: [4, (kind) => call(kind, '/health', 200)],
    'wrong.credentials': [3, sendWrong],
  };
  const traffic: Traffic = {
    kinds: Object.entries(kinds).map(([name, [weight, ask]]) => ({ name, weight, ask: async () => ask(name) })),
    changes: 0,
    made: { users: 0, rules: 0 },
    token: '',
    async renewToken() {
      const answer = await token('token.client', { grant_type: 'client_credentials' });
      if (answer) traffic.token = answer.json.access_token;
    },
  };
  return traffic;
}

/** Asks `rate` times a second, of kinds by their weight, until `signal` aborts and all have been answered. */
export async function paced(kinds: readonly Kind[], rate: number, signal: AbortSignal): Promise<void> {
  // A kind is as often in the list as its weight says.
  const weighted = kinds.flatMap((kind) => Array.from({ length: kind.weight }, () => kind));
  const asking = new Set<Promise<unknown>>();
  let due = 0;
  for (let last = performance.now(); !signal.aborted; ) {
    await delay(TICK_MS);
    const now = performance.now();
    due += ((now - last) / 1_000) * rate;
    last = now;
    for (; due >= 1; due -= 1) {
      if (asking.size >= MOST_AT_ONCE) continue;
      const kind = weighted[randomInt(weighted.length)];
      if (!kind) throw new Error('there are kinds');
      const asked = kind.ask().finally(() => asking.delete(asked));
      asking.add(asked);
    }
  }
  await Promise.all(asking);
}

/** Returns a notification in the size of a real one. */
function notification(id: string, step: number): object {
  const at = (seconds: number) => new Date(BEGUN_MS + seconds * 1_000).toISOString();
  const times = { created_at: at(0), updated_at: at(step + 1) };
  return { id, type: 1, status: STATUSES[step], ...times, transaction_hash: `0x${id}` };
}

function newUser(): object {
  const id = randomUUID();
  return { wallet_address: `0x${id}`, email: `${id}@example.com` };
}

function limitRule({ network_id, network_currency_id }: World['demo']): object {
  const limit = { max_amount: 1 + randomInt(1_000), time_period: 'day', time_period_value: 1 };
  const type = 'permissionless_transfer_limit';
  return { name: 'Daily limit', type, network_id, network_currency_id, permissionless_transfer_limit_rule: limit };
}

function errorsOf(json: Json): string | undefined {
  return json?.errors === undefined ? undefined : 'errors';
}

function priceFault({ data }: Json): string | undefined {
  const isPriced = ({ error }: Json) => error === undefined;
  return data.length === 2 && data.every(isPriced) ? undefined : 'a network is away';
}
