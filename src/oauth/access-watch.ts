import type { AccessChange } from './access-changes.ts';
import type { Principal } from './principal.ts';

/** Told once, when a token has ended; with an error where that could not be found out. */
export type OnAccessEnd = (error?: unknown) => void;

interface WatchParts {
  /** Whether the token is still good, whatever can have ended it. */
  isGood(principal: Principal): Promise<boolean>;
  /** The part of it that a client's change can have changed. */
  admits(principal: Principal): boolean | Promise<boolean>;
}

interface Watcher {
  principal: Principal;
  keys: readonly string[];
  onEnd: OnAccessEnd;
}

/** Those who use a token for longer than a request: each is told when it has ended before its time. */
export class AccessWatch {
  readonly #parts: WatchParts;
  /** Watchers by what can end their token: its client, its session, itself and its family. */
  readonly #watchers = new Map<string, Set<Watcher>>();
  #size = 0;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /** How many are watching. */
  get size(): number {
    return this.#size;
  }

  /**
   * Calls back once when the token has ended by something else than time, never before this returns. What has ended
   * since the token was last judged is found, too. @returns the function that stops watching.
   */
  watch(principal: Principal, onEnd: OnAccessEnd): () => void {
    const watcher: Watcher = { principal, keys: keysOf(principal), onEnd };
    this.#add(watcher);
    this.#judgeFirst(watcher).catch((error: unknown) => this.#end(watcher, error));
    return () => void this.#remove(watcher);
  }

  /**
   * Tells those whose token has ended by these changes, which the client directory and the deny list must know already.
   * @throws what judging a token throws, once everybody else has been told.
   */
  async apply(changes: readonly AccessChange[]): Promise<void> {
    const changed = new Set<Watcher>();
    for (const change of changes) {
      for (const watcher of this.#watchers.get(keyOf(change)) ?? []) {
        // An end is final; a client may have changed in something else.
        if (change.kind === 'client') changed.add(watcher);
        else this.#end(watcher);
      }
    }
    const judged = await Promise.allSettled([...changed].map((watcher) => this.#judge(watcher)));
    const failed = judged.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async #judgeFirst(watcher: Watcher): Promise<void> {
    // Whoever begins to watch is not called back before it knows how to stop.
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

  /** False where it was gone already. */
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
  // One that names no client is under the client of no name: it can be stopped watching like all others.
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
