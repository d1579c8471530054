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

/** A process and all that descend from it, as the processes of a PostgreSQL do, each in a session of its own. */
export function familyOf(pid: number): number[] {
  const parents = readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) ? [{ pid: Number(name), parent: parentOf(name) }] : [];
    } catch {
      // It has ended.
      return [];
    }
  });
  const family = [pid];
  for (const one of family) family.push(...parents.filter(({ parent }) => parent === one).map((child) => child.pid));
  return family;
}

/** Freezes a process with all that descend from it, as a machine is frozen; returns their ids. */
export async function freezeFamily(pid: number): Promise<number[]> {
  // The parent first: it starts no others then.
  await freeze(pid);
  const family = familyOf(pid);
  await Promise.all(family.slice(1).map(freeze));
  return family;
}

function parentOf(pid: string): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
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
