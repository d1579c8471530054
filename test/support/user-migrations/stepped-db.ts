import type { Db } from '../../../src/platform/database/database.ts';

/** Runs before each statement and before each commit; what it throws is the statement's error. */
export type Step = (what: 'statement' | 'commit') => Promise<void> | void;

/** A database as services see it, with a step before each statement through either door, and before each commit. */
export function steppedDb(db: Db, step: Step): Db {
  let depth = 0;
  const stepped: Pick<Db, 'forNode' | 'prepareForms' | 'unscoped' | 'transaction'> = {
    forNode: (nodeId) => {
      const door = db.forNode(nodeId);
      return {
        run: async (build) => {
          await step('statement');
          return door.run(build);
        },
      };
    },
    prepareForms: (build) => {
      const prepared = db.prepareForms(build);
      return {
        run: async (nodeId, given) => {
          await step('statement');
          return prepared.run(nodeId, given);
        },
      };
    },
    unscoped: (reason) => {
      const door = db.unscoped(reason);
      return {
        ...door,
        run: async (build) => {
          await step('statement');
          return door.run(build);
        },
        raw: async (build) => {
          await step('statement');
          return door.raw(build);
        },
      };
    },
    transaction: async (work) => {
      const isOutermost = depth === 0;
      depth += 1;
      try {
        return await db.transaction(async () => {
          const result = await work();
          if (isOutermost) await step('commit');
          return result;
        });
      } finally {
        depth -= 1;
      }
    },
  };
  return stepped as Db;
}
