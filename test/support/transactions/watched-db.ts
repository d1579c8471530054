import type { Db } from '../../../src/platform/database/database.ts';

interface Hooks {
  /** Runs before each statement; what it throws is the statement's error. */
  statement?(): Promise<void> | void;
  /** Runs after the last statement of a transaction, before its commit. */
  commit?(): Promise<void> | void;
}

/** A database as services see it, with a hook before each statement and each commit. */
export function watchedDb(db: Db, { statement, commit }: Hooks): Db {
  const watched: Pick<Db, 'forNode' | 'unscoped' | 'transaction'> = {
    forNode: (nodeId) => db.forNode(nodeId),
    unscoped: (reason) => {
      const door = db.unscoped(reason);
      return {
        ...door,
        run: async (build) => {
          await statement?.();
          return door.run(build);
        },
        raw: async (build) => {
          await statement?.();
          return door.raw(build);
        },
      };
    },
    transaction: (work) =>
      db.transaction(async () => {
        const result = await work();
        await commit?.();
        return result;
      }),
  };
  return watched as Db;
}

/** A commit that waits, and tells that it does. */
export function heldCommit() {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  return {
    commit: async () => {
      reached.resolve();
      await released.promise;
    },
    reached: reached.promise,
    release: () => released.resolve(),
  };
}
