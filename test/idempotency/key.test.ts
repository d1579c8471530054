import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { scopeHash } from '../../src/idempotency/idempotent-responses.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { renameTable } from '../support/harness/database-roles.ts';
import { startPortcullis } from '../support/harness.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { BULK, migrationsOf, newUser, SINGLE } from '../support/user-migrations/calls.ts';
import { autoTransfer } from '../support/wallet-rules/rules.ts';

const START = Date.parse('2026-11-21T10:00:00Z');
const DAY_MS = 24 * 3_600_000;

const p = beforeTests(() => startPortcullis({ overrides: { nowMs: () => nowMs } }));
let nowMs = START;
let migrate: Awaited<ReturnType<typeof migrationsOf>>;

beforeEach(async () => {
  nowMs = START;
  migrate = await migrationsOf(p);
});

const keyed = (key: string) => ({ 'idempotency-key': key });

async function migrations(): Promise<number> {
  return (await rows(p).run((k) => k.selectFrom('migrations').select('id'))).length;
}

describe('an idempotency key', () => {
  it('D7-06: the same key and body get the first response again, byte for byte, and create nothing', async () => {
    for (const [path, body] of [
      [SINGLE, newUser({ kyc_sent: true })],
      [BULK, { users: [newUser(), newUser()] }],
    ] as const) {
      const key = randomUUID();
      const json = JSON.stringify(body);
      const first = await migrate.raw(path, json, keyed(key));
      const before = await migrations();
      nowMs += 1_000;
      const again = await migrate.raw(path, json, keyed(key));
      expect([first.status, first.text]).toEqual([again.status, again.text]);
      expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'));
      expect(first.status).toBe(path === SINGLE ? 201 : 200);
      expect(await migrations()).toBe(before);
    }
  });

  it('D7-06 D2-19: the same key with another valid body is a 409, and creates nothing', async () => {
    const key = randomUUID();
    expect((await migrate.one(newUser(), keyed(key))).status).toBe(201);
    const before = await migrations();
    const answer = await migrate.one(newUser(), keyed(key));
    expect(answer.status).toBe(409);
    expect(answer.text).toBe('{"code":-1,"domain":0,"message":"idempotency_conflict"}');
    expect(await migrations()).toBe(before);
  });

  it('D7-14: a documented reason is stored: the same body gets it again, another body is a 409', async () => {
    const user = newUser({ external_id: randomUUID() });
    await migrate.one(user);
    const { wallet_address, external_id } = user;
    for (const [refused, message] of [
      [user, 'duplicate_email'],
      [newUser({ external_id }), 'duplicate_external_id'],
      [newUser({ wallet_address }), 'duplicate_wallet'],
      [{ wallet_address: 'w' }, 'missing_email_and_external_id'],
      [{ wallet_address: 'w', email: ' ' }, 'missing_email_and_external_id'],
    ] as const) {
      const key = randomUUID();
      const first = await migrate.one(refused, keyed(key));
      expect(first).toMatchObject({ status: 400, json: { message } });
      const before = await migrations();
      expect((await migrate.one(refused, keyed(key))).text).toBe(first.text);
      expect(await migrations()).toBe(before);
      expect((await migrate.one(newUser(), keyed(key))).status).toBe(409);
    }
  });

  it.each<[name: string, body: string, status: number, more?: Record<string, string>]>([
    ['malformed JSON', '{"wallet_address": ', 400],
    ['an empty body', '', 400],
    ['a member of the wrong type', '{"wallet_address": 5, "email": "a@x.y"}', 400],
    ['a wallet that is missing', '{"email": "a@x.y"}', 400],
    ['an email over its maximum length', JSON.stringify({ wallet_address: 'w', email: 'x'.repeat(513) }), 400],
    ['another content type', '{}', 400, { 'content-type': 'text/plain' }],
    ['a body over its limit', `{"x": "${'x'.repeat(1_100_000)}"}`, 400],
    ['a token of another class', '{}', 401, { authorization: 'Bearer x.y.z' }],
  ])('D7-14: %s leaves its key free for the corrected request', async (_name, body, status, more) => {
    for (const [path, user] of [
      [SINGLE, newUser()],
      [BULK, { users: [newUser()] }],
    ] as const) {
      const key = randomUUID();
      const limit = path === BULK ? body.replace('x"}', `${'x'.repeat(1_100_000)}"}`) : body;
      const refused = await migrate.raw(path, path === BULK && status === 400 ? limit : body, {
        ...keyed(key),
        ...more,
      });
      expect(refused.status).toBe(status);
      expect((await p.call('POST', path, { token: migrate.token, json: user, headers: keyed(key) })).status).toBe(
        path === SINGLE ? 201 : 200,
      );
    }
  });

  it('D7-14: a bulk response is stored with the outcome of each row: created, skipped or failed', async () => {
    const key = randomUUID();
    const users = [newUser(), { wallet_address: 'w' }, { wallet_address: 'w'.repeat(129), email: 'long@x.y' }];
    const first = await migrate.many(users, keyed(key));
    expect(first.json).toMatchObject({ success: 1, skipped: 1, failed: 1 });
    expect((await migrate.many(users, keyed(key))).text).toBe(first.text);
  });

  it('D7-14: is ignored by routes that do not support it', async () => {
    const headers = keyed('ü');
    const { token } = migrate;
    const { wallet_id, second_network_id, client } = p.demo;
    const network = `/v1/wallets/${wallet_id}/networks/${second_network_id}`;
    expect((await p.call('POST', network, { token, headers })).status).toBe(204);
    expect((await p.call('GET', '/v1/accounts', { token, headers })).status).toBe(200);
    const json = { grant_type: 'client_credentials', ...client };
    const tokens = [1, 2].map(() => p.call('POST', '/v2/oauth/token', { json, headers: keyed('one') }));
    const [one, other] = await Promise.all(tokens);
    expect([one?.status, other?.status]).toEqual([200, 200]);
    expect(one?.json.access_token).not.toBe(other?.json.access_token);
  });

  it('D2-02 D7-06: an invalid body is a 400, even if a response is stored for its key', async () => {
    const key = randomUUID();
    const user = newUser();
    await migrate.one(user, keyed(key));
    expect((await migrate.one({ wallet_address: '' }, keyed(key))).status).toBe(400);
    expect((await migrate.one(user, keyed(key))).status).toBe(201);
  });

  it('D7-07: a server error is not stored: once it is fixed, the same request succeeds', async () => {
    const key = randomUUID();
    const user = newUser();
    await renameTable(p, 'migration_rows', 'migration_rows_away');
    const failed = await migrate.one(user, keyed(key));
    await renameTable(p, 'migration_rows_away', 'migration_rows');
    expect(failed.status).toBe(500);
    expect((await migrate.one(user, keyed(key))).status).toBe(201);
  });

  it('D7-07: is scoped to one node, subject, client and path', async () => {
    const key = randomUUID();
    const body = () => ({ ...newUser(), users: [newUser()] });
    const another = await addClient(p, { scopes: ['users:migrate'] });
    const tokens = [
      migrate.token,
      await p.loginToken(),
      await p.clientToken(another),
      await p.clientToken(p.demo.other_node.client),
    ];
    for (const token of tokens) {
      for (const path of [SINGLE, BULK]) {
        const answer = await p.call('POST', path, { token, json: body(), headers: keyed(key) });
        expect(answer.status).toBe(path === SINGLE ? 201 : 200);
      }
    }
  });

  it('D7-07: different scopes have different hashes', () => {
    const scope = { subject: 'a', clientId: 'b', method: 'POST', path: '/c', key: 'd' };
    const others = [
      scope,
      { ...scope, subject: 'x' },
      { ...scope, clientId: undefined },
      { ...scope, method: 'PUT' },
      { ...scope, path: '/cd', key: '' },
      { ...scope, subject: 'a","b', clientId: undefined },
      { ...scope, key: 'D' },
    ];
    expect(new Set(others.map((of) => scopeHash(of).toString('hex'))).size).toBe(others.length);
  });

  it('D7-06: is valid for 24 hours, and is deleted afterwards', async () => {
    const key = randomUUID();
    const user = newUser();
    await migrate.one(user, keyed(key));
    const { idempotentResponses } = p.service.context;
    const kept = async () => (await rows(p).run((k) => k.selectFrom('idempotent_answers').select('scope'))).length;
    nowMs = START + DAY_MS - 1;
    await idempotentResponses.prune();
    migrate = await migrationsOf(p);
    expect((await migrate.one(user, keyed(key))).status).toBe(201);
    nowMs = START + DAY_MS;
    expect((await migrate.one(user, keyed(key))).json.message).toBe('duplicate_email');
    expect((await migrate.one(user, keyed(key))).json.message).toBe('duplicate_email');
    nowMs = START + 3 * DAY_MS;
    await idempotentResponses.prune();
    expect(await kept()).toBe(0);
  });

  it.each([
    ['empty', ''],
    ['256 characters', 'k'.repeat(256)],
    ['text with a tab inside', 'a\tb'],
    ['a non-ASCII letter', 'é'],
  ])('D7-06: a key that is %s is malformed: 400, and nothing is created', async (_name, key) => {
    const before = await migrations();
    for (const [path, body] of [
      [SINGLE, newUser()],
      [BULK, { users: [newUser()] }],
    ] as const) {
      const answer = await migrate.raw(path, JSON.stringify(body), keyed(key));
      expect(answer).toMatchObject({ status: 400, json: { errors: [{ path: 'Idempotency-Key' }] } });
    }
    expect(await migrations()).toBe(before);
  });

  it.each([
    ['one character', '!'],
    ['255 characters', 'k'.repeat(255)],
    ['text with blanks and quotes', '"a b", c'],
  ])('D7-06: a key that is %s is well-formed', async (_name, key) => {
    expect((await migrate.one(newUser(), keyed(key))).status).toBe(201);
  });
});

function create(json: unknown, key: string, walletId = p.demo.wallet_id) {
  const headers = { 'idempotency-key': key };
  return p.call('POST', `/v1/wallets/${walletId}/rules`, { token: migrate.token, json, headers });
}

async function count(): Promise<number> {
  return (await rows(p).run((k) => k.selectFrom('wallet_rules').select('id'))).length;
}

describe('creating a wallet rule with an idempotency key', () => {
  it('D7-07 D7-06: creates the rule once and repeats status, Location, ETag and the empty body', async () => {
    const [key, rule] = [randomUUID(), autoTransfer()];
    const first = await create(rule, key);
    const before = await count();
    const again = await create(rule, key);
    expect([again.status, again.text, again.headers.get('location'), again.headers.get('etag')]).toEqual([
      201,
      '',
      first.headers.get('location'),
      '"1"',
    ]);
    expect(first.headers.get('location')).toMatch(`/v1/wallets/${p.demo.wallet_id}/rules/`);
    expect(await count()).toBe(before);
  });

  it('D7-07 D2-19: another rule with the same key is a 409, and the key is separate for another wallet', async () => {
    const key = randomUUID();
    expect((await create(autoTransfer(), key)).status).toBe(201);
    expect((await create(autoTransfer(), key)).json.message).toBe('idempotency_conflict');
    const missing = randomUUID();
    expect((await create(autoTransfer(), key, missing)).status).toBe(404);
  });

  it('D7-14: a 404 is not stored: the same request succeeds once the wallet exists', async () => {
    const [key, rule, wallet] = [randomUUID(), autoTransfer(), randomUUID()];
    const first = await create(rule, key, wallet);
    expect([first.status, first.text]).toEqual([404, '{"code":-1,"domain":0,"message":"not_found"}']);
    const demo = await rows(p).run((k) => k.selectFrom('wallets').selectAll().where('id', '=', p.demo.wallet_id));
    await rows(p).run((k) => k.insertInto('wallets').values(demo.map((row) => ({ ...row, id: wallet }))));
    const created = await create(rule, key, wallet);
    expect(created.status).toBe(201);
    expect((await create(rule, key, wallet)).headers.get('location')).toBe(created.headers.get('location'));
    expect((await create(autoTransfer(), key, wallet)).status).toBe(409);
  });

  it('D7-14: PUT ignores a key', async () => {
    const created = await create(autoTransfer(), randomUUID());
    const headers = { 'idempotency-key': randomUUID() };
    for (const version of ['"2"', '"3"']) {
      const location = created.headers.get('location') ?? '';
      const replaced = await p.call('PUT', location, { token: migrate.token, json: autoTransfer(), headers });
      expect([replaced.status, replaced.headers.get('etag')]).toEqual([200, version]);
    }
  });
});
