import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

/** A call of the client guards. */
const CALL = /\bguards\??\.check\(/g;

it('5.3-03: the client guards are called in one place, for all interfaces', () => {
  const calls = globSync('src/**/*.ts').flatMap((file) =>
    Array.from(readFileSync(file, 'utf8').matchAll(CALL), () => file),
  );
  expect(calls).toEqual(['src/gateway/exchange/exchange.ts']);
});
