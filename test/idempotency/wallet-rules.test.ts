import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Portcullis, startPortcullis } from '../harness.ts';
import { rows } from '../oauth/clients.ts';
import { autoTransfer } from '../wallet-rules/rules.ts';

let p: Portcullis;
let token: string;

beforeAll(async () => {
  p = await startPortcullis();
  token = await p.clientToken();
});
afterAll(() => p[Symbol.asyncDispose]());

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
    expect((await create(autoTransfer(), key, missing)).status).toBe(409);
  });

  it('D7-07: a 404 is kept, bytes and all', async () => {
    const [key, rule, missing] = [randomUUID(), autoTransfer(), randomUUID()];
    const first = await create(rule, key, missing);
    expect([first.status, first.text]).toEqual([404, '{"code":-1,"domain":0,"message":"not_found"}']);
    const again = await create(rule, key, missing);
    expect([again.status, again.text]).toEqual([first.status, first.text]);
  });
});
