import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/start/process.ts';

/** Each match of a pattern in the sources, with the file that has it. */
function found(pattern: RegExp, sources = 'src/**/*.ts'): { file: string; match: RegExpExecArray }[] {
  return globSync(sources, { cwd: ROOT }).flatMap((file) =>
    Array.from(readFileSync(join(ROOT, file), 'utf8').matchAll(pattern), (match) => ({ file, match })),
  );
}

const filesOf = (matches: ReturnType<typeof found>) => matches.map(({ file }) => file);

it('no two advisory locks share a number, so that work under one never waits for the other', () => {
  const numbers = found(/LOCK = ([\d_]+);/g).map(({ match }) => match[1]);
  expect(numbers.length).toBeGreaterThan(4);
  expect(numbers).toEqual([...new Set(numbers)]);
});

it('5.3-03: the client guards are called in one place for all requests, and in one for open connections', () => {
  expect(filesOf(found(/\bguards\??\.check\(/g)).sort()).toEqual([
    'src/access/revocation/access-watch.ts',
    'src/gateway/exchange/exchange.ts',
  ]);
});

it('rows are plain objects: only the schema migrations use an entity manager', () => {
  const uses = found(/^(?!\s*(?:\/\/|\/?\*)).*(?:\bem\b|\borm\.|EntityManager|EntityRepository|getRepository)/gm);
  expect(new Set(filesOf(uses))).toEqual(new Set(['src/platform/database/schema-migrations.ts']));
});

/** An HTTP status that is given to a refusal, or compared with one. */
const STATUS = /\bRefusal\(\s*\d|\bRefusal [1-5]\d\d\b|(?<!Code)\b[Ss]tatus(?: [=<>]==?|:) [1-5]\d\d\b/g;

it('names no HTTP status of a response below the gateway', () => {
  for (const text of ['new Refusal(409)', '@throws Refusal 503 when', 'error.status === 404', '{ status: 500 }']) {
    expect(text.match(STATUS)).toHaveLength(1);
  }
  expect(filesOf(found(STATUS, 'src/{access,audit,domain,events,lib,platform,tables}/**/*.ts'))).toEqual([]);
});
