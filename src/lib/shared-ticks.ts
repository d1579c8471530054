const TICK_MS = 250;
const tasks = new Set<{ nth: number; run(): void }>();
let ticks = 0;
let timer: NodeJS.Timeout | undefined;

/**
 * Calls `run` every `ms` milliseconds, a multiple of 250, until the result is called; it does not keep the process alive.
 * One timer serves the whole process: waking a process that rests takes longer than most of what it then does.
 */
export function every(ms: number, run: () => void): () => void {
  const task = { nth: ms / TICK_MS, run };
  tasks.add(task);
  if (tasks.size === 1) {
    timer = setInterval(() => {
      ticks += 1;
      for (const { nth, run: runTask } of tasks) if (ticks % nth === 0) runTask();
    }, TICK_MS).unref();
  }
  return () => {
    tasks.delete(task);
    if (tasks.size === 0) clearInterval(timer);
  };
}
