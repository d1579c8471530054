import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { KeyedMutex } from '../../lib/keyed-mutex.ts';
import type { Db } from '../../platform/database/database.ts';
import { AppError, errorEnvelope } from '../../platform/errors.ts';

/** What a key is good for: one caller's requests of one kind. */
interface KeyScope {
  subject: string;
  /** Undefined for a token without a client. */
  clientId: string | undefined;
  method: string;
  path: string;
  key: string;
}

/** Matches a key: 1 to 255 printable ASCII characters. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** Hashes a scope by SHA-256; no two scopes have one encoding in common. */
export function scopeHash({ subject, clientId, method, path, key }: KeyScope): Buffer {
  return sha256(Buffer.from(JSON.stringify([subject, clientId ?? null, method, path, key])));
}

/** A response as it is sent, and as it is sent again. */
export interface StoredResponse {
  status: number;
  /** In the spelling in which they are sent, without those of the body. */
  headers: Record<string, string>;
  /** JSON; null is an empty body. */
  body: string | null;
}

/** A request under a key. */
export interface KeyedRequest extends KeyScope {
  nodeId: string;
  bytes: Uint8Array;
}

interface RespondOptions {
  /** Runs around the transaction, before it begins: to wait there holds no connection. */
  around?(work: () => Promise<StoredResponse>): Promise<StoredResponse>;
  /** Returns the response that an error stands for, or undefined for a fault; unless given, that of an AppError below 500. */
  refusedAs?(error: unknown): StoredResponse | undefined;
}

interface IdempotentResponsesParts {
  db: Db;
  nowMs(): number;
  /** How long a request waits for another one under its key: 5 s unless given. */
  maxWaitMs?: number;
}

const KEPT_MS = 24 * 3_600_000;
const MAX_WAIT_MS = 5_000;
const RETRY_MS = 50;

/**
 * Gives the same response to the same request again, for 24 hours. It is stored in the transaction of what the request
 * has done: refusals too, faults (5xx) not.
 */
export class IdempotentResponses {
  readonly #parts: IdempotentResponsesParts;
  readonly #maxWaitMs: number;
  /** The requests of this process under one key run one after another. */
  readonly #mutex = new KeyedMutex();

  constructor(parts: IdempotentResponsesParts) {
    this.#parts = parts;
    this.#maxWaitMs = parts.maxWaitMs ?? MAX_WAIT_MS;
  }

  /**
   * Returns the response that the request was given before, or that `work` gives now, in a transaction around it. An
   * error undoes what `work` has done. Requests of this process under one key go one after another, and wait without a
   * connection.
   * @throws AppError 409 where the key came with another body, or a request under it does not end in time.
   */
  async respond(
    request: KeyedRequest,
    work: () => Promise<StoredResponse>,
    { around = (run) => run(), refusedAs = envelopeResponse }: RespondOptions = {},
  ): Promise<StoredResponse> {
    const { nodeId, ...scope } = request;
    const name = `${nodeId} ${scopeHash(scope).toString('hex')}`;
    return this.#exclusively(name, () => around(() => this.#respond(request, work, refusedAs)));
  }

  /** Stores the response to a request that nothing was to be done for, unless its key has one. */
  async storeRefusal(request: KeyedRequest, refusal: AppError): Promise<void> {
    await this.#parts.db.transaction(async () => {
      if (!(await this.#take(request))) return;
      if ((await this.#find(request)) === undefined) await this.#store(request, responseOf(refusal));
    });
  }

  /** Deletes what is older than a day. */
  async prune(): Promise<void> {
    await this.#parts.db
      .unscoped('answers age in every node')
      .run((k) => k.deleteFrom('idempotent_answers').where('created_at', '<=', this.#oldest()));
  }

  /** Runs `work` once this process does nothing else under the name. @throws AppError 409 where that takes too long. */
  async #exclusively<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(conflict()), this.#maxWaitMs);
    const begin = () => {
      clearTimeout(timer);
      return work();
    };
    return this.#mutex.run(name, begin, late.signal).finally(() => clearTimeout(timer));
  }

  async #respond(
    request: KeyedRequest,
    work: () => Promise<StoredResponse>,
    refusedAs: NonNullable<RespondOptions['refusedAs']>,
  ): Promise<StoredResponse> {
    const deadline = performance.now() + this.#maxWaitMs;
    for (;;) {
      const response = await this.#parts.db.transaction(async () => {
        if (!(await this.#take(request))) return undefined;
        return (await this.#stored(request)) ?? (await this.#store(request, await this.#attempt(work, refusedAs)));
      });
      if (response) return response;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) throw conflict();
      await delay(Math.min(RETRY_MS, leftMs));
    }
  }

  /** Whether this transaction is the only one under the key. */
  async #take({ nodeId, ...scope }: KeyedRequest): Promise<boolean> {
    const lock = createHash('sha256').update(nodeId).update(scopeHash(scope)).digest().readBigInt64BE().toString();
    const [row] = await this.#parts.db
      .unscoped('a lock is of no table')
      .raw((sql) => sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${lock}::bigint) as taken`);
    return row?.taken ?? false;
  }

  async #stored(request: KeyedRequest): Promise<StoredResponse | undefined> {
    const stored = await this.#find(request);
    if (stored && !sha256(request.bytes).equals(stored.body_sha256)) throw conflict();
    return stored && { status: stored.status, headers: stored.headers, body: stored.body };
  }

  async #find({ nodeId, ...scope }: KeyedRequest) {
    const [row] = await this.#parts.db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('idempotent_answers')
          .select(['status', 'headers', 'body', 'body_sha256'])
          .where('scope', '=', scopeHash(scope))
          .where('created_at', '>', this.#oldest()),
      );
    return row;
  }

  /** Runs `work`. A refusal leaves nothing of it behind; a fault ends the transaction. */
  async #attempt(
    work: () => Promise<StoredResponse>,
    refusedAs: NonNullable<RespondOptions['refusedAs']>,
  ): Promise<StoredResponse> {
    const db = this.#parts.db.unscoped('a savepoint is of no table');
    await db.raw((sql) => sql`savepoint keyed_work`);
    try {
      return await work();
    } catch (error) {
      const response = refusedAs(error);
      if (!response) throw error;
      await db.raw((sql) => sql`rollback to savepoint keyed_work`);
      return response;
    }
  }

  async #store({ nodeId, bytes, ...scope }: KeyedRequest, response: StoredResponse): Promise<StoredResponse> {
    if (response.status >= 500) return response;
    const columns = {
      ...response,
      body_sha256: sha256(bytes),
      created_at: new Date(this.#parts.nowMs()).toISOString(),
    };
    // One that is there has been kept for its day.
    await this.#parts.db.forNode(nodeId).run((k) =>
      k
        .insertInto('idempotent_answers')
        .values({ scope: scopeHash(scope), ...columns })
        .onConflict((conflicting) => conflicting.columns(['node_id', 'scope']).doUpdateSet(columns)),
    );
    return response;
  }

  #oldest(): string {
    return new Date(this.#parts.nowMs() - KEPT_MS).toISOString();
  }
}

function envelopeResponse(error: unknown): StoredResponse | undefined {
  return error instanceof AppError && error.status < 500 ? responseOf(error) : undefined;
}

function responseOf(refusal: AppError): StoredResponse {
  return { status: refusal.status, headers: refusal.headers, body: JSON.stringify(errorEnvelope(refusal)) };
}

function conflict(): AppError {
  return new AppError(409, 'idempotency_conflict');
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}
