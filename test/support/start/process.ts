import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';

export const ROOT = resolve(import.meta.dirname, '../../..');

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: { start: string } };
/** What `npm start` passes to Node. */
const START = scripts.start.replace(/^.*exec node /, '').split(' ');

const CLI = 'src/cli/portcullis.ts';
/** What the first line of the command line's program passes to Node. */
const SHEBANG_FLAGS = (readFileSync(join(ROOT, CLI), 'utf8').split('\n')[0] ?? '').split(' ').slice(3);

/** How a process ended and what it printed. */
export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** A process that was started; disposing kills it. */
export interface Spawned extends AsyncDisposable {
  pid: number;
  ended: Promise<Ended>;
  /** What it has printed so far. */
  stdout(): string;
  kill(signal: NodeJS.Signals): Promise<Ended>;
}

/** An instance that listens. */
export interface Running extends Spawned {
  baseUrl: string;
  adminUrl: string;
}

/** The environment of a process: nothing of the test's own but what a shell needs, and what former processes have compiled. */
export type Variables = Record<string, string>;

/** A process that ends soon lives too short for its code, that of the embedded database too, to be worth optimising. */
export const SHORT_LIFE: readonly string[] = ['--liftoff-only', '--max-opt=2', '--single-threaded-gc'];

/** Runs Node as `npm start` does, and with further flags, on free ports unless told otherwise; by way of a command, in another source tree. */
export function spawnInstance(
  variables: Variables,
  flags: readonly string[] = SHORT_LIFE,
  through: readonly string[] = [],
  tree = ROOT,
): Spawned {
  // What is on the command line goes before NODE_OPTIONS.
  const own = START.filter((flag) => !variables.NODE_OPTIONS?.includes(flag.replace(/=.*/, '=')));
  return spawnNode([...flags, ...own], { PORT: '0', ADMIN_PORT: '0', ...variables }, '', { through, tree });
}

/** Starts an instance and waits until it serves. */
export function startInstance(
  variables: Variables,
  flags: readonly string[] = SHORT_LIFE,
  through: readonly string[] = [],
  tree = ROOT,
): Promise<Running> {
  return serving(spawnInstance(variables, flags, through, tree));
}

/** Starts `bin/portcullis` as a user does. */
export function spawnProgram(args: readonly string[], variables: Variables = {}, input = ''): Spawned {
  const [program, ...rest] = [join(ROOT, 'bin/portcullis'), ...args];
  return spawnChild(program, rest, variables, input, ROOT);
}

/** Starts an instance by `bin/portcullis start`, and waits until it serves. */
export function startProgram(variables: Variables): Promise<Running> {
  return serving(spawnProgram(['start'], { PORT: '0', ADMIN_PORT: '0', ...variables }));
}

async function serving(spawned: Spawned): Promise<Running> {
  // A worker has no public listener.
  const started = /^\{(?:.*"base_url":"(?<baseUrl>[^"]+)",)?.*"admin_url":"(?<adminUrl>[^"]+)".*"msg":"started"\}$/m;
  const found = await printed(spawned, started);
  return { ...spawned, baseUrl: found.baseUrl ?? '', adminUrl: found.adminUrl ?? '' };
}

/** Runs a command of the command line to its end. */
export function runCli(
  args: readonly string[],
  variables: Variables = {},
  input: string | Readable = '',
  tree = ROOT,
): Promise<Ended> {
  return spawnCli(args, variables, input, tree).ended;
}

/** Starts a command of the command line. */
export function spawnCli(
  args: readonly string[],
  variables: Variables = {},
  input: string | Readable = '',
  tree = ROOT,
): Spawned {
  return spawnNode([...SHORT_LIFE, ...SHEBANG_FLAGS, CLI, ...args], variables, input, { tree });
}

/** Waits until the standard output has the pattern; throws when the process ends before. */
export async function printed(spawned: Spawned, pattern: RegExp): Promise<Record<string, string>> {
  const ended = spawned.ended.then((end) => {
    throw new Error(`the process ended (${end.code ?? end.signal}) before it printed ${pattern}: ${end.stderr}`);
  });
  for (;;) {
    const match = pattern.exec(spawned.stdout());
    if (match) {
      ended.catch(() => undefined);
      return { ...match.groups };
    }
    await Promise.race([ended, new Promise((tick) => setTimeout(tick, 10))]);
  }
}

function spawnNode(
  args: readonly string[],
  variables: Variables,
  input: string | Readable,
  { through = [], tree }: { through?: readonly string[]; tree: string },
): Spawned {
  const [command = process.execPath, ...rest] = [...through, process.execPath, ...args];
  return spawnChild(command, rest, variables, input, tree);
}

function spawnChild(
  command: string,
  args: readonly string[],
  variables: Variables,
  input: string | Readable,
  cwd: string,
): Spawned {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE } = process.env;
  const child = spawn(command, args, { cwd, env: { PATH, HOME, NODE_COMPILE_CACHE, ...variables } });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  child.stdin.on('error', () => undefined);
  if (typeof input === 'string') child.stdin.end(input);
  else input.pipe(child.stdin);
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, ...output }));
  const kill = async (signal: NodeJS.Signals) => {
    if (isAlive(child)) child.kill(signal);
    return ended;
  };
  return {
    pid: child.pid ?? 0,
    ended,
    stdout: () => output.stdout,
    kill,
    [Symbol.asyncDispose]: async () => void (await kill('SIGKILL')),
  };
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}
