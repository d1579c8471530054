import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { applied } from '../support/console/console-page.ts';
import { createdClient } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { addSupervisor, makeLoginsCheap } from '../support/oauth/cheap-hash.ts';
import { registered } from '../support/realtime/live.ts';

const p = beforeTests(() => startPortcullis());
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
  await makeLoginsCheap(p);
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
