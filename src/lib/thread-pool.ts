import { availableParallelism } from 'node:os';

/** The default number of libuv's threads, which files, DNS lookups and signatures need. */
const OTHERS = 4;

/** Returns how many passwords may be hashed concurrently: one less than there are cores, at least 1. */
export function passwordsAtOnce(): number {
  return Math.max(1, availableParallelism() - 1);
}

/**
 * Adds one libuv thread for each password that may be hashed concurrently, so that many logins do not block other work
 * of the pool. It must be called before the pool is first used, and it does not change a size that is already set.
 */
export function widenThreadPool(env: NodeJS.ProcessEnv): void {
  env.UV_THREADPOOL_SIZE ??= String(OTHERS + passwordsAtOnce());
}
