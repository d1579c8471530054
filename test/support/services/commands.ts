import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export interface RunOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
  timeoutMs?: number;
  /** Called with the process id once the command runs. */
  started?: (pid: number) => void;
}

/** The absolute path of an executable on the PATH, or undefined. */
export function findOnPath(name: string): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder === '' ? '.' : folder, name);
    try {
      accessSync(path, constants.X_OK);
      if (statSync(path).isFile()) return path;
    } catch {
      // Not in this folder: the next one may have it.
    }
  }
  return undefined;
}

/** Runs a command to its end and returns its standard output; throws an error with the end of its output when it fails. */
export async function runCommand(command: string, args: string[], options: RunOptions = {}): Promise<string> {
  const { timeoutMs = 300_000, started, ...rest } = options;
  try {
    const running = execute(command, args, { ...rest, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 });
    if (running.child.pid !== undefined) started?.(running.child.pid);
    const { stdout } = await running;
    return stdout;
  } catch (error) {
    throw new Error(`${basename(command)} failed: ${outputOf(error)}`, { cause: error });
  }
}

function outputOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const parts = ['stderr', 'stdout'].map((key) => String(Reflect.get(error, key) ?? '').trim());
  const output = parts.filter((part) => part !== '').join('\n');
  return output === '' ? error.message : lastLines(output);
}

/** The last lines of a text, short enough for an error message. */
export function lastLines(text: string): string {
  return text.trim().split('\n').slice(-12).join('\n').slice(-2_000);
}
