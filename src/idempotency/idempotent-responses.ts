import { createHash, hash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { notedIds, noteUsers } from '../audit/noted-users.ts';
import { KeyedMutex } from '../lib/semaphore.ts';
import type { Db } from '../platform/database/database.ts';
import { Refusal, serviceUnavailable } from '../platform/errors.ts';
import { requestSignal } from '../platform/held-memory.ts';

/** The scope of an idempotency key: the requests of one caller with one method and path. */
interface KeyScope {
  subject: string;
  /** The client id; undefined for a token without a client. */
  clientId: string | undefined;
  method: string;
  path: string;
  key: string;
}

/** Matches an idempotency key: 1 to 255 printable ASCII characters. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** Returns the SHA-256 hash of a scope. Different scopes never have the same encoding before hashing. */
export function scopeHash({ subject, clientId, method, path, key }: KeyScope): Buffer {
  return hash('sha256', JSON.stringify([subject, clientId ?? null, method, path, key]), 'buffer');
}

/** The body of a stored response that was erased with the data of a user. */
export const ERASED_BODY = '{}';

/** The message of GraphQL and MCP for a repeated request whose stored response was erased. REST sends the erased body. */
export const ERASED_MESSAGE =
  "the stored response was erased with a user's data; the request was processed when its key was first used, and a new key would process it again";

/** A stored response, which is sent again unchanged. */
export interface StoredResponse {
  status: number;
  /** The response headers in the spelling in which they are sent, without those that describe the body. */
  headers: Record<string, string>;
  /** The JSON text of the body; null means an empty body. */
  body: string | null;
}

/** A request that carries an idempotency key. */
export interface KeyedRequest extends KeyScope {
  nodeId: string;
  bytes: Uint8Array;
}

const KEPT_MS = 24 * 3_600_000;
const MAX_WAIT_MS = 5_000;
/** The greatest number of requests that wait for another one with the same key. */
const MAX_WAITING = 32;
const RETRY_MS = 50;

/**
 * Gives repeated requests with the same idempotency key the same response, for 24 hours. The response is stored in the
 * transaction of the work itself. Work that throws, such as any refusal, leaves its key free.
 */
export class IdempotentResponses {
  readonly #deps;
  readonly #maxWaitMs: number;
  /** A mutex for each key, so that requests of this process with the same key run one after another. */
  readonly #mutex = new KeyedMutex({ maxWaiting: MAX_WAITING, refusal: serviceUnavailable, signalOf: requestSignal });

  constructor(deps: {
    db: Db;
    nowMs(): number;
    /** The longest time, in ms, that a request waits for another one with the same key; 5,000 by default. */
    maxWaitMs?: number;
  }) {
    this.#deps = deps;
    this.#maxWaitMs = deps.maxWaitMs ?? MAX_WAIT_MS;
  }

  /**
   * Returns the stored response of an earlier request with the key; otherwise runs `work` in a transaction and stores
   * its response. An error rolls back what `work` did and is rethrown. Requests of this process with the same key run
   * one after another and hold no database connection while they wait. `wrapTransaction` wraps the transaction: waiting there,
   * before it begins, holds no connection either.
   * @throws Refusal `idempotency_conflict` when the key was used with another body, or when another request with it does not finish in
   * time.
   */
  async respond(
    request: KeyedRequest,
    work: () => Promise<StoredResponse>,
    wrapTransaction: (run: () => Promise<StoredResponse>) => Promise<StoredResponse> = (run) => run(),
  ): Promise<StoredResponse> {
    const { nodeId, ...scope } = request;
    const name = `${nodeId} ${scopeHash(scope).toString('hex')}`;
    return this.#exclusively(name, () => wrapTransaction(() => this.#respond(request, work)));
  }

  /** Erases the tenant's responses that have noted a user, and returns their number. Their keys stay taken. */
  async erase(nodeId: string, userId: string): Promise<number> {
    const erased = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .updateTable('idempotent_answers')
        .set({ body: ERASED_BODY })
        .where((eb) => eb(eb.val(userId), '=', eb.fn.any('noted_users')))
        .where('body', 'is distinct from', ERASED_BODY)
        .returning('scope'),
    );
    return erased.length;
  }

  /** Deletes the responses that are older than 24 hours. */
  async prune(): Promise<void> {
    await this.#deps.db
      .unscoped('retention of all nodes')
      .run((k) => k.deleteFrom('idempotent_answers').where('created_at', '<=', this.#oldest()));
  }

  /**
   * Runs `work` while no other work of this process with the same name runs.
   * @throws Refusal `idempotency_conflict` when waiting for the others takes longer than `maxWaitMs`,
   * `service_unavailable` when too many wait.
   */
  async #exclusively<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(conflict('in_progress')), this.#maxWaitMs);
    return this.#mutex.run(name, work, late.signal).finally(() => clearTimeout(timer));
  }

  async #respond(request: KeyedRequest, work: () => Promise<StoredResponse>): Promise<StoredResponse> {
    const deadline = performance.now() + this.#maxWaitMs;
    for (;;) {
      const response = await this.#deps.db.transaction(async () => {
        if (!(await this.#tryLock(request))) return undefined;
        return (await this.#stored(request)) ?? (await this.#store(request, await work()));
      });
      if (response) return response;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) throw conflict('in_progress');
      await delay(Math.min(RETRY_MS, leftMs));
    }
  }

  /** Takes the key's lock for this transaction; returns whether it was free. */
  async #tryLock({ nodeId, ...scope }: KeyedRequest): Promise<boolean> {
    const lock = createHash('sha256').update(nodeId).update(scopeHash(scope)).digest().readBigInt64BE().toString();
    const [row] = await this.#deps.db
      .unscoped('advisory lock, no table')
      .raw((sql) => sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${lock}::bigint) as taken`);
    return row?.taken ?? false;
  }

  async #stored({ nodeId, bytes, ...scope }: KeyedRequest): Promise<StoredResponse | undefined> {
    const [stored] = await this.#deps.db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('idempotent_answers')
          .select(['status', 'headers', 'body', 'noted_users', 'body_sha256'])
          .where('scope', '=', scopeHash(scope))
          .where('created_at', '>', this.#oldest()),
      );
    if (stored && !hash('sha256', bytes, 'buffer').equals(stored.body_sha256)) throw conflict('another_body');
    noteUsers(stored?.noted_users ?? []);
    return stored && { status: stored.status, headers: stored.headers, body: stored.body };
  }

  async #store({ nodeId, bytes, ...scope }: KeyedRequest, response: StoredResponse): Promise<StoredResponse> {
    const columns = {
      ...response,
      noted_users: notedIds(),
      body_sha256: hash('sha256', bytes, 'buffer'),
      created_at: new Date(this.#deps.nowMs()).toISOString(),
    };
    // A row that is still there has expired, so it may be overwritten.
    await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .insertInto('idempotent_answers')
        .values({ scope: scopeHash(scope), ...columns })
        .onConflict((conflicting) => conflicting.columns(['node_id', 'scope']).doUpdateSet(columns)),
    );
    return response;
  }

  #oldest(): string {
    return new Date(this.#deps.nowMs() - KEPT_MS).toISOString();
  }
}

function conflict(reason: 'in_progress' | 'another_body'): Refusal {
  return new Refusal('idempotency_conflict', { reason });
}
