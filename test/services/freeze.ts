import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { vi } from 'vitest';

/**
 * Stops a process by SIGSTOP, and returns when each of its threads has: until then it may still answer what has reached it.
 */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  await vi.waitFor(() => {
    const running = statesOf(pid).filter((state) => !/^[Tt]/.test(state));
    if (running.length > 0) throw new Error(`${running.length} threads of ${pid} still run`);
  }, 10_000);
}

/** The states of a process's threads, in the letters of ps; of the process alone where the system has no /proc. */
function statesOf(pid: number): string[] {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return [execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).trim()];
  return readdirSync(tasks).map((task) => {
    const stat = readFileSync(`${tasks}/${task}/stat`, 'utf8');
    // The second field is the command in parentheses, which may hold spaces.
    return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3);
  });
}
