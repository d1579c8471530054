import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { sourceFiles } from '../support/architecture/imports.ts';
import { ROOT } from '../support/start/process.ts';

it('no two advisory locks share a number, so that work under one never waits for the other', () => {
  const numbers = sourceFiles().flatMap((file) =>
    Array.from(readFileSync(join(ROOT, 'src', file), 'utf8').matchAll(/LOCK = ([\d_]+);/g), ([, number]) => number),
  );
  expect(numbers.length).toBeGreaterThan(4);
  expect(numbers).toEqual([...new Set(numbers)]);
});
