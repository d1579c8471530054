import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';

const SEEDS = inject('isThorough') ? 1_000 : 20;

it('D6-25: the estimated weight of a parsed value is at least its heap size divided by 1.5', () => {
  const program = join(import.meta.dirname, '../support/limits/measure-values.ts');
  const { stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', program, String(SEEDS)], { encoding: 'utf8' });
  expect(stderr.replaceAll(/^.*Warning.*$|^\(Use .*$/gm, '').trim()).toBe('');
  const { measured, worst } = JSON.parse(stdout);
  expect(measured).toBe(SEEDS);
  expect(worst.ratio, JSON.stringify(worst)).toBeLessThan(1.5);
});
