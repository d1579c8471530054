import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../start/process.ts';
import { differences } from './answers.ts';
import type { Block } from './markdown.ts';
import { type Step, stepsOf } from './plan.ts';

/** Where and with what a page is followed. */
export interface Reader {
  /** What stands for what in the blocks: addresses and the page's own placeholders. */
  instead: Readonly<Record<string, string>>;
  env: Readonly<Record<string, string>>;
  /** What the folder has besides: a file's text by its name. */
  files?: Readonly<Record<string, string>>;
  /** What `.data` is, where there is one. */
  dataDir?: string;
}

/**
 * Follows a page as its reader would: every block in one shell and one folder, in order, until one fails.
 * @returns what went wrong, with the lines of the page; empty where nothing did.
 */
export async function followed(page: string, reader: Reader): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-docs-'));
  try {
    await furnish(folder, reader);
    const steps = stepsOf(page);
    const text = (block: Block) => replaced(block.text, reader.instead);
    for (const [index, { block }] of steps.entries()) await writeFile(join(folder, fileOf(block, index)), text(block));
    await writeFile(join(folder, 'page.sh'), scriptOf(steps));
    const code = await run(folder, reader.env);
    const done = code === 0 ? steps.length : Number(readFileSync(join(folder, 'current'), 'utf8'));
    const wrong = steps.slice(0, done).flatMap((step, index) => answered(step, outputOf(folder, index), reader));
    const failed = steps[done];
    if (failed) wrong.push(`${placeOf(failed.block)} ends with ${code}:\n${errorsOf(folder, done)}`);
    return wrong.length === 0 ? wrong : [...wrong, ...logsIn(folder)];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function answered({ answer }: Step, output: string, { instead }: Reader): string[] {
  if (!answer) return [];
  const shown = { ...answer, text: replaced(answer.text, instead) };
  try {
    return differences(shown, output).map((what) => `${placeOf(answer)}: ${what}`);
  } catch (error) {
    return [`${placeOf(answer)}: ${error}\n${output}`];
  }
}

/** A folder in which `node` and the program are this checkout's. */
async function furnish(folder: string, { files = {}, dataDir }: Reader): Promise<void> {
  await mkdir(join(folder, 'path'));
  await symlink(process.execPath, join(folder, 'path/node'));
  for (const name of ['bin', 'node_modules', 'schema', 'src']) await symlink(join(ROOT, name), join(folder, name));
  if (dataDir !== undefined) await symlink(dataDir, join(folder, '.data'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

/** A block with the name of a file in its fence is that file; another is a step of its own. */
function fileOf({ lang, info }: Block, index: number): string {
  return /^[\w-]+\.[jt]s\b/.exec(info)?.[0] ?? `step-${index}.${lang === 'sh' ? 'sh' : `m${lang}`}`;
}

function scriptOf(steps: readonly Step[]): string {
  const lines = steps.map(({ block }, index) => {
    const file = fileOf(block, index);
    const command = block.lang === 'sh' ? `source ./${file}` : file.startsWith('step-') ? `node ${file}` : ':';
    return `echo ${index} >current\n${command} >out-${index} 2>err-${index} </dev/null\n`;
  });
  return `set -euo pipefail\n${lines.join('')}`;
}

/** Whatever a page has started and not ended goes with its process group. */
async function run(folder: string, env: Readonly<Record<string, string>>): Promise<number | null> {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn('bash', ['page.sh'], {
    cwd: folder,
    detached: true,
    stdio: 'ignore',
    env: {
      PATH: `${join(folder, 'path')}:${PATH}`,
      HOME,
      LANG: 'C.UTF-8',
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      // The client package, which is built only when it is packed.
      NODE_OPTIONS: '--conditions=@portcullis/source',
      ...env,
    },
  });
  try {
    const [code] = await once(child, 'exit');
    return code;
  } finally {
    endGroup(child.pid);
  }
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All of it has ended already.
  }
}

function outputOf(folder: string, index: number): string {
  return readFileSync(join(folder, `out-${index}`), 'utf8');
}

function errorsOf(folder: string, index: number): string {
  return readFileSync(join(folder, `err-${index}`), 'utf8') + outputOf(folder, index);
}

/** What the processes that a page has started have warned of. */
function logsIn(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.log'));
  return names.flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('{"level":"info"'))
      .map((line) => `${name}: ${line}`),
  );
}

function placeOf({ page, line }: Block): string {
  return `${page}:${line}`;
}

function replaced(text: string, instead: Reader['instead']): string {
  return Object.entries(instead).reduce((all, [from, to]) => all.replaceAll(from, to), text);
}
