import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { createdSupervisor, grantStatus, login, PASSWORD, tokenStatus } from '../support/graphql/administration.ts';
import { usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';
import { eventsOf, migrationsOf, newUser } from '../support/user-migrations/calls.ts';

describeReal('postgres', 'rename, while a server runs', () => {
  const p = usePortcullis();
  let token: string;
  beforeAll(async () => {
    token = await p.clientToken();
  });

  const run = (...args: string[]) =>
    portcullis([...args, '--json'], { DATA_DIR: p.dataDir, DATABASE_URL: p.env.DATABASE_URL ?? '' });
  const signIn = (username: string, password = PASSWORD) =>
    grantStatus(p, { grant_type: 'password', ...p.demo.client, username, password });

  it('D3-35 D3-17: a renamed supervisor has no sessions, keeps the password, and does not inherit lockouts', async () => {
    const [former, next] = [`ada ${randomUUID()}`, `ΑΔΑΣ ${randomUUID()}`];
    const { id } = await createdSupervisor(p, token, { username: former });
    const { access_token } = await login(p, former);
    for (let attempt = 0; attempt < 5; attempt += 1) expect(await signIn(former, 'wrong')).toBe(401);
    expect(await signIn(former)).toBe(401);
    expect(JSON.parse((await run('supervisor', 'rename', id, '--username', next)).out)).toMatchObject({
      id,
      username: next,
    });
    await expect.poll(() => tokenStatus(p, access_token)).toBe(401);
    expect(await signIn(former)).toBe(401);
    expect(await signIn(next.toLowerCase())).toBe(200);
    // Whoever gets the former username waits until the lockout of it ends.
    await createdSupervisor(p, token, { username: former });
    expect(await signIn(former)).toBe(401);
  });

  it('D3-17: failed logins with a username that nobody had yet count for it', async () => {
    const next = `grace ${randomUUID()}`;
    const { id } = await createdSupervisor(p, token, { username: `hopper ${randomUUID()}` });
    for (let attempt = 0; attempt < 5; attempt += 1) expect(await signIn(next, 'wrong')).toBe(401);
    expect((await run('supervisor', 'rename', id, '--username', next)).code).toBe(0);
    expect(await signIn(next)).toBe(401);
    expect((await run('supervisor', 'unlock', id)).code).toBe(0);
    expect(await signIn(next)).toBe(200);
  });

  it('D7-11: a renamed user keeps everything but the email, no event is published, and the former email is free', async () => {
    const rest = await migrationsOf(p, token);
    const sent = newUser({ external_id: randomUUID(), kyc_sent: true });
    const { id } = (await rest.one(sent)).json;
    await rows(p).run((k) =>
      k.updateTable('users').set({ kyc_verified: true, kyc_token_tx_hash: '0x1' }).where('id', '=', id),
    );
    const stored = async () => (await rows(p).run((k) => k.selectFrom('users').selectAll().where('id', '=', id)))[0];
    const [before, events] = [await stored(), await eventsOf(p, id)];
    const email = `${randomUUID()}@example.com`;
    expect(JSON.parse((await run('users', 'rename', id, '--email', ` ${email} `)).out)).toEqual({ id, email });
    expect(await stored()).toEqual({ ...before, email });
    expect(await eventsOf(p, id)).toEqual(events);
    expect((await rest.one(newUser({ email: email.toUpperCase() }))).json.message).toBe('duplicate_email');
    expect((await rest.one(newUser({ email: sent.email }))).status).toBe(201);
  });

  it('D7-11 D7-10: an erasure covers data of the former email, and an erased user cannot be given an email', async () => {
    const rest = await migrationsOf(p, token);
    const { email } = newUser();
    const query =
      'mutation ($users: [MigrateUserInput!]!) { migrateUsers(users: $users, dryRun: true) { ... on Migration { id } } }';
    const variables = { users: [{ walletAddress: `0x${randomUUID()}`, email: email.toUpperCase() }] };
    const { json } = await p.call('POST', '/graphql', { token, json: { query, variables } });
    const dryRun = async () =>
      rows(p).run((k) =>
        k.selectFrom('migration_rows').select('email').where('migration_id', '=', json.data.migrateUsers.id),
      );
    expect(await dryRun()).toEqual([{ email: email.toUpperCase() }]);
    const { id } = (await rest.one(newUser({ email }))).json;
    expect((await run('users', 'rename', id, '--email', `${randomUUID()}@example.com`)).code).toBe(0);
    expect((await run('users', 'erase', id)).code).toBe(0);
    expect(await dryRun()).toEqual([{ email: null }]);
    const erased = await run('users', 'rename', id, '--email', email);
    expect(erased).toMatchObject({ code: 1, err: expect.stringContaining(`there is no user ${id}`) });
  });
});
