import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEFECTS } from '../../tools/defects/defects.ts';
import { ROOT } from '../support/start/process.ts';

describe('the planted defects', () => {
  it('are at least thirty, with distinct names', () => {
    expect(new Set(DEFECTS.map(({ name }) => name)).size).toBe(DEFECTS.length);
    expect(DEFECTS.length).toBeGreaterThanOrEqual(30);
  });

  it.each(DEFECTS)('can be planted: $name', ({ file, find, replacement, caughtBy }) => {
    expect(readFileSync(join(ROOT, file), 'utf8').split(find)).toHaveLength(2);
    expect(replacement).not.toBe(find);
    expect(caughtBy.filter((test) => !existsSync(join(ROOT, test)))).toEqual([]);
    expect(caughtBy.length).toBeGreaterThan(0);
  });
});
