import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lastLines } from './commands.ts';
import { watch } from './watchdog.ts';

const POLL_MS = 10;
const STOP_TIMEOUT_MS = 10_000;
const START_TIMEOUT_MS = 60_000;

export interface ChildOptions {
  name: string;
  command: string;
  args: string[];
  dataDir: string;
  env?: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
  /** Text for the standard input of the server. */
  input?: string;
  /** What the server's log says once it serves. */
  ready: RegExp;
  stopSignal: NodeJS.Signals;
  /** The signal of the watchdog, when this process has died. */
  abandonSignal: NodeJS.Signals;
}

export interface RunningChild {
  pid: number;
  /** Ends the process in order, by force after 10 s, and returns when it has ended. May be called again. */
  stop(): Promise<void>;
}

/**
 * Starts a server in a session of its own, so that an interrupt from the terminal reaches this process alone, with its
 * output in `dataDir/server.log`, and returns when the log says that it serves. A watchdog ends it with this process.
 */
export async function startChild(options: ChildOptions): Promise<RunningChild> {
  const logPath = join(options.dataDir, 'server.log');
  const log = openSync(logPath, 'w');
  const { name, dataDir, env = process.env, uid, gid } = options;
  const user = uid === undefined || gid === undefined ? {} : { uid, gid };
  const input = options.input === undefined ? 'ignore' : 'pipe';
  const child = spawn(options.command, options.args, {
    ...user,
    cwd: dataDir,
    detached: true,
    env: { ...env, LC_ALL: 'C' },
    stdio: [input, log, log],
  });
  closeSync(log);
  await once(child, 'spawn');
  const { pid } = child;
  if (pid === undefined) throw new Error(`${name} has no process id`);
  const exited = once(child, 'exit');
  const dismiss = watch({ pid, signal: options.abandonSignal, dataDir });
  child.once('exit', dismiss);
  child.unref();
  // The log tells why a server that ended early did not read its input.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(options.input);
  const stop = () => stopChild(child, exited, options.stopSignal);
  try {
    await serving(child, name, logPath, options.ready);
  } catch (error) {
    await stop();
    throw error;
  }
  return { pid, stop };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function serving(child: ChildProcess, name: string, logPath: string, ready: RegExp): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const ended = hasEnded(child);
    const text = await readFile(logPath, 'utf8');
    if (ended) throw new Error(`${name} ended while starting: ${lastLines(text)}`);
    if (ready.test(text)) return;
    if (performance.now() > deadline) throw new Error(`${name} does not serve after 60 s: ${lastLines(text)}`);
    await delay(POLL_MS);
  }
}

async function stopChild(child: ChildProcess, exited: Promise<unknown>, signal: NodeJS.Signals): Promise<void> {
  if (hasEnded(child)) return;
  child.ref();
  // A frozen process takes a signal only after it goes on.
  child.kill('SIGCONT');
  child.kill(signal);
  const force = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(force);
}
