import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import type { Db } from '../../src/platform/database/database.ts';
import { applied } from '../support/console/console-page.ts';
import { createdClient } from '../support/graphql/administration.ts';
import { usePortcullis } from '../support/harness.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';
import { registered } from '../support/realtime/live.ts';

const p = usePortcullis();
const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

async function ask(query: string, token: string, variables = {}) {
  const { json } = await p.call('POST', '/graphql', { token, json: { query, variables } });
  expect(json.errors).toBeUndefined();
  return json.data;
}

const attention = async (token: string) =>
  (await ask('{ needsAttention { kind reason count since ids } }', token)).needsAttention;
const found = async (search: string, token: string): Promise<{ kind: string; id: string; title: string }[]> =>
  (await ask('query ($search: String!) { search(search: $search) { kind id title within } }', token, { search }))
    .search;

it('groups what needs a decision by kind and reason, with its number, its first time and ids', async () => {
  const [one = '', two = '', three = '', late = '', stuck = '', odd = '', fresh = ''] = await registered(p, 7);
  await applied(p, one, 4, { updated_at: ago(90), error: 'nonce too low' });
  await applied(p, two, 4, { updated_at: ago(30), error: 'nonce too low' });
  await applied(p, three, 4, { updated_at: ago(10), error: 'out of gas' });
  await applied(p, late, 4, { updated_at: ago(25 * 60), error: 'nonce too low' });
  await applied(p, stuck, 2, { updated_at: ago(200) });
  await applied(p, fresh, 2, { updated_at: ago(5) });
  await applied(p, odd, 3, { updated_at: ago(20), transaction_hash: '0x1' });
  await applied(p, odd, 4, { updated_at: ago(15), transaction_hash: '0x1', error: 'reverted' });
  const { username } = await addSupervisor(p, 'right horse battery');
  const login = { grant_type: 'password', ...p.demo.client, username, password: 'wrong' };
  for (let time = 0; time < 5; time++) await p.call('POST', '/v2/oauth/token', { json: login });
  const groups = await attention(await p.loginToken());
  const of = (kind: string) => groups.filter((group: { kind: string }) => group.kind === kind);
  expect(of('FAILED').map(({ reason, count }: Record<string, unknown>) => [reason, count])).toEqual(
    expect.arrayContaining([
      ['nonce too low', 2],
      ['out of gas', 1],
    ]),
  );
  const [nonce] = of('FAILED').filter(({ reason }: { reason: string }) => reason === 'nonce too low');
  expect(nonce.ids.toSorted()).toEqual([one, two].toSorted());
  expect(Math.abs(Date.parse(nonce.since) - Date.parse(ago(90)))).toBeLessThan(60_000);
  expect(of('STUCK')).toMatchObject([{ reason: '2', count: 1, ids: [stuck] }]);
  expect(of('CONFLICT')).toMatchObject([{ reason: null, count: 1, ids: [odd] }]);
  expect(of('LOCKED')).toMatchObject([{ reason: username, count: 1 }]);
});

/** Resolves once another connection waits for the transaction of this one. */
async function untilOneWaits(db: Db): Promise<void> {
  const isBlocking = () =>
    db
      .unscoped('test')
      .raw((sql) => sql`select 1 from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))`);
  while ((await isBlocking()).length === 0) await setTimeout(10);
}

const MARK = `mutation ($id: ID, $reason: String, $seen: Boolean! = true, $note: String) {
  markSeen(kind: FAILED, reason: $reason, id: $id, seen: $seen, note: $note) {
    __typename ... on Attention { id kind reason seen { seenBy note } } ... on ForbiddenError { permission }
  }
}`;
const GROUPS = '{ needsAttention { id kind reason count marking seen { seenBy seenAt note } } }';

it('a group is marked as seen, with a note, for all people of the tenant, until something joins it', async () => {
  const [first = '', second = '', third = ''] = await registered(p, 3);
  const error = `insufficient funds ${randomUUID()}`;
  for (const id of [first, second]) await applied(p, id, 4, { updated_at: ago(20), error });
  const [token, colleague] = [await p.loginToken(), await p.clientToken()];
  const group = async (by = colleague) =>
    (await ask(GROUPS, by)).needsAttention.find(({ reason }: { reason: string }) => reason === error);
  const mark = async (variables: object, by = token) => (await ask(MARK, by, variables)).markSeen;
  const { id, seen, marking } = await group();
  expect([seen, marking]).toEqual([null, 'transactions:write']);
  const marked = await mark({ id, seen: true, note: 'the treasury tops up at noon' });
  expect(marked).toMatchObject({ id, reason: error, seen: { note: 'the treasury tops up at noon' } });
  expect(await group()).toMatchObject({ count: 2, seen: marked.seen });
  // Another report about one that is in it changes nothing; a new one brings the group back.
  await applied(p, second, 4, { updated_at: ago(15), error });
  expect((await group()).seen).toEqual(expect.objectContaining(marked.seen));
  await applied(p, third, 4, { updated_at: ago(10), error });
  const grown = await group();
  expect(grown).toMatchObject({ count: 3, seen: null });
  // Who has looked at it before has not seen what joined.
  expect(await mark({ id, seen: true })).toEqual({ __typename: 'PreconditionError' });
  expect(await mark({ id: grown.id, seen: true })).toMatchObject({ seen: { note: null } });
  expect(await mark({ id: grown.id, seen: false })).toMatchObject({ seen: null });
  expect((await group()).seen).toBeNull();
});

it('a group is marked as seen by its kind and reason, if they tell it from all others', async () => {
  const errors = [`out of gas ${randomUUID()}`, `replaced ${randomUUID()}`];
  for (const [index, id] of (await registered(p, 2)).entries())
    await applied(p, id, 4, { updated_at: ago(5), error: errors[index] });
  const token = await p.loginToken();
  const mark = async (variables: object) => (await ask(MARK, token, variables)).markSeen;
  expect(await mark({ reason: errors[0], note: 'gas is bought' })).toMatchObject({
    reason: errors[0],
    seen: { note: 'gas is bought' },
  });
  expect(await mark({ reason: 'another' })).toEqual({ __typename: 'PreconditionError' });
  expect(await mark({})).toEqual({ __typename: 'PreconditionError' });
});

it('two people who mark a group at the same moment have both seen it, and the note of the last one stays', async () => {
  const [id = ''] = await registered(p, 1);
  const error = `nonce gap ${randomUUID()}`;
  await applied(p, id, 4, { updated_at: ago(5), error });
  const token = await p.loginToken();
  const read = async () =>
    (await ask(GROUPS, token)).needsAttention.find(({ reason }: { reason: string }) => reason === error);
  const group = await read();
  const mark = async (note: string) => (await ask(MARK, token, { id: group.id, seen: true, note })).markSeen;
  const { attention, database } = p.service.context;
  const began = Promise.withResolvers<void>();
  const second = began.promise.then(() => mark('the treasury knows'));
  const first = await database.db.transaction(async () => {
    const caller = { nodeId: p.demo.node_id, subject: 'a colleague', permissions: new Set(PERMISSIONS) };
    const marked = await attention.mark(caller, { kind: 'failed', id: group.id }, true, 'I look at it');
    began.resolve();
    // The embedded database has one connection, for which the second waits.
    if (!database.isEmbedded) await untilOneWaits(database.db);
    return marked;
  });
  expect(first.seen).toMatchObject({ note: 'I look at it' });
  expect(await second).toMatchObject({ seen: { note: 'the treasury knows' } });
  expect(await read()).toMatchObject({ seen: { note: 'the treasury knows' } });
});

it('a group is marked only with the permission of its kind, and not by another tenant', async () => {
  const [id = ''] = await registered(p, 1);
  const error = `fee too low ${randomUUID()}`;
  await applied(p, id, 4, { updated_at: ago(5), error });
  const token = await p.clientToken();
  const { credentials } = await createdClient(p, token, { scopes: ['transactions:read'] });
  const reader = await p.clientToken(credentials);
  const groups: { id: string; reason: string; seen: unknown }[] = (await ask(GROUPS, reader)).needsAttention;
  const group = groups.find(({ reason }) => reason === error)?.id;
  const refused = await ask(MARK, reader, { id: group, seen: true });
  expect(refused.markSeen).toEqual({ __typename: 'ForbiddenError', permission: 'transactions:write' });
  const other = await ask(MARK, await p.clientToken(p.demo.other_node.client), { id: group, seen: true });
  expect(other.markSeen).toEqual({ __typename: 'PreconditionError' });
  expect(
    (await ask(GROUPS, token)).needsAttention.find(({ reason }: { reason: string }) => reason === error).seen,
  ).toBeNull();
});

it('shows each kind of what needs a decision, and of hits, only with its permission', async () => {
  const { credentials } = await createdClient(p, await p.clientToken(), {
    name: 'Acme reader',
    scopes: ['users:read'],
  });
  const token = await p.clientToken(credentials);
  expect(await attention(token)).toEqual([]);
  expect(await found('acme', token)).toEqual([]);
  const kinds = new Set((await found('acme', await p.loginToken())).map(({ kind }) => kind));
  expect([...kinds]).toEqual(expect.arrayContaining(['ACCOUNT', 'CLIENT']));
});

it('an asset has the transactions that were registered with it, the latest first', async () => {
  const token = await p.clientToken();
  const asset = randomUUID();
  const registering = (id: string, of: string) =>
    ask(
      `mutation { registerTransaction(input: {id: "${id}", collection: TOKEN_TRANSACTIONS, type: 1, assetId: "${of}"}) { __typename } }`,
      token,
    );
  const [first, second] = [randomUUID(), randomUUID()];
  const { assets } = await ask('{ assets(first: 1) { edges { node { id } } } }', token);
  const { id = asset } = assets.edges[0].node;
  for (const one of [first, second]) await registering(one, id);
  await registering(randomUUID(), asset);
  const query = `{ asset(id: "${id}") { transactions(first: 2) { totalCount edges { node { id asset { id } } } } } }`;
  const data = await ask(query, token);
  const { edges } = data.asset.transactions;
  expect(edges.map(({ node }: { node: unknown }) => node)).toEqual(
    [second, first].map((one) => ({ id: one, asset: { id } })),
  );
});

it('finds things by an id, its beginning as it is shown, a hash, part of a name, and a correlation id', async () => {
  const token = await p.loginToken();
  const [id = ''] = await registered(p, 1);
  await applied(p, id, 3, { transaction_hash: '0xABCDEF0123456789' });
  const kinds = async (search: string) => (await found(search, token)).map((hit) => `${hit.kind} ${hit.id}`);
  for (const search of [id, id.slice(0, 8), '0xABCDEF0123456789', '0xABCDEF01', ` ${id} `]) {
    expect(await kinds(search)).toEqual([`TRANSACTION ${id}`]);
  }
  const { account_id: account, wallet_id: wallet } = p.demo;
  expect(await kinds(account)).toEqual([`ACCOUNT ${account}`]);
  expect(await kinds(account.slice(0, 8).toUpperCase())).toContain(`ACCOUNT ${account}`);
  expect(await kinds(wallet.slice(0, 8))).toContain(`WALLET ${wallet}`);
  expect(await kinds('treasury')).toContain(`ACCOUNT ${account}`);
  for (const search of ['', '  ', '%', 'no such thing', randomUUID()]) expect(await kinds(search)).toEqual([]);
  const { headers } = await p.call('GET', '/v1/accounts', { token });
  const correlationId = headers.get('x-correlation-id') ?? '';
  await p.service.context.auditWriter.flush();
  expect(await kinds(correlationId)).toEqual([`REQUEST ${correlationId}`]);
});

it('finds nothing of another tenant, and its text is masked in the audit record', async () => {
  const other = await p.clientToken(p.demo.other_node.client);
  expect(await found(p.demo.account_id, other)).toEqual([]);
  const token = await p.loginToken();
  await found('somebody-to-be-masked', token);
  await p.service.context.auditWriter.flush();
  const query = '{ auditRecords(filter: { operation: "search" }, first: 50) { edges { node { requestBody } } } }';
  const text = JSON.stringify(await ask(query, token));
  expect(text).toContain('***');
  expect(text).not.toContain('somebody-to-be-masked');
});
