import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { OPERATOR } from '../../src/access/administration/administration.ts';
import { createdClient, createdSupervisor, login, rotatedSecret } from '../support/graphql/administration.ts';
import { type Portcullis, usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';

const p = usePortcullis();

interface Change {
  isNew: boolean;
  changes: Record<string, [before: unknown, after: unknown]>;
  subject: string | null;
  clientId: string | null;
  correlationId: string | null;
}

async function ask(of: Portcullis, query: string, token: string, correlationId: string = randomUUID()) {
  const headers = { 'x-correlation-id': correlationId };
  const { json } = await of.call('POST', '/graphql', { token, headers, json: { query } });
  expect(json.errors).toBeUndefined();
  return json.data;
}

/** The changes of a thing, newest first. */
async function activityOf(parent: string, id: string, token?: string): Promise<Change[]> {
  const activity = 'activity { edges { node { isNew changes subject clientId correlationId } } }';
  const query = `{ of: ${parent}(id: "${id}") { ${activity} } }`;
  const data = await ask(p, query, token ?? (await p.clientToken()));
  return data.of.activity.edges.map(({ node }: { node: Change }) => node);
}

it('every change of a supervisor has its author and its request, and a password is named without its value', async () => {
  const token = await p.loginToken();
  const { json } = await p.call('POST', '/graphql', { token, json: { query: '{ me { subject clientId } }' } });
  const { subject, clientId } = json.data.me;
  const supervisor = await createdSupervisor(p, token, { username: `ada-${randomUUID()}` });
  const { id, username } = supervisor;
  const change = (field: string, correlationId: string) =>
    ask(p, `mutation { ${field} { __typename } }`, token, correlationId);
  await change(`setSupervisorRole(id: "${id}", role: "operator")`, 'of-role');
  await change(`setSupervisorPassword(id: "${id}", password: "another password")`, 'of-password');
  // It changes nothing, and neither does what is refused.
  await change(`setSupervisorRole(id: "${id}", role: "operator")`, 'of-nothing');
  await change(`setSupervisorStatus(id: "${id}", status: DISABLED)`, 'of-status');
  const { supervisorAdministration } = p.service.context;
  await supervisorAdministration.setStatus(p.demo.node_id, OPERATOR, id, 'active');
  const by = { isNew: false, subject, clientId };
  expect(await activityOf('supervisor', id)).toEqual([
    { isNew: false, subject: null, clientId: null, correlationId: null, changes: { status: ['disabled', 'active'] } },
    { ...by, correlationId: 'of-status', changes: { status: ['active', 'disabled'] } },
    { ...by, correlationId: 'of-password', changes: { password_hash: [null, null] } },
    { ...by, correlationId: 'of-role', changes: { role: ['viewer', 'operator'] } },
    {
      ...{ ...by, isNew: true, correlationId: expect.any(String) },
      changes: {
        username: [null, username],
        role: [null, 'viewer'],
        status: [null, 'active'],
        password_hash: [null, null],
      },
    },
  ]);
  const stored = await rows(p).run((k) => k.selectFrom('activity').select('changes').where('of_id', '=', id));
  expect(JSON.stringify(stored)).not.toContain('argon2');
});

it('of a supervisor who was unlocked, by whom and in which request', async () => {
  const token = await p.loginToken();
  const { id, username } = await createdSupervisor(p, token, { username: `locked-${randomUUID()}` });
  for (let time = 0; time < 5; time++) await login(p, username, { password: 'wrong' }).catch(() => undefined);
  await ask(p, `mutation { unlockSupervisor(id: "${id}") { __typename } }`, token, 'of-unlocking');
  const [unlocked] = await activityOf('supervisor', id);
  expect(unlocked).toMatchObject({ isNew: false, correlationId: 'of-unlocking', subject: expect.any(String) });
  expect(unlocked?.changes).toEqual({ unlocked_at: [null, expect.any(String)] });
  await login(p, username);
});

it('who changes their own password is its author', async () => {
  const token = await p.loginToken();
  const { id, username } = await createdSupervisor(p, token, { username: `own-${randomUUID()}` });
  const { access_token: own } = await login(p, username);
  const changing = 'changeOwnPassword(current: "correct horse battery staple", new: "another password")';
  await ask(p, `mutation { ${changing} { __typename } }`, own, 'of-own');
  expect((await activityOf('supervisor', id))[0]).toMatchObject({ subject: id, correlationId: 'of-own' });
});

it('of a client, what it may do before and after, and that it got another secret; its use is no change', async () => {
  const token = await p.clientToken();
  const { client, credentials } = await createdClient(p, token, { name: 'Desk', scopes: ['accounts:read'] });
  const { id } = client;
  const scopes = '["accounts:read", "wallets:read"]';
  await ask(
    p,
    `mutation { patchClient(id: "${id}", input: {scopes: ${scopes}, monthlyLimit: 5}) { __typename } }`,
    token,
  );
  const used = await p.clientToken(credentials);
  await p.call('GET', '/v1/accounts', { token: used });
  const secret = await rotatedSecret(p, token, id);
  const activity = await activityOf('client', id);
  expect(activity.map(({ changes }) => changes)).toEqual([
    { hash: [null, null] },
    { scopes: [['accounts:read'], ['accounts:read', 'wallets:read']], monthly_limit: [null, 5] },
    { hash: [null, null] },
    expect.objectContaining({ name: [null, 'Desk'], status: [null, 'active'] }),
  ]);
  expect(activity.map(({ isNew }) => isNew)).toEqual([false, false, false, true]);
  expect(JSON.stringify(activity)).not.toContain(secret);
});

it('of a wallet its networks; of a user what was erased, without a value', async () => {
  const { wallet_id: wallet, network_id: network } = p.demo;
  const token = await p.clientToken();
  const headers = { 'x-correlation-id': 'of-network' };
  await rows(p).run((k) => k.deleteFrom('wallet_networks').where('network_id', '=', network));
  for (let time = 0; time < 2; time++) {
    await p.call('POST', `/v1/wallets/${wallet}/networks/${network}`, { token, headers });
  }
  const [assigned] = await activityOf('wallet', wallet);
  expect(assigned).toMatchObject({ correlationId: 'of-network', changes: { network_id: [null, network] } });
  const email = `${randomUUID()}@people.example`;
  const { json } = await p.call('POST', '/v2/users/migrate/with-wallet', {
    token,
    json: { wallet_address: email, email },
  });
  await ask(p, `mutation { eraseUser(id: "${json.id}") { __typename } }`, token, 'of-erasure');
  const erased = await activityOf('user', json.id);
  expect(erased).toMatchObject([
    { correlationId: 'of-erasure', changes: { email: [null, null], erased_at: [null, expect.any(String)] } },
  ]);
  const stored = await rows(p).run((k) => k.selectFrom('activity').selectAll().where('of_id', '=', json.id));
  expect(JSON.stringify(stored)).not.toContain(email);
});

it('D7-10: the receipt of an erasure has its imports, and the seal of the audit', async () => {
  const token = await p.clientToken();
  const email = `${randomUUID()}@people.example`;
  const user = { wallet_address: randomUUID(), email };
  const { json } = await p.call('POST', '/v2/users/migrate/with-wallet/bulk', { token, json: { users: [user] } });
  const [{ user_id: id }] = json.results;
  const receipt = '{ erasure { migrations seal { body signature } } }';
  const data = await ask(p, `mutation { eraseUser(id: "${id}") { ... on User ${receipt} } }`, token);
  const { migrations, seal } = data.eraseUser.erasure;
  const [migration] = await rows(p).run((k) =>
    k.selectFrom('migration_rows').select('migration_id').where('user_id', '=', id),
  );
  expect(migrations).toEqual([migration?.migration_id]);
  expect(JSON.parse(seal.body)).toMatchObject({ kind: 'erasure', user: id });
  const [stored] = await rows(p).raw(
    (sql) => sql<{ body: string; signature: string | null }>`
      select body, encode(signature, 'hex') as signature from audit_seals where body = ${seal.body}`,
  );
  expect(seal).toEqual(stored);
  expect((await ask(p, `{ user(id: "${id}") ${receipt} }`, token)).user.erasure).toEqual({ migrations, seal });
});
