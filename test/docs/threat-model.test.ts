import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { read } from '../support/deploy/files.ts';
import { ROOT } from '../support/start/process.ts';

const page = read('docs/threat-model.md');

function section(title: string): string {
  return page.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
}

const boundaries = Array.from(section('Boundaries').matchAll(/^- \*\*(.+?)\*\*: /gm), ([, name = '']) => name);
/** The cells of each attack: its boundary, what it is, what holds, the tests. */
const attacks = section('Attacks')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(1)
  .map((line) => line.slice(2, -2).split(' | '));
const testsOf = (cell = '') => Array.from(cell.matchAll(/`([^`]+)`/g), ([, path = '']) => path);

it('the threat model has an attack for each boundary, and every attack names a listed boundary', () => {
  expect(boundaries.length).toBeGreaterThan(10);
  expect(new Set(attacks.map(([boundary]) => boundary))).toEqual(new Set(boundaries));
});

it.each(attacks)('%s: %s: names tests that exist', (...cells) => {
  expect(cells).toHaveLength(4);
  const tests = testsOf(cells[3]);
  expect(tests.length).toBeGreaterThan(0);
  for (const path of tests) {
    expect(path).toMatch(/^test\/.+\.test\.ts$/);
    expect(existsSync(join(ROOT, path)), path).toBe(true);
  }
});

it('README, the threat model and SECURITY.md link to one another', () => {
  expect(read('README.md')).toContain('](SECURITY.md)');
  expect(read('README.md')).toContain('](docs/threat-model.md)');
  expect(read('SECURITY.md')).toContain('](docs/threat-model.md)');
  expect(page).toContain('](../SECURITY.md)');
});
