import { setImmediate as nextTurn } from 'node:timers/promises';
import { at, type Clock } from '../../events/streams/clock.ts';
import { runCooperatively } from '../../lib/yielding.ts';
import { InvalidTokenError, type Principal } from '../identity/callers.ts';
import { type AccessDirectory, type DenyList, ENDED_SESSION_MS, endKey, endKeysOf } from './access-cache.ts';
import type { AccessChange, AccessChanges } from './access-changes.ts';
import type { Sessions } from './sessions.ts';

/** How a token has ended; `unknown` when it could not be checked, which counts as an end too. */
export type AccessEnd = 'expired' | 'revoked' | 'unknown';

type OnAccessEnd = (end: AccessEnd) => void;

interface Watcher {
  principal: Principal;
  keys: readonly string[];
  onEnd: OnAccessEnd;
  cancelExpiry: (() => void) | undefined;
  end: AccessEnd | undefined;
}

/** Watches the tokens of connections that outlive their request, such as subscriptions, and reports when they end. */
export class AccessWatch {
  readonly #deps;
  /** The watchers by what can revoke their token: its client, its session, the token itself, its family. */
  readonly #watchers = new Map<string, Set<Watcher>>();
  /** The number of current watchers. */
  size = 0;

  constructor(deps: {
    /**
     * Checks everything that could have ended the token: expiry, tenant, client, revocations and session.
     * @throws InvalidTokenError when the token has ended.
     */
    check(principal: Principal): Promise<unknown>;
    /** Checks only the part of `check` that a change of a client can affect. */
    admits(principal: Principal): boolean | Promise<boolean>;
    clock: Clock;
    /** Called when a token could not be checked, or a watcher has thrown. */
    onError(error: unknown): void;
  }) {
    this.#deps = deps;
  }

  /**
   * Calls `onEnd` once when the token expires or is revoked, but never before this method has returned. It also detects
   * an end since the token was last checked. Returns a function that stops watching.
   */
  watch(principal: Principal, onEnd: OnAccessEnd): () => void {
    const { expiresAtMs } = principal;
    const watcher: Watcher = { principal, keys: keysOf(principal), onEnd, cancelExpiry: undefined, end: undefined };
    this.#add(watcher);
    if (expiresAtMs !== undefined) {
      watcher.cancelExpiry = at(this.#deps.clock, expiresAtMs, () => void this.#end(watcher, 'expired'));
    }
    this.#checkFirst(watcher).catch((error: unknown) => this.#end(watcher, this.#endOf(error)));
    return () => void this.#remove(watcher);
  }

  /**
   * Notifies the watchers whose tokens these revocations concern. The directory and the deny list must have applied the
   * revocations before.
   * @throws what checking a token throws, after all other watchers have been notified.
   */
  async apply(changes: readonly AccessChange[]): Promise<void> {
    const changed = new Set<Watcher>();
    for (const { kind, subject, item } of changes) {
      const key = kind === 'client' ? `client:${subject}` : endKey(kind, subject, item ?? '');
      for (const watcher of this.#watchers.get(key) ?? []) {
        // A revoked session or token is final; a change of a client may concern something else.
        if (kind === 'client') changed.add(watcher);
        else void this.#end(watcher, 'revoked');
      }
    }
    const checks = await Promise.allSettled([...changed].map((watcher) => this.#recheck(watcher)));
    const failed = checks.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async #checkFirst(watcher: Watcher): Promise<void> {
    // Lets `watch` return first, so that the caller can stop watching before it is called back.
    await Promise.resolve();
    await this.#deps.check(watcher.principal);
  }

  #endOf(error: unknown): AccessEnd {
    if (error instanceof InvalidTokenError) return error.end;
    this.#deps.onError(error);
    return 'unknown';
  }

  async #recheck(watcher: Watcher): Promise<void> {
    if (!(await this.#deps.admits(watcher.principal))) void this.#end(watcher, 'revoked');
  }

  #add(watcher: Watcher): void {
    this.size += 1;
    for (const key of watcher.keys) this.#watchers.getOrInsertComputed(key, () => new Set()).add(watcher);
  }

  /** Calls back a watcher in a turn among other work: one token may have thousands of connections. */
  async #end(watcher: Watcher, end: AccessEnd): Promise<void> {
    // The first end counts.
    if (watcher.end) return;
    watcher.end = end;
    await nextTurn();
    try {
      await runCooperatively(() => {
        if (this.#remove(watcher)) watcher.onEnd(end);
      }, undefined);
    } catch (error) {
      this.#deps.onError(error);
    }
  }

  /** Removes a watcher; returns false when it was already removed. */
  #remove(watcher: Watcher): boolean {
    let isRemoved = false;
    for (const key of watcher.keys) {
      const watchers = this.#watchers.get(key);
      if (!watchers?.delete(watcher)) continue;
      isRemoved = true;
      if (watchers.size === 0) this.#watchers.delete(key);
    }
    if (!isRemoved) return false;
    this.size -= 1;
    watcher.cancelExpiry?.();
    return true;
  }
}

function keysOf(principal: Principal): string[] {
  const client = principal.clientId?.toLowerCase();
  // A token without a client gets an empty client id, so that it can be removed like all others.
  return [`client:${client ?? ''}`, ...endKeysOf(client, principal)];
}

/**
 * Subscribes the token checks and the watchers to revocations. Each revocation is applied to the checks before the
 * watchers are notified, so that the first check of a watcher added later detects it.
 */
export function followEnds({
  changes,
  denied,
  directory,
  sessions,
  watch,
}: {
  changes: Pick<AccessChanges, 'follow'>;
  denied: Pick<DenyList, 'apply'>;
  directory: Pick<AccessDirectory, 'forget'>;
  sessions: Pick<Sessions, 'forget'>;
  watch: Pick<AccessWatch, 'apply'>;
}): void {
  changes.follow({
    sinceMs: ENDED_SESSION_MS,
    async apply(revocations) {
      for (const { kind, subject } of revocations) if (kind === 'client') directory.forget(subject);
      sessions.forget(revocations);
      await denied.apply(revocations);
      await watch.apply(revocations);
    },
  });
}
