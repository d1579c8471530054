import { createHmac } from 'node:crypto';
import { afterEach, expect, it, vi } from 'vitest';
import { importJwtKeys, TokenVerifier } from '../../src/access/tokens/token-authenticator.ts';
import { encoded } from '../support/oauth/jwt.ts';

const SECRET = 'a secret of the user class, long enough';
const MEBIBYTE = 1024 * 1024;

afterEach(() => vi.restoreAllMocks());

async function verifierWithCount() {
  const previous = undefined;
  const keys = await importJwtKeys({
    user: { current: SECRET, previous },
    discover: { current: `${SECRET} 2`, previous },
    legacy: { current: `${SECRET} 3`, previous },
  });
  const verify = vi.spyOn(crypto.subtle, 'verify');
  return { verifier: new TokenVerifier(keys), runs: () => verify.mock.calls.length };
}

function token(id: number, padding = ''): string {
  const input = `${encoded({ alg: 'HS256' })}.${encoded({ id, padding })}`;
  return `${input}.${createHmac('sha256', SECRET).update(input).digest('base64url')}`;
}

it('D3-01: a signature is verified once per token', async () => {
  const { verifier, runs } = await verifierWithCount();
  for (let time = 0; time < 3; time += 1) expect((await verifier.verify(token(1), ['user'])).claims.id).toBe(1);
  expect(runs()).toBe(1);
  await expect(verifier.verify(token(1), ['legacy'])).rejects.toMatchObject({ code: 'unauthorized' });
});

it('D3-01: the cache of verified tokens is bounded by their length: long tokens evict each other', async () => {
  const { verifier, runs } = await verifierWithCount();
  const padding = 'x'.repeat(11_000);
  const count = Math.ceil((16 * MEBIBYTE) / token(0, padding).length) + 1;
  const tokens = Array.from({ length: count }, (_, id) => token(id, padding));
  for (const long of tokens) await verifier.verify(long, ['user']);
  expect(runs()).toBe(count);
  await verifier.verify(tokens.at(-1) ?? '', ['user']);
  expect(runs()).toBe(count);
  await verifier.verify(tokens[0] ?? '', ['user']);
  expect(runs()).toBe(count + 1);
});

it('7.6-02: a token over 16 KiB is rejected before its signature is verified', async () => {
  const { verifier, runs } = await verifierWithCount();
  await expect(verifier.verify(token(1, 'x'.repeat(13_000)), ['user'])).rejects.toMatchObject({ code: 'unauthorized' });
  expect(runs()).toBe(0);
});
