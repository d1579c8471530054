import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { autoTransfer } from '../support/wallet-rules/rules.ts';

const p = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await p.clientToken();
});

function create(json: unknown, key: string, walletId = p.demo.wallet_id) {
  const headers = { 'idempotency-key': key };
  return p.call('POST', `/v1/wallets/${walletId}/rules`, { token, json, headers });
}

async function count(): Promise<number> {
  return (await rows(p).run((k) => k.selectFrom('wallet_rules').select('id'))).length;
}

describe('a rule under a key', () => {
  it('D7-07 D7-06: is created once; status, Location, ETag and the empty body come again', async () => {
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

  it('D7-07 D2-19: another rule under it is a 409, and at another wallet a key of its own', async () => {
    const key = randomUUID();
    expect((await create(autoTransfer(), key)).status).toBe(201);
    expect((await create(autoTransfer(), key)).json.message).toBe('idempotency_conflict');
    const missing = randomUUID();
    expect((await create(autoTransfer(), key, missing)).status).toBe(404);
  });

  it('D7-14: a 404 leaves its key free: the same request succeeds once the wallet is there', async () => {
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
      const replaced = await p.call('PUT', location, { token, json: autoTransfer(), headers });
      expect([replaced.status, replaced.headers.get('etag')]).toEqual([200, version]);
    }
  });
});
