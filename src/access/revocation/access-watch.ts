import { setImmediate as nextTurn } from 'node:timers/promises';
import { runCooperatively } from '../../lib/yielding.ts';
import { isOverload, Refusal, serviceUnavailable } from '../../platform/errors.ts';
import { InvalidTokenError, type Principal } from '../identity/callers.ts';
import { type ClientGuards, type GuardedRequest, isGuardRefusal } from '../limits/client-guards.ts';
import { type AccessDirectory, type DenyList, ENDED_SESSION_MS, endKey, endKeysOf } from './access-cache.ts';
import type { AccessChange, AccessChanges } from './access-changes.ts';
import type { Sessions } from './sessions.ts';

/** Called with the refusal that a request with the same token would get now. */
export type OnAccessEnd = (refusal: Refusal) => void;

interface Watcher {
  principal: Principal;
  request: GuardedRequest | undefined;
  keys: readonly string[];
  onEnd: OnAccessEnd;
  /** Ends it when its token expires; undefined if that does not. */
  timer: NodeJS.Timeout | undefined;
  /** Whether the token has ended, or could not be checked. */
  hasEnded: boolean;
  isOver: boolean;
}

/** The longest that a timer waits. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Watches the access of connections that outlive their request, such as subscriptions: reports when their token ends,
 * and when their client is changed so that its guards refuse the connection's address or certificate.
 */
export class AccessWatch {
  readonly #deps;
  /** The watchers by what can revoke their token: its client, its session, the token itself, its family. */
  readonly #watchers = new Map<string, Set<Watcher>>();
  /** The watchers whose clients have been changed, and that have to be checked. */
  readonly #changed = new Set<Watcher>();
  /** The number of current watchers. */
  size = 0;

  constructor(deps: {
    /**
     * Checks everything that could have ended the token: expiry, tenant, client, revocations and session.
     * @throws InvalidTokenError when the token has ended.
     */
    check(principal: Principal): Promise<unknown>;
    /**
     * Checks only the part of `check` that a change of a client can affect. Does not wait until the revocations are known:
     * they are being read. @throws InvalidTokenError
     */
    recheck(principal: Principal): Promise<unknown>;
    guards: Pick<ClientGuards, 'check'>;
    nowMs(): number;
    /** Called when a token could not be checked, or a watcher has thrown. */
    onError(error: unknown): void;
  }) {
    this.#deps = deps;
  }

  /**
   * Calls `onEnd` once when the token expires, is revoked or cannot be checked, and before that whenever a guard refuses
   * `request`, after a change of the client; but never before this method has returned. It also detects what has changed
   * since the request was admitted. `request` is undefined if the guards run elsewhere. Returns a function that stops
   * watching.
   */
  watch(principal: Principal, request: GuardedRequest | undefined, onEnd: OnAccessEnd): () => void {
    const { expiresAtMs } = principal;
    const client = principal.clientId?.toLowerCase();
    // A token without a client gets an empty client id, so that it can be removed like all others.
    const keys = [`client:${client ?? ''}`, ...endKeysOf(client, principal)];
    const watcher: Watcher = {
      ...{ principal, request, keys, onEnd },
      ...{ timer: undefined, hasEnded: false, isOver: false },
    };
    this.#add(watcher);
    if (expiresAtMs !== undefined) this.#awaitExpiry(watcher, expiresAtMs);
    this.#verify(watcher, this.#deps.check).catch((error: unknown) => {
      this.#deps.onError(error);
      return this.#end(watcher, serviceUnavailable());
    });
    return () => this.#remove(watcher);
  }

  /**
   * Notifies the watchers whose tokens these revocations concern, in slices: nobody waits for it. The directory and the
   * deny list must have applied the revocations before. What could not be checked after a change of its client is checked
   * again by the next call.
   */
  apply(changes: readonly AccessChange[]): void {
    for (const { kind, subject, item } of changes) {
      const key = kind === 'client' ? `client:${subject}` : endKey(kind, subject, item ?? '');
      for (const watcher of this.#watchers.get(key) ?? []) {
        // A revoked session or token is final; a change of a client may concern something else.
        if (kind === 'client') this.#changed.add(watcher);
        else void this.#end(watcher, new InvalidTokenError('revoked'));
      }
    }
    const recheck = (watcher: Watcher) =>
      Promise.resolve(runCooperatively(() => this.#verify(watcher, this.#deps.recheck), undefined)).catch((error) => {
        this.#changed.add(watcher);
        throw error;
      });
    Promise.all(Array.from(this.#changed, recheck)).catch(this.#deps.onError);
    this.#changed.clear();
  }

  /**
   * Checks the token by `check`, then the guards, and reports a refusal.
   * @throws what prevents either check.
   */
  async #verify(watcher: Watcher, check: (principal: Principal) => Promise<unknown>): Promise<void> {
    const { principal, request } = watcher;
    try {
      await check(principal);
      if (request) await this.#deps.guards.check(principal, request, false);
    } catch (error) {
      if (!(error instanceof Refusal) || isOverload(error)) throw error;
      void this.#end(watcher, error);
    }
  }

  #add(watcher: Watcher): void {
    this.size += 1;
    for (const key of watcher.keys) this.#watchers.getOrInsertComputed(key, () => new Set()).add(watcher);
  }

  #awaitExpiry(watcher: Watcher, expiresAtMs: number): void {
    const leftMs = expiresAtMs - this.#deps.nowMs();
    // A timer may fire early, and it cannot be set for more than 24 days.
    const expire = () => {
      if (this.#deps.nowMs() < expiresAtMs) this.#awaitExpiry(watcher, expiresAtMs);
      else void this.#end(watcher, new InvalidTokenError('expired'));
    };
    watcher.timer = setTimeout(expire, Math.min(Math.max(0, leftMs), MAX_TIMEOUT_MS));
  }

  /** Calls back a watcher in a turn among other work: one token may have thousands of connections. */
  async #end(watcher: Watcher, refusal: Refusal): Promise<void> {
    // The first end counts.
    if (watcher.hasEnded) return;
    // What a guard refuses may be allowed again.
    const isFinal = !isGuardRefusal(refusal);
    watcher.hasEnded = isFinal;
    await nextTurn();
    try {
      await runCooperatively(() => {
        if (watcher.isOver) return;
        if (isFinal) this.#remove(watcher);
        watcher.onEnd(refusal);
      }, undefined);
    } catch (error) {
      this.#deps.onError(error);
    }
  }

  #remove(watcher: Watcher): void {
    if (watcher.isOver) return;
    watcher.isOver = true;
    for (const key of watcher.keys) {
      const watchers = this.#watchers.get(key);
      watchers?.delete(watcher);
      if (watchers?.size === 0) this.#watchers.delete(key);
    }
    this.size -= 1;
    clearTimeout(watcher.timer);
  }
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
      watch.apply(revocations);
    },
  });
}
