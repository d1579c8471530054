import type { Cache } from '../cache/cache.ts';
import type { AccessChanges } from './access-changes.ts';
import type { AccessDirectory } from './access-directory.ts';
import type { AccessWatch } from './access-watch.ts';
import type { DenyList } from './deny-list.ts';
import type { Sessions } from './sessions.ts';

/** A login's access token outlives its session by no more than this, where nobody could take it out of the cache. */
const LOOK_BACK_MS = 20 * 60_000;

interface EndFollowers {
  cache: Pick<Cache, 'generation'>;
  changes: AccessChanges;
  denied: DenyList;
  directory: AccessDirectory;
  sessions: Sessions;
  watch: AccessWatch;
}

/** What judges tokens hears of each end before those who watch them: whoever begins to watch later is judged by it. */
export function followEnds({ cache, changes, denied, directory, sessions, watch }: EndFollowers): void {
  const sinceMs = LOOK_BACK_MS;
  changes.follow({
    kinds: ['client'],
    sinceMs,
    async apply(ended) {
      for (const { subject } of ended) directory.forget(subject);
      await watch.apply(ended);
    },
  });
  changes.follow({
    kinds: ['token'],
    sinceMs,
    async apply(ended) {
      await denied.apply(ended);
      await watch.apply(ended);
    },
  });
  changes.follow({
    kinds: ['session'],
    sinceMs,
    // Known without the cache, which may be away or slow; those who come until it has forgotten them are judged by it.
    apply: (ended) => watch.apply(ended),
  });
  changes.follow({
    kinds: ['session'],
    sinceMs,
    // A server that comes back with what it had on its disk, or in whose place a replica is, may know nothing of the last.
    generation: () => cache.generation,
    async apply(ended) {
      await sessions.forget(ended);
      await watch.apply(ended);
    },
  });
}
