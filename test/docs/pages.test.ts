import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { buildSchema, parse, validate } from 'graphql';
import { expect, it } from 'vitest';
import { allPages, anchorsOf, blocksOf, linksOf } from '../support/docs/markdown.ts';
import { BLOCKS_NOT_RUN, notRun, pagesToRun } from '../support/docs/plan.ts';
import { ROOT } from '../support/start/process.ts';

const PAGES = allPages();
const EXTERNAL = /^(?:[a-z]+:|\/\/)/;

/** What is wrong with a link; undefined where it leads somewhere. */
function fault(page: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : normalize(join(dirname(page), decodeURIComponent(path)));
  if (!existsSync(join(ROOT, file))) return `${file} is missing`;
  if (anchor === undefined || !file.endsWith('.md')) return undefined;
  return anchorsOf(file).has(anchor) ? undefined : `${file} has no heading #${anchor}`;
}

it.each(PAGES)('every relative link of %s leads to an existing file and heading', (page) => {
  const broken = linksOf(page)
    .filter(({ target }) => !EXTERNAL.test(target))
    .flatMap(({ line, target }) => {
      const what = fault(page, target);
      return what === undefined ? [] : [`${page}:${line}: ${what}`];
    });
  expect(broken).toEqual([]);
});

it('every file of deploy/ that a page names exists', () => {
  const named = PAGES.flatMap((page) =>
    // What follows exec is a Deployment in the cluster.
    Array.from(
      readFileSync(join(ROOT, page), 'utf8').matchAll(/(?<![\w/]|exec )deploy\/[\w./@-]*\w/g),
      ([path]) => path,
    ),
  );
  expect(named).toContain('deploy/new-secrets.sh');
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

it('every GraphQL operation in a page is valid on the schema', () => {
  const schema = buildSchema(readFileSync(join(ROOT, 'schema/schema.graphql'), 'utf8'));
  const { embedded, real } = pagesToRun();
  const wrong = [...embedded, ...real]
    .flatMap(blocksOf)
    .filter(({ lang }) => lang === 'graphql')
    .flatMap(({ page, line, text }) =>
      validate(schema, parse(text)).map(({ message }) => `${page}:${line}: ${message}`),
    );
  expect(wrong).toEqual([]);
});

it.each(notRun())('%s is not run, with a reason', (_first, reason) => {
  expect(reason).toMatch(/\w+ \w+/);
});

it('every exception names an existing block', () => {
  const stale = BLOCKS_NOT_RUN.filter(
    ({ page, begins }) => !blocksOf(page).some(({ text }) => text.startsWith(begins)),
  );
  expect(stale).toEqual([]);
});

it('the info string of a code block has only parts that this suite understands', () => {
  const unknown = PAGES.flatMap(blocksOf).filter(
    ({ info }) => info !== '' && !/^(?:[\w-]+\.[jt]s|fixed(?:: [\w, -]+)?|not-run: .+)$/.test(info),
  );
  expect(unknown.map(({ page, line, info }) => `${page}:${line}: ${info}`)).toEqual([]);
});
