import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const BELOW = 'src/{access,audit,domain,events,lib,platform,tables}/**/*.ts';
/** An HTTP status that is given to a refusal, or compared with one. */
const STATUS = /\bRefusal\(\s*\d|\bRefusal [1-5]\d\d\b|(?<!Code)\b[Ss]tatus(?: [=<>]==?|:) [1-5]\d\d\b/;

it.each(['new Refusal(409)', '@throws Refusal 503 when', 'error.status === 404', '{ status: 500 }'])(
  'finds a status in %s',
  (text) => {
    expect(text).toMatch(STATUS);
  },
);

it('names no HTTP status of a response below the gateway', () => {
  const files = globSync(BELOW);
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((file) => STATUS.test(readFileSync(file, 'utf8')))).toEqual([]);
});
