const TICK_MS = 250;
const shared = {
  tasks: new Set<{ nth: number; run(): void }>(),
  ticks: 0,
  timer: undefined as NodeJS.Timeout | undefined,
};

/**
 * Calls `run` every `ms` milliseconds, a multiple of 250, until the result is called; it does not keep the process alive.
 * One timer serves the whole process: waking a process that rests takes longer than most of what it then does.
 */
export function every(ms: number, run: () => void): () => void {
  const task = { nth: ms / TICK_MS, run };
  if (shared.tasks.add(task).size === 1) {
    shared.timer = setInterval(() => {
      shared.ticks += 1;
      for (const due of shared.tasks.values().filter(({ nth }) => shared.ticks % nth === 0)) due.run();
    }, TICK_MS).unref();
  }
  return () => {
    if (shared.tasks.delete(task) && shared.tasks.size === 0) clearInterval(shared.timer);
  };
}
