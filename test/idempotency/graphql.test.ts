import { randomUUID } from 'node:crypto';
import { print } from 'graphql';
import { createClient } from 'graphql-ws';
import { beforeAll, describe, expect, it } from 'vitest';
import WebSocket from 'ws';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import {
  AssignNetworkDocument,
  CreateWalletRuleDocument,
  MigrateUserDocument,
  MigrateUsersDocument,
  ReplaceWalletRuleDocument,
} from '../graphql/generated/graphql.ts';
import { browserForm, sendRaw } from '../support/graphql/upload-requests.ts';
import { type Answer, startEmbedded, usePortcullis } from '../support/harness.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { literal } from '../support/wallet-rules/rules.ts';

interface Operation {
  query: string;
  variables?: Record<string, unknown>;
  operationName?: string;
}

const p = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await p.clientToken();
});

const keyed = (key: string) => ({ 'idempotency-key': key });

function send(json: unknown, key: string | undefined = undefined, by = token): Promise<Answer> {
  return p.call('POST', '/graphql', { token: by, json, headers: key === undefined ? {} : keyed(key) });
}

const NEW_TABLES = [
  'wallet_rules',
  'wallet_rule_versions',
  'wallet_networks',
  'users',
  'migrations',
  'transactions',
] as const;

/** The number of rows of each table that the mutations write. */
async function counts(): Promise<number[]> {
  return Promise.all(
    NEW_TABLES.map(async (table) => {
      const found = await rows(p).run((k) => k.selectFrom(table).select(({ fn }) => fn.countAll<string>().as('count')));
      return Number(found[0]?.count);
    }),
  );
}

function rule(name = 'Limit') {
  const permissionlessTransferLimitRule = { maxAmount: '1000', timePeriod: 'day', timePeriodValue: 1 };
  const ids = { networkId: randomUUID(), networkCurrencyId: randomUUID() };
  return { name, type: 'permissionless_transfer_limit', ...ids, permissionlessTransferLimitRule };
}

function user() {
  const id = randomUUID();
  return { walletAddress: `0x${id}`, email: `${id}@example.com` };
}

const createRule = (walletId = p.demo.wallet_id, input: object = rule()): Operation => ({
  query: print(CreateWalletRuleDocument),
  variables: { walletId, input },
});
const migrate = (input: object = user()): Operation => ({ query: print(MigrateUserDocument), variables: { input } });
const register = (input: object = {}): Operation => ({
  query: `mutation ($input: RegisterTransactionInput!) { result: registerTransaction(input: $input) {
    __typename ... on Transaction { id } ... on DuplicateError { reason } } }`,
  variables: { input: { id: randomUUID(), collection: 'TOKEN_TRANSACTIONS', type: 1, ...input } },
});

async function createdRule(): Promise<string> {
  return (await send(createRule())).json.data.result.id;
}

/** The six mutations that take a key: an operation of each that succeeds, and another one. */
const MUTATIONS: Record<string, () => Promise<[Operation, Operation]>> = {
  createWalletRule: async () => [createRule(), createRule()],
  replaceWalletRule: async () => {
    const id = await createdRule();
    const of = (): Operation => ({
      query: print(ReplaceWalletRuleDocument),
      variables: { walletId: p.demo.wallet_id, id, input: rule('Replaced') },
    });
    return [of(), of()];
  },
  assignNetwork: async () => {
    const of = (networkId: string): Operation => ({
      query: print(AssignNetworkDocument),
      variables: { walletId: p.demo.wallet_id, networkId },
    });
    return [of(p.demo.second_network_id), of(p.demo.network_id)];
  },
  migrateUser: async () => [migrate(), migrate()],
  migrateUsers: async () => {
    const of = (): Operation => ({ query: print(MigrateUsersDocument), variables: { users: [user(), user()] } });
    return [of(), of()];
  },
  registerTransaction: async () => [register(), register()],
};
const CONFLICT = { errors: [{ message: 'idempotency_conflict', extensions: { code: 'IDEMPOTENCY_CONFLICT' } }] };

describe('D7-14 D7-06: a mutation with an idempotency key', () => {
  it.each(Object.keys(MUTATIONS))(
    '%s runs once; a repeat gets the stored response, and another body with the key is a 409',
    async (name) => {
      const [operation, other] = (await MUTATIONS[name]?.()) ?? [];
      const key = randomUUID();
      const first = await send(operation, key);
      expect([first.status, first.json.errors]).toEqual([200, undefined]);
      expect(first.json.data.result.__typename).not.toMatch(/Error$/);
      const before = await counts();
      for (const _again of [1, 2]) {
        const again = await send(operation, key);
        expect([again.status, again.text]).toEqual([200, first.text]);
        expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'));
      }
      const conflict = await send(other, key);
      expect(conflict).toMatchObject({ status: 409, json: CONFLICT });
      const selection = operation?.query.replace('__typename', '__typename again: __typename');
      expect((await send({ ...operation, query: selection }, key)).status).toBe(409);
      expect(await counts()).toEqual(before);
    },
  );

  it('a key belongs to one caller and one mutation', async () => {
    const key = randomUUID();
    const another = await addClient(p, { scopes: ['wallet-rules:write'] });
    const tokens = [token, await p.loginToken(), await p.clientToken(another)];
    for (const by of tokens) expect((await send(createRule(), key, by)).json.data.result.__typename).toBe('WalletRule');
    expect((await send(migrate(), key)).json.data.result.__typename).toBe('User');
  });

  it('when a mutation is repeated concurrently, it runs once and all get its response', async () => {
    const [operation, key, before] = [createRule(), randomUUID(), await counts()];
    const answers = await Promise.all(Array.from({ length: 6 }, () => send(operation, key)));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect((await counts())[0]).toBe((before[0] ?? 0) + 1);
  });

  it('a repeat returns the fields of the first response, with every digit, even if the data has changed since', async () => {
    const amount = '12345678901234567890.123456789';
    const ruleLogic = { field: 'balance', op: 'lt', value: literal(amount), network_currency_id: randomUUID() };
    const autoTransferRule = { type: 'auto', ruleLogic, amount: literal(amount), targetWalletId: randomUUID() };
    const { permissionlessTransferLimitRule: _limit, ...input } = rule();
    const variables = { walletId: p.demo.wallet_id, input: { ...input, type: 'auto_transfer', autoTransferRule } };
    const query = `mutation Twice($walletId: ID!, $input: WalletRuleInput!) { ...Made }
      query Other { __typename }
      fragment Made on Mutation { __typename made: createWalletRule(walletId: $walletId, input: $input) { ... on WalletRule {
        id version autoTransferRule { ruleLogic amount } versions(first: 5) { totalCount edges { node { version } } } } } }`;
    const [operation, key] = [{ query, variables, operationName: 'Twice' }, randomUUID()];
    const first = await send(operation, key);
    expect(first.text).toContain(`"value":${amount}`);
    expect(first.json.data.made).toMatchObject({ version: 1, versions: { totalCount: 1 } });
    const { id } = first.json.data.made;
    const replaced = { walletId: p.demo.wallet_id, id, input: rule() };
    await send({ query: print(ReplaceWalletRuleDocument), variables: replaced });
    expect((await send(operation, key)).text).toBe(first.text);
  });

  it('a response sent as an event stream is repeated unchanged', async () => {
    const [operation, key] = [createRule(), randomUUID()];
    const headers = { ...keyed(key), accept: 'text/event-stream' };
    const first = await p.call('POST', '/graphql', { token, json: operation, headers });
    expect(first.text).toContain('WalletRule');
    expect((await p.call('POST', '/graphql', { token, json: operation, headers })).text).toBe(first.text);
    expect(first.text).toContain((await send(operation, key)).text);
  });
});

describe('D7-14: which failures an idempotency key stores', () => {
  it.each([
    ['duplicate_email', (of: ReturnType<typeof user>) => ({ ...user(), email: of.email })],
    ['missing_email_and_external_id', () => ({ ...user(), email: ' ' })],
  ])('stores %s, a documented reason of a user migration', async (_reason, inputOf) => {
    const existing = user();
    await send(migrate(existing));
    const [operation, key] = [migrate(inputOf(existing)), randomUUID()];
    const first = await send(operation, key);
    expect(first.json.data.result.__typename).toMatch(/^(Duplicate|Validation)Error$/);
    const before = await counts();
    expect((await send(operation, key)).text).toBe(first.text);
    expect((await send(migrate(), key)).status).toBe(409);
    expect(await counts()).toEqual(before);
  });

  it.each<[name: string, refused: () => Promise<Operation> | Operation, type: string]>([
    ['a wallet that does not exist', () => createRule(randomUUID()), 'NotFoundError'],
    ['an invalid rule', () => createRule(undefined, { ...rule(), type: 'x' }), 'ValidationError'],
    [
      'an outdated version',
      async () => {
        const variables = { walletId: p.demo.wallet_id, id: await createdRule(), input: rule(), ifVersion: 7 };
        return { query: print(ReplaceWalletRuleDocument), variables };
      },
      'PreconditionError',
    ],
    [
      'a duplicate transaction id',
      () => register({ id: p.demo.transactions.token_transactions, collection: 'OTC_TRANSACTIONS' }),
      'DuplicateError',
    ],
  ])('stores nothing for %s: the corrected mutation succeeds with the same key', async (_name, refusedOf, type) => {
    const key = randomUUID();
    const refused = await refusedOf();
    const before = await counts();
    for (const _again of [1, 2]) expect((await send(refused, key)).json.data.result.__typename).toBe(type);
    expect(await counts()).toEqual(before);
    const field = /\{\s*result: (\w+)/.exec(refused.query)?.[1] ?? '';
    const [good] = (await MUTATIONS[field]?.()) ?? [];
    const { result } = (await send(good, key)).json.data;
    expect(result.__typename).not.toMatch(/Error$/);
  });

  it.each([
    ['malformed JSON', '{"query": '],
    ['an unknown field', JSON.stringify({ query: 'mutation { createWalletRule(id: 1) { id } }' })],
    ['a variable of the wrong type', JSON.stringify({ query: print(MigrateUserDocument), variables: { input: 5 } })],
    [
      'a document of two operations without a name',
      JSON.stringify({ query: 'query A { __typename } mutation B { __typename }' }),
    ],
  ])('stores nothing for %s: a valid mutation succeeds with the same key', async (_name, body) => {
    const key = randomUUID();
    const headers = { 'content-type': 'application/json', ...keyed(key) };
    const refused = await p.call('POST', '/graphql', { token, body, headers });
    expect(refused.json.errors.length).toBeGreaterThan(0);
    expect(refused.json.data ?? undefined).toBeUndefined();
    expect((await send(migrate(), key)).json.data.result.__typename).toBe('User');
  });

  it('D4-01 DG-04: a token that lacks the permission gets a ForbiddenError, even if a response is stored for its key', async () => {
    const client = await addClient(p, { scopes: ['wallet-rules:write'] });
    const [operation, key] = [createRule(), randomUUID()];
    const narrow = async (scope: string) => {
      const json = { grant_type: 'client_credentials', ...client, scope };
      return (await p.call('POST', '/v2/oauth/token', { json })).json.access_token;
    };
    const by = await narrow('wallet-rules:write');
    expect((await send(operation, key, by)).json.data.result.__typename).toBe('WalletRule');
    await rows(p).run((k) =>
      k
        .updateTable('clients')
        .set({ scopes: ['accounts:read'] })
        .where('id', '=', client.client_id),
    );
    p.service.context.directory.forget(client.client_id);
    const bare = await narrow('accounts:read');
    expect((await send(operation, key, bare)).json.data.result.__typename).toBe('ForbiddenError');
  });

  it('stores nothing for a result with errors: the mutation is rolled back', async () => {
    const client = await addClient(p, { scopes: ['wallet-rules:write'] });
    const by = await p.clientToken(client);
    const query = `mutation ($walletId: ID!, $input: WalletRuleInput!) { result: createWalletRule(walletId: $walletId, input: $input) {
      ... on WalletRule { id versions { totalCount } } } }`;
    const [{ variables }, key, before] = [createRule(), randomUUID(), await counts()];
    const refused = await send({ query, variables }, key, by);
    expect(refused.json).toMatchObject({ data: null, errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    expect(await counts()).toEqual(before);
    const bare = { query: query.replace('versions { totalCount }', ''), variables };
    expect((await send(bare, key, by)).json.data.result.id).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('D7-14: an idempotency key is rejected with an error that names the header', () => {
  const REFUSED = (what: RegExp) => ({
    status: 400,
    json: { errors: [{ message: expect.stringMatching(what), extensions: { code: 'BAD_REQUEST' } }] },
  });

  it('a key that is not ASCII, or sent twice, is a 400', async () => {
    const answer = await send(migrate(), 'é');
    expect(answer).toMatchObject(REFUSED(/^Idempotency-Key must be 1 to 255 printable ASCII characters/));
    const body = Buffer.from(JSON.stringify(migrate()));
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const twice = { ...headers, 'idempotency-key': ['a', 'b'] as unknown as string };
    expect(await sendRaw(p.url, twice, body)).toMatchObject(REFUSED(/^Idempotency-Key must be .* once$/));
  });

  it('a key with a batch is a 400, for mutations and queries', async () => {
    const before = await counts();
    for (const batch of [[migrate()], [migrate(), createRule()], [{ query: '{ __typename }' }]]) {
      expect(await send(batch, randomUUID())).toMatchObject(REFUSED(/^Idempotency-Key .*batch/));
    }
    expect(await counts()).toEqual(before);
  });

  it('a key with several root fields is a 400, whichever fragment they are in', async () => {
    const create = 'createWalletRule(walletId: $w, input: $i) { __typename }';
    const query = `mutation ($w: ID!, $i: WalletRuleInput!) { ... on Mutation { a: ${create} } ...Two }
      fragment Two on Mutation { b: ${create} }`;
    const before = await counts();
    const answer = await send({ query, variables: { w: p.demo.wallet_id, i: rule() } }, randomUUID());
    expect(answer).toMatchObject(REFUSED(/^Idempotency-Key .*root fields/));
    expect(await counts()).toEqual(before);
  });

  const mutations = Object.values(graphqlSchema().getMutationType()?.getFields() ?? {});
  const others = mutations.filter(({ name }) => !(name in MUTATIONS) && name !== 'startUserMigration');

  it.each(others.map(({ name }) => name))('a key with %s is a 400', async (name) => {
    const field = others.find((one) => one.name === name);
    const given = field?.args ?? [];
    const args = given.map((arg) => `${arg.name}: $${arg.name}`).join(', ');
    const types = given.map((arg) => `$${arg.name}: ${arg.type}`).join(', ');
    const call = given.length === 0 ? name : `${name}(${args})`;
    const query = `mutation ${types && `(${types})`} { ${call} { __typename } }`;
    expect(await send({ query, variables: {} }, randomUUID())).toMatchObject(
      REFUSED(new RegExp(`^Idempotency-Key .*${name}.*createWalletRule, .*registerTransaction`)),
    );
  });

  it('a key with startUserMigration is a 400, and no file is stored', async () => {
    const headers = { authorization: `Bearer ${token}`, ...keyed(randomUUID()) };
    const body = browserForm('wallet_address,email\n0x1,a@x.y\n');
    const before = await counts();
    const response = await fetch(`${p.url}/graphql`, { method: 'POST', headers, body });
    expect({ status: response.status, json: await response.json() }).toMatchObject(REFUSED(/startUserMigration/));
    expect(await counts()).toEqual(before);
  });

  it('a key on a WebSocket upgrade is rejected, since it would apply to every operation', async () => {
    const webSocketImpl = class extends WebSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols, { headers: keyed('socket') });
      }
    };
    const url = `${p.url.replace('http', 'ws')}/graphql`;
    const client = createClient({ url, webSocketImpl, connectionParams: { authorization: `Bearer ${token}` } });
    const before = await counts();
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const { query, variables } = migrate() as Required<Operation>;
    client.subscribe({ query, variables }, { next: resolve, error: resolve, complete: () => undefined });
    expect(JSON.stringify(await promise)).toContain('Idempotency-Key');
    expect(await counts()).toEqual(before);
    await client.dispose();
  });

  it('a key with a query is ignored, since a query has no effect to repeat', async () => {
    for (const key of [randomUUID(), 'é']) {
      expect((await send({ query: '{ a: __typename me { subject } }' }, key)).status).toBe(200);
    }
  });
});

it('D7-14: on the embedded database, which has one connection, mutations with and without a key wait for each other', async () => {
  await using embedded = await startEmbedded();
  const by = await embedded.clientToken();
  const call = (json: object, key?: string) =>
    embedded.call('POST', '/graphql', { token: by, json, headers: key === undefined ? {} : keyed(key) });
  const key = randomUUID();
  const shared = migrate();
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, at) =>
      at % 3 === 0 ? call(shared, key) : call(migrate(), at % 3 === 1 ? randomUUID() : undefined),
    ),
  );
  expect(answers.map(({ json }) => json.data?.result.__typename)).toEqual(Array(12).fill('User'));
});
