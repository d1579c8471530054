import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { linksOf } from '../support/docs/markdown.ts';
import { operationsPages } from '../support/docs/plan.ts';
import { ROOT } from '../support/start/process.ts';

const MOST_WORDS = 1_200;
const DECISIONS = globSync('docs/decisions/[0-9]*.md', { cwd: ROOT }).sort();
const SECTIONS = ['Context', 'Decision', 'Consequences'];

it.each([
  ['docs/operations/README.md', operationsPages()],
  ['docs/decisions/README.md', DECISIONS],
])('%s links to every page of its folder', (index, pages) => {
  const led = linksOf(index).map(({ target }) => normalize(join(dirname(index), target.split('#')[0] ?? '')));
  expect(pages.length).toBeGreaterThan(10);
  expect(pages.filter((page) => page !== index && !led.includes(page))).toEqual([]);
});

it.each(operationsPages())(`%s has at most ${MOST_WORDS} words`, (page) => {
  const words = read(page).match(/\S*\w\S*/g) ?? [];
  expect(words.length).toBeLessThanOrEqual(MOST_WORDS);
});

it.each(DECISIONS)('%s has a number, date, context, decision and consequences, in this order', (page) => {
  const text = read(page);
  const number = basename(page).slice(0, 3);
  expect(text).toMatch(new RegExp(`^# ${number}\\. .+\n\nDate: \\d{4}-\\d\\d-\\d\\d\n\n## `));
  expect([...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)).toEqual(SECTIONS);
});

function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}
