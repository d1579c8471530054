import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MEMORY_KIB } from '../../src/access/credentials/passwords.ts';
import { CACHED_CHARACTERS } from '../../src/access/tokens/token-authenticator.ts';
import { KEPT_CHARACTERS } from '../../src/api/graphql/execution/shared-results.ts';
import { MAX_QUEUED_BYTES } from '../../src/events/bus/publish-queue.ts';
import { MAX_WAITING_STATEMENTS } from '../../src/platform/database/open-database.ts';
import { totalBytesOf } from '../../src/platform/held-memory.ts';
import { HEAPS } from '../support/limits/heaps.ts';

const ROOT = join(import.meta.dirname, '../..');
const MIB = 1024 * 1024;
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The rows of the page, in MiB. */
function rowsOfPage(): Record<string, number> {
  const [, section = ''] = textOf('docs/operations/capacity.md').split('### What a gateway of 1 GiB holds at worst');
  const rows = (section.split('\n## ')[0] ?? '').matchAll(/^\| \**([^|*]+?)\** \|[^|]*\| \**(\d+)\** \|$/gm);
  return Object.fromEntries(Array.from(rows, ([, what = '', figure]) => [what, Number(figure)]));
}

it('D6-25: the capacity page adds up the maximum memory of a gateway from the limits in the code', () => {
  const { together, 'the program itself, with its code': program = 0, ...limits } = rowsOfPage();
  const requests = totalBytesOf(HEAPS.image * MIB) / MIB;
  const mebibytes = {
    requests,
    'copies of what requests hold that the estimates leave out': requests / 2,
    'statements that wait for a connection': (MAX_WAITING_STATEMENTS * 2) / 1024,
    'messages that wait for Kafka': MAX_QUEUED_BYTES / MIB,
    'results kept for subscribers that are behind': (2 * KEPT_CHARACTERS) / MIB,
    'verified tokens': (2 * CACHED_CHARACTERS) / MIB,
    'password hashing': MEMORY_KIB / 1024,
    'connections without a request': (10_000 * 21 * 1_000) / MIB,
  };
  expect(limits).toEqual(Object.fromEntries(Object.entries(mebibytes).map(([what, size]) => [what, Math.ceil(size)])));
  expect(together).toBe(Object.values(limits).reduce((sum, size) => sum + size, program));
  expect(together).toBeLessThan(1_024);
});

it('D6-25: the heap of the image fits the memory limit in deploy/ and compose.yaml', () => {
  expect(textOf('docs/operations/capacity.md')).toContain(`a heap of ${HEAPS.image} MiB`);
  for (const pod of ['gateway', 'worker'])
    expect(textOf(`deploy/kubernetes/${pod}.yaml`)).toContain('limits: { memory: 1Gi }');
  expect(textOf('compose.yaml')).toContain('mem_limit: 1g');
});
