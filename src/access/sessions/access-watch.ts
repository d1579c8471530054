import type { Cache } from '../../platform/cache/cache.ts';
import type { Principal } from '../identity/principal.ts';
import type { AccessChange, AccessChanges } from './access-changes.ts';
import type { AccessDirectory, DenyList } from './access-directory.ts';
import type { Sessions } from './sessions.ts';

/** Called once, when a token has been revoked; with an error where that could not be found out. */
type OnAccessEnd = (error?: unknown) => void;

interface WatchParts {
  /** Returns whether the token is still good, whatever could have ended it. */
  isGood(principal: Principal): Promise<boolean>;
  /** Returns the part of `isGood` that a change of a client can have changed. */
  admits(principal: Principal): boolean | Promise<boolean>;
}

interface Watcher {
  principal: Principal;
  keys: readonly string[];
  onEnd: OnAccessEnd;
}

/** Notifies those who use a token for longer than a request, such as subscriptions, when it is revoked. */
export class AccessWatch {
  readonly #parts: WatchParts;
  /** Watchers by what can end their token: its client, its session, the token itself, its family. */
  readonly #watchers = new Map<string, Set<Watcher>>();
  #size = 0;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /** The number of watchers. */
  get size(): number {
    return this.#size;
  }

  /**
   * Calls `onEnd` once when the token has been revoked, and never before this returns; expiry is not watched. A
   * revocation since the token was last checked is found, too.
   * @returns the function that stops watching.
   */
  watch(principal: Principal, onEnd: OnAccessEnd): () => void {
    const watcher: Watcher = { principal, keys: keysOf(principal), onEnd };
    this.#add(watcher);
    this.#judgeFirst(watcher).catch((error: unknown) => this.#end(watcher, error));
    return () => void this.#remove(watcher);
  }

  /**
   * Notifies the watchers whose token these changes have ended. The directory and the deny list must have applied them.
   * @throws what checking a token throws, after all other watchers have been notified.
   */
  async apply(changes: readonly AccessChange[]): Promise<void> {
    const changed = new Set<Watcher>();
    for (const change of changes) {
      for (const watcher of this.#watchers.get(keyOf(change)) ?? []) {
        // A revocation is final; a client may have changed in something else.
        if (change.kind === 'client') changed.add(watcher);
        else this.#end(watcher);
      }
    }
    const judged = await Promise.allSettled([...changed].map((watcher) => this.#judge(watcher)));
    const failed = judged.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async #judgeFirst(watcher: Watcher): Promise<void> {
    // The caller has the function that stops watching before it is called back.
    await Promise.resolve();
    if (!(await this.#parts.isGood(watcher.principal))) this.#end(watcher);
  }

  async #judge(watcher: Watcher): Promise<void> {
    if (!(await this.#parts.admits(watcher.principal))) this.#end(watcher);
  }

  #add(watcher: Watcher): void {
    this.#size += 1;
    for (const key of watcher.keys) {
      const others = this.#watchers.get(key);
      if (others) others.add(watcher);
      else this.#watchers.set(key, new Set([watcher]));
    }
  }

  #end(watcher: Watcher, error?: unknown): void {
    if (this.#remove(watcher)) watcher.onEnd(error);
  }

  /** Returns false where it had been removed before. */
  #remove(watcher: Watcher): boolean {
    let isRemoved = false;
    for (const key of watcher.keys) {
      const others = this.#watchers.get(key);
      if (!others?.delete(watcher)) continue;
      isRemoved = true;
      if (others.size === 0) this.#watchers.delete(key);
    }
    if (isRemoved) this.#size -= 1;
    return isRemoved;
  }
}

function keysOf({ clientId, sessionId, tokenId, familyId, subject }: Principal): string[] {
  const client = clientId?.toLowerCase() ?? '';
  const session = sessionId === undefined ? undefined : `session:${subject}:${sessionId}`;
  // A token without a client is kept under an empty name, so that it can be removed like all others.
  return [`client:${client}`, session, tokenKey(client, tokenId), tokenKey(client, familyId)].filter(
    (key) => key !== undefined,
  );
}

function keyOf({ kind, subject, item }: AccessChange): string {
  return item === null ? `${kind}:${subject}` : `${kind}:${subject}:${item}`;
}

function tokenKey(client: string, id: string | undefined): string | undefined {
  return id === undefined ? undefined : `token:${client}:${id}`;
}

/** How long an access token of a login can outlive its session, if the session could not be removed from the cache. */
const LOOK_BACK_MS = 20 * 60_000;

interface EndFollowers {
  cache: Pick<Cache, 'generation'>;
  changes: AccessChanges;
  denied: DenyList;
  directory: AccessDirectory;
  sessions: Sessions;
  watch: AccessWatch;
}

/**
 * Subscribes to revocations: what checks tokens applies each one before the watchers are notified, so that a watcher
 * that is added later finds it by its first check.
 */
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
    // Needs no cache, which may be down or slow; watchers that are added meanwhile check their token by it.
    apply: (ended) => watch.apply(ended),
  });
  changes.follow({
    kinds: ['session'],
    sinceMs,
    // A Redis server that restarts from its disk, or a replica that replaces it, may lack the last removals.
    generation: () => cache.generation,
    async apply(ended) {
      await sessions.forget(ended);
      await watch.apply(ended);
    },
  });
}
