import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { strangers } from '../../src/access/supervisors/supervisors.service.ts';
import { auditRecord } from '../support/audit/chain-fixture.ts';
import { readyExport, requestExport, shownExport } from '../support/audit/export-jobs.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { type Answer, type Portcullis, startEmbedded, startPortcullis } from '../support/harness.ts';
import { addSupervisor, cheapHash } from '../support/oauth/cheap-hash.ts';
import { addClient, rows } from '../support/oauth/clients.ts';

const PASSWORD = 'right horse battery';
const FORMER_PEPPER = 'the pepper of the names that came before';
const env = { CONSOLE: 'on', SECRET_PEPPER_PREVIOUS: FORMER_PEPPER };
const ATTEMPTED = 'attempted { clientId supervisorId username }';
const NOBODY = { supervisorId: null, username: null };

interface Shown {
  subject: string | null;
  headers: Record<string, unknown>;
  attempted: Record<'clientId' | 'supervisorId' | 'username', string | null> | null;
}

/** A supervisor of the tenant, a stranger, and an attempt at each through everything that signs people in. */
class Attempts {
  readonly p: Portcullis;
  readonly stranger = `Typed ${randomUUID()}`;
  token = '';
  alice = { id: '', username: '' };

  constructor(p: Portcullis) {
    this.p = p;
  }

  async make(): Promise<void> {
    this.token = await this.p.clientToken();
    this.alice = await addSupervisor(this.p, PASSWORD);
    const { username } = this.alice;
    await this.login(username.toUpperCase(), 'wrong');
    await this.signIn(`${username}\u200b`, 'wrong');
    await this.login(username, PASSWORD, { scope: 'audit:read' });
    for (const name of [this.stranger, this.stranger.toLowerCase()]) await this.login(name, 'wrong');
    await this.signIn(this.stranger, 'wrong');
  }

  login(username: string, password: string, more: object = {}): Promise<Answer> {
    return this.request({ grant_type: 'password', ...this.p.demo.client, username, password, ...more });
  }

  request(json: object, path = '/v2/oauth/token'): Promise<Answer> {
    return this.p.call('POST', path, { json });
  }

  signIn(username: string, password: string): Promise<Answer> {
    const json = { client_id: this.p.demo.console_client_id, username, password };
    return this.p.call('POST', '/console/session', { json, headers: { 'sec-fetch-site': 'same-origin' } });
  }

  ask(filter: object, token = this.token): Promise<Answer> {
    const query = `query ($filter: AuditFilter) {
      auditRecords(first: 50, filter: $filter) { totalCount edges { node { subject headers ${ATTEMPTED} } } }
    }`;
    return this.p.call('POST', '/graphql', { token, json: { query, variables: { filter } } });
  }

  /** The records that match, oldest first. */
  async list(filter: object, token = this.token): Promise<Shown[]> {
    await this.p.service.context.auditWriter.flush();
    const { json } = await this.ask(filter, token);
    expect(json.errors).toBeUndefined();
    const { totalCount, edges } = json.data.auditRecords;
    expect(totalCount).toBe(edges.length);
    return edges.map(({ node }: { node: Shown }) => node).reverse();
  }

  async reasons(attemptedUsername: string): Promise<unknown[]> {
    return (await this.list({ attemptedUsername })).map(({ headers }) => headers[':reason']);
  }
}

const p = beforeTests(() => startPortcullis({ env }));
let at: Attempts;
beforeAll(async () => {
  at = new Attempts(p);
  await at.make();
});

const textOf = async (table: string) =>
  JSON.stringify(await rows(p).raw((sql) => sql`select * from ${sql.raw(table)}`)).toLowerCase();

describe('attemptedUsername', () => {
  it('D8-15: lists the refused sign-ins that named a supervisor, in any letters, and what the supervisor is called', async () => {
    const { id, username } = at.alice;
    await at.login(username, PASSWORD);
    const shown = await at.list({ attemptedUsername: `  ${username.toUpperCase()}` });
    expect(shown.map(({ headers }) => headers[':reason'])).toEqual([
      'wrong_password',
      'wrong_password',
      'invalid_scope',
    ]);
    const clients = [p.demo.client.client_id, p.demo.console_client_id, p.demo.client.client_id];
    expect(shown.map(({ attempted }) => attempted)).toEqual(
      clients.map((clientId) => ({ clientId, supervisorId: id, username })),
    );
  });

  it('D8-15: lists those that named nobody, by a hash, and still does when somebody has got that name', async () => {
    const shown = await at.list({ attemptedUsername: at.stranger.toUpperCase() });
    expect(shown).toHaveLength(3);
    const [{ subject } = { subject: '' }] = shown;
    expect(subject).toMatch(/^unknown:[0-9a-f]{32}$/);
    for (const { attempted } of shown)
      expect(attempted).toEqual({ clientId: expect.any(String), supervisorId: null, username: subject });
    const later = { id: randomUUID(), username: `late-${randomUUID()}`, role: 'viewer' };
    await at.login(later.username, PASSWORD);
    const row = { ...later, node_id: p.demo.node_id, password_hash: cheapHash(PASSWORD) };
    await rows(p).run((k) => k.insertInto('supervisors').values(row));
    await at.login(later.username, 'wrong');
    expect(await at.reasons(later.username)).toEqual(['unknown_supervisor', 'wrong_password']);
  });

  it('D8-15: finds names that were hashed with the previous pepper', async () => {
    const name = `former ${randomUUID()}`;
    const record = auditRecord({
      ...{ node_id: p.demo.node_id, subject: strangers(FORMER_PEPPER)(name), operation: '/v2/oauth/token' },
      ...{ method: 'POST', status_code: 401, headers: { ':reason': 'unknown_supervisor' } },
    });
    const stored = { ...record, headers: JSON.stringify(record.headers), elapsed: String(record.elapsed) };
    await rows(p).run((k) => k.insertInto('audit_records').values(stored as never));
    expect(await at.reasons(name)).toEqual(['unknown_supervisor']);
  });

  it('D8-15: leaves out all else that the supervisor did: requests that were refused, and refused refreshes', async () => {
    const { id, username } = await addSupervisor(p, PASSWORD);
    const { json } = await at.login(username, PASSWORD);
    const { access_token: token, refresh_token } = json;
    expect((await p.call('GET', '/v1/accounts?limit=x', { token })).status).toBe(400);
    await at.request({ ...p.demo.client, token: refresh_token }, '/v2/oauth/revoke');
    const refresh = { grant_type: 'refresh_token', ...p.demo.client, refresh_token };
    expect((await at.request(refresh)).status).toBe(401);
    expect(await at.list({ subject: id, statusClass: 4 })).not.toEqual([]);
    expect(await at.list({ attemptedUsername: username })).toEqual([]);
  });

  it('D8-15 D4-01: a supervisor of another tenant is nobody here, and attempts there are listed there', async () => {
    const { supervisor, client, node_id } = p.demo.other_node;
    const foreign = { username: `foreign-${randomUUID()}`, role: 'viewer', password_hash: cheapHash(PASSWORD) };
    await rows(p).run((k) => k.insertInto('supervisors').values({ ...foreign, id: randomUUID(), node_id }));
    const nobody = `nobody-${randomUUID()}`;
    for (const name of [foreign.username, nobody]) await at.login(name, PASSWORD);
    const [one, other] = [
      await at.list({ attemptedUsername: foreign.username }),
      await at.list({ attemptedUsername: nobody }),
    ];
    expect([one.length, other.length]).toEqual([1, 1]);
    const hash = /unknown:\w+/g;
    const withoutTimes = (shown: Shown[]) => JSON.stringify(shown.map(({ attempted }) => attempted)).replace(hash, '');
    expect(withoutTimes(one)).toBe(withoutTimes(other));
    await at.login(foreign.username, 'wrong', client);
    expect(await at.list({ attemptedUsername: foreign.username })).toHaveLength(1);
    const elsewhere = { ...client, username: supervisor.username, password: supervisor.password };
    const theirs = (await at.request({ grant_type: 'password', ...elsewhere })).json.access_token;
    expect(await at.list({ attemptedUsername: foreign.username }, theirs)).toMatchObject([
      { attempted: { clientId: client.client_id, username: foreign.username } },
    ]);
  });

  it.each([
    ['a text that cannot be stored', 'a\u0000'],
    ['a name that is too long', 'a'.repeat(1_025)],
  ])('DG-03: rejects %s', async (_name, attemptedUsername) => {
    const { json } = await at.ask({ attemptedUsername });
    const path = ['filter', 'attemptedUsername'];
    expect(json.errors[0].extensions).toMatchObject({ code: 'BAD_USER_INPUT', issues: [{ path }] });
    expect(await requestExport(p, at.token, { attemptedUsername })).toMatchObject({ __typename: 'ValidationError' });
  });

  it('DG-01: takes null for absent, and a name that is as long as any that counts', async () => {
    const { json } = await at.ask({ attemptedUsername: null, subject: at.alice.id });
    expect(json.data.auditRecords.totalCount).toBeGreaterThan(0);
    const long = 'x'.repeat(1_024);
    await at.login(`${long}y`, 'wrong');
    expect(await at.reasons(long)).toEqual(['unknown_supervisor']);
  });

  it('D8-15 D8-18: an export has the same records, and neither it nor a record has the name', async () => {
    const asked = await readyExport(p, at.token, { attemptedUsername: at.stranger });
    expect(asked).toMatchObject({ records: 3, total: 3 });
    const [{ subject } = { subject: '' }] = await at.list({ attemptedUsername: at.stranger });
    expect(asked.asked).toEqual({
      node: p.demo.node_id,
      attemptedUsername: `${subject},${strangers(FORMER_PEPPER)(at.stranger)}`,
    });
    const known = await readyExport(p, at.token, { attemptedUsername: at.alice.username });
    expect((await shownExport(p, at.token, known.id)).records).toBe(3);
    const literal = `{ auditRecords(filter: {attemptedUsername: "${at.stranger}"}) { totalCount } }`;
    const variable = 'query ($name: String) { auditRecords(filter: {attemptedUsername: $name}) { totalCount } }';
    for (const body of [{ query: literal }, { query: variable, variables: { name: at.stranger } }]) {
      const { json } = await p.call('POST', '/graphql', { token: at.token, json: body });
      expect(json.data.auditRecords.totalCount).toBe(3);
    }
    await p.call('GET', `/graphql?query=${encodeURIComponent(literal)}`, { token: at.token });
    await p.service.context.auditWriter.flush();
    const name = at.stranger.toLowerCase();
    for (const table of ['audit_records', 'audit_exports']) expect(await textOf(table)).not.toContain(name);
    expect(await textOf('audit_records')).toContain('attemptedusername');
  });
});

describe('attempted', () => {
  it('D8-15: has the client alone where a refused sign-in named no supervisor, and is null for all else', async () => {
    const own = await addClient(p, { scopes: ['audit:read'] });
    const { client_id: clientId } = own;
    const one = async () => (await at.list({ clientId })).at(-1)?.attempted;
    const wrong = { client_id: clientId, client_secret: 'wrong' };
    await at.request({ grant_type: 'client_credentials', ...wrong });
    expect(await one()).toEqual({ clientId, ...NOBODY });
    await at.request({ grant_type: 'refresh_token', ...own, refresh_token: 'x' });
    expect(await one()).toEqual({ clientId, ...NOBODY });
    await at.request({ grant_type: 'nothing', ...own });
    expect(await one()).toEqual({ clientId, ...NOBODY });
    await at.request({ ...wrong, token: 'x' }, '/v2/oauth/revoke');
    expect(await one()).toBeNull();
    const { json } = await at.request({ grant_type: 'client_credentials', ...own });
    expect(await one()).toBeNull();
    await p.call('GET', '/v1/accounts', { token: json.access_token });
    expect(await one()).toBeNull();
  });

  it('reads the supervisors of a page by one statement, and only for the username', async () => {
    const read = vi.spyOn(p.service.context.supervisorPages, 'byIds');
    for (let count = 0; count < 3; count += 1) await at.login((await addSupervisor(p, PASSWORD)).username, 'wrong');
    const shown = await at.list({ statusClass: 4 });
    expect(new Set(shown.flatMap(({ attempted }) => attempted?.supervisorId ?? [])).size).toBeGreaterThan(3);
    expect(read).toHaveBeenCalledTimes(1);
    const query = '{ auditRecords(first: 50) { edges { node { attempted { clientId supervisorId } } } } }';
    await p.call('POST', '/graphql', { token: at.token, json: { query } });
    expect(read).toHaveBeenCalledTimes(1);
    read.mockRestore();
  });
});

describeEmbedded('attemptedUsername, on the embedded database', () => {
  const embedded = beforeTests(() => startEmbedded({ env }));

  it('D8-15: lists the refused sign-ins that named a supervisor, or nobody', async () => {
    const there = new Attempts(embedded);
    await there.make();
    const { username, id } = there.alice;
    expect(await there.reasons(username)).toEqual(['wrong_password', 'wrong_password', 'invalid_scope']);
    const [first] = await there.list({ attemptedUsername: username });
    expect(first?.attempted).toMatchObject({ supervisorId: id, username });
    expect(await there.reasons(there.stranger)).toEqual(Array.from({ length: 3 }, () => 'unknown_supervisor'));
  });
});
