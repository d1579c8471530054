import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
const IDLE_SAMPLE_MS = 700;
const IDLE_SHARE = 0.1;

/** Milliseconds of CPU, user and system, that all threads of a process have used so far. */
export function cpuMs(pid: number): number {
  return cpuMsOf(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

/**
 * The same of the threads that a process has now, to the nanosecond where the kernel says so: the ticks of `cpuMs` are
 * 10 ms, and those of ten connections to PostgreSQL would be wrong by as many.
 */
export function threadsMs(pid: number): number {
  const path = `/proc/${pid}/task`;
  if (!existsSync(`/proc/${pid}/schedstat`)) return cpuMs(pid);
  return readdirSync(path)
    .map((thread) => Number(readFileSync(`${path}/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6)
    .reduce((sum, ms) => sum + ms, 0);
}

/** Resolves once a process has come to rest: what it was given has been worked off. */
export async function untilIdle(pid: number): Promise<void> {
  for (let before = cpuMs(pid), busy = true; busy; ) {
    await delay(IDLE_SAMPLE_MS);
    const now = cpuMs(pid);
    busy = now - before > IDLE_SHARE * IDLE_SAMPLE_MS;
    before = now;
  }
}

/** CPU as of `cpuMs` by the name of the thread; threads of one name are one. */
export function threadCpuMs(pid: number): Map<string, number> {
  const spent = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const path = `/proc/${pid}/task/${thread}`;
    const name = readFileSync(`${path}/comm`, 'utf8').trim();
    spent.set(name, (spent.get(name) ?? 0) + cpuMsOf(readFileSync(`${path}/stat`, 'utf8')));
  }
  return spent;
}

/** CPU as of `cpuMs` of the main thread of a process, and how often it was woken so far. */
export function mainThread(pid: number): { mainMs: number; wakeUps: number } {
  const path = `/proc/${pid}/task/${pid}`;
  const status = readFileSync(`${path}/status`, 'utf8');
  const wakeUps = Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]);
  return { mainMs: cpuMsOf(readFileSync(`${path}/stat`, 'utf8')), wakeUps };
}

function cpuMsOf(stat: string): number {
  const fields = fieldsOf(stat);
  const [user, system] = [fields[11], fields[12]];
  return ((Number(user) + Number(system)) * 1000) / TICKS_PER_SECOND;
}

/** What stands behind the command, which is in parentheses and may hold spaces. */
function fieldsOf(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** Resident memory of a process in megabytes (10^6 bytes): all of it, and the part that no file backs. */
export function memoryMb(pid: number): { resident: number; anonymous: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (name: string) => (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024) / 1e6;
  return { resident: of('VmRSS'), anonymous: of('RssAnon') };
}

/**
 * Starts to watch the machine. The result returns the share of all cores, 0 to 1, that was used since by processes that
 * this one did not start, or taken by the host.
 */
export function watchOthers(): () => number {
  const before = { ...machineTicks(), own: ownTicks() };
  return () => {
    const after = { ...machineTicks(), own: ownTicks() };
    return (after.used - before.used - (after.own - before.own)) / (after.total - before.total);
  };
}

/** Ticks of the machine since it started: used by processes or the host, and in all. */
function machineTicks(): { used: number; total: number } {
  const line = readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '';
  const ticks = line.split(/\s+/).slice(1, 9).map(Number);
  const [user = 0, nice = 0, system = 0, , , , , stolen = 0] = ticks;
  return { used: user + nice + system + stolen, total: ticks.reduce((sum, value) => sum + value, 0) };
}

/** Ticks of this process and its descendants, those that have ended included. */
function ownTicks(): number {
  const all = new Map(readdirSync('/proc').filter(Number).flatMap(statOf));
  let own = 0;
  for (const [pid, { ticks }] of all) {
    let at: number | undefined = pid;
    while (at !== undefined && at !== process.pid) at = all.get(at)?.parent;
    if (at === process.pid) own += ticks;
  }
  return own;
}

/** The parent of a process and its ticks, with those of its children that have ended; nothing if it has just ended. */
function statOf(pid: string): [pid: number, { parent: number; ticks: number }][] {
  try {
    const fields = fieldsOf(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return [[Number(pid), { parent: Number(fields[1]), ticks }]];
  } catch {
    return [];
  }
}
