import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { temporaryFolder } from '../../test/support/services/folders.ts';
import { DEFECTS, type Defect } from './defects.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const USAGE_ERROR = 2;

/** What the tests of a defect have said. */
interface Verdict {
  /** The first test that failed, with its file; undefined where all passed, or none could run. */
  failure: string | undefined;
  passed: number;
  /** What went wrong other than a test. */
  trouble: string;
  seconds: number;
}

/**
 * `npm run -s defects -- [word…]`: plants each defect, or those whose names contain one of the words, in a copy of the
 * project, one at a time, and runs the tests that must catch it. Ends with 1 if one is not caught.
 */
async function main(words: readonly string[]): Promise<void> {
  const chosen = DEFECTS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  if (chosen.length === 0) {
    process.stderr.write(`No defect has such a name. There are:\n${DEFECTS.map(({ name }) => `${name}\n`).join('')}`);
    process.exitCode = USAGE_ERROR;
    return;
  }
  const copy = await temporaryFolder();
  try {
    copyProject(copy);
    const sound = await runTests(copy, [...new Set(chosen.flatMap(({ caughtBy }) => caughtBy))]);
    if (sound.failure !== undefined || sound.passed === 0) {
      process.stderr.write(`Without any defect a test fails: ${sound.failure ?? sound.trouble}\n`);
      process.exitCode = 1;
      return;
    }
    process.stdout.write('| defect | caught by | seconds |\n|---|---|---|\n');
    for (const defect of chosen) {
      const { failure, trouble, seconds } = await withDefect(copy, defect);
      if (failure === undefined) process.exitCode = 1;
      process.stdout.write(`| ${defect.name} | ${failure ?? `NOTHING ${trouble}`} | ${seconds} |\n`);
    }
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** Copies what is in the work tree, without what git ignores, and lends the copy the packages. */
function copyProject(copy: string): void {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT });
  for (const file of listed.toString().split('\0').filter(Boolean)) {
    cpSync(join(ROOT, file), join(copy, file), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
}

async function withDefect(copy: string, { file, find, replacement, caughtBy }: Defect): Promise<Verdict> {
  const path = join(copy, file);
  const sound = readFileSync(path, 'utf8');
  const parts = sound.split(find);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times the text to replace`);
  writeFileSync(path, parts.join(replacement));
  try {
    return await runTests(copy, caughtBy);
  } finally {
    writeFileSync(path, sound);
  }
}

/** Runs test files until the first failure. A file that cannot be loaded has no failed test, and catches nothing. */
async function runTests(copy: string, files: readonly string[]): Promise<Verdict> {
  const report = join(copy, 'report.json');
  await rm(report, { force: true });
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--bail=1', '--reporter=json', `--outputFile=${report}`, ...files];
  const begun = performance.now();
  const env = { ...process.env, CI: undefined, TEST_SERVICES: '' };
  const child = spawn(process.execPath, args, { cwd: copy, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const [stderr] = await Promise.all([child.stderr.toArray(), once(child, 'exit')]);
  const seconds = Math.round((performance.now() - begun) / 1_000);
  const { testResults, numPassedTests: passed } = readReport(report, Buffer.concat(stderr).toString());
  const failures = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName }) => `${name.slice(copy.length + 1)}: ${fullName}`),
  );
  const trouble = testResults
    .map(({ message }) => message.split('\n')[0] ?? '')
    .join(' ')
    .trim();
  return { failure: failures[0], passed, trouble, seconds };
}

interface Report {
  numPassedTests: number;
  testResults: { name: string; message: string; assertionResults: { status: string; fullName: string }[] }[];
}

function readReport(path: string, stderr: string): Report {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new Error(`the tests left no report: ${stderr}`, { cause });
  }
}

await main(process.argv.slice(2));
