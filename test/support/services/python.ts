import { findOnPath, runCommand } from './commands.ts';

const NAMES = ['python3', 'python'];

/** The path of a Python of the PATH that has the official MCP client; rejects where none has it. */
export async function findPython(): Promise<string> {
  for (const name of NAMES) {
    const path = findOnPath(name);
    if (path === undefined) continue;
    const has = await runCommand(path, ['-c', 'import mcp'], { timeoutMs: 30_000 }).then(
      () => true,
      () => false,
    );
    if (has) return path;
  }
  throw new Error('no Python on the PATH has the package mcp; pip install -r test/mcp/requirements.txt into one');
}

/** The path of a Python of the PATH, whatever packages it has; undefined where there is none. */
export function findPython3(): string | undefined {
  return findOnPath('python3');
}
