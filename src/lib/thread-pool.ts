import { availableParallelism } from 'node:os';

/** What libuv has by itself, for files, names and signatures. */
const OTHERS = 4;

/** How many passwords are hashed at once: a core is left to everything else. */
export function passwordsAtOnce(): number {
  return Math.max(1, availableParallelism() - 1);
}

/**
 * Gives libuv a thread for each password beside those that it has by itself, so that a storm of logins holds up nothing
 * else that needs one. Good only before the first thread is used; a size that is set already stays.
 */
export function widenThreadPool(env: NodeJS.ProcessEnv): void {
  env.UV_THREADPOOL_SIZE ??= String(OTHERS + passwordsAtOnce());
}
