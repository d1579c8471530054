import { globSync } from 'node:fs';
import { ROOT } from '../start/process.ts';
import { type Block, blocksOf } from './markdown.ts';

const RUN_LANGUAGES: ReadonlySet<string> = new Set(['sh', 'js', 'ts']);
const ANSWER_LANGUAGES: ReadonlySet<string> = new Set(['json', 'http']);

/** Where the pages' blocks are run: on one embedded instance, or on PostgreSQL, Redis and Kafka. */
const ON_REAL_SERVERS: ReadonlySet<string> = new Set(['docs/quickstart/operator.md', ...operationsPages()]);

/** Pages whose blocks are not run, and why. */
const PAGES_NOT_RUN: Readonly<Record<string, string>> = {
  'docs/cli.md': 'made of the commands themselves; test/cli/examples.test.ts parses each example',
  'docs/configuration.md': 'made of the schema of the variables; its test compares it',
  'docs/contract.md': 'has no commands to follow: test/contract/contract-page.test.ts holds it',
  'docs/dependencies.md': 'made of the lockfile; its test compares it',
  'docs/testing.md': 'its commands run this suite, or last for hours',
  'docs/measured.md': 'says how figures were measured: bench/ and test/long are run for that, for hours',
};

/** Blocks that are not run though their fence does not say so, by what they begin with, and why. */
export const BLOCKS_NOT_RUN: readonly { page: string; begins: string; reason: string }[] = [
  { page: 'README.md', begins: 'npm ci && npm start', reason: '.ci/main-line runs it in a fresh clone' },
  { page: 'README.md', begins: 'npm ci && npm test', reason: '.ci/run runs it: it runs this test' },
];

/** A block that is run, and what its answer is said to be. */
export interface Step {
  block: Block;
  answer: Block | undefined;
}

/** The pages of the operator's manual. */
export function operationsPages(): string[] {
  return globSync('docs/operations/*.md', { cwd: ROOT }).sort();
}

/** The pages that are written to be followed. */
export function pagesToRun(): { embedded: string[]; real: string[] } {
  const pages = ['README.md', ...globSync('docs/{,operations/,quickstart/}*.md', { cwd: ROOT }).sort()].filter(
    (page) => !(page in PAGES_NOT_RUN),
  );
  return {
    embedded: pages.filter((page) => !ON_REAL_SERVERS.has(page)),
    real: pages.filter((page) => ON_REAL_SERVERS.has(page)),
  };
}

/** The blocks of a page that are run, in order, each with the answer that stands behind it in its section. */
export function stepsOf(page: string): Step[] {
  const blocks = blocksOf(page);
  return blocks.flatMap((block, index) => {
    if (!RUN_LANGUAGES.has(block.lang) || reasonNotToRun(block) !== undefined) return [];
    const next = blocks[index + 1];
    const isAnswer = next && ANSWER_LANGUAGES.has(next.lang) && next.section === block.section;
    return [{ block, answer: isAnswer ? next : undefined }];
  });
}

/** Why a block is not run; undefined where it is. */
function reasonNotToRun({ page, info, text }: Block): string | undefined {
  const [, said] = /\bnot-run:\s*(.+)$/.exec(info) ?? [];
  return said ?? BLOCKS_NOT_RUN.find((block) => block.page === page && text.startsWith(block.begins))?.reason;
}

/** The blocks of the pages to run that hold a command and are not run: the first line of each, and why. */
export function notRun(): [block: string, reason: string][] {
  const { embedded, real } = pagesToRun();
  return [...embedded, ...real]
    .flatMap(blocksOf)
    .filter(({ lang }) => RUN_LANGUAGES.has(lang))
    .flatMap((block): [string, string][] => {
      const reason = reasonNotToRun(block);
      return reason === undefined ? [] : [[`${block.page}: ${block.text.split('\n')[0]} (${reason})`, reason]];
    });
}
