import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Db } from '../db.ts';
import { AppError } from '../errors/app-error.ts';
import { errorEnvelope } from '../errors/envelope.ts';
import { type KeyScope, scopeHash } from './idempotency-key.rules.ts';

/** An answer as it is sent, and as it is sent again. */
export interface Answer {
  status: number;
  /** In the spelling they are sent in, without those of the body. */
  headers: Record<string, string>;
  /** JSON; null: an empty body. */
  body: string | null;
}

/** A request under a key. */
export interface KeyedRequest extends KeyScope {
  nodeId: string;
  bytes: Uint8Array;
}

/** The answer that an error stands for; undefined: it is a fault. */
type RefusedAs = (error: unknown) => Answer | undefined;

interface IdempotentAnswersParts {
  db: Db;
  nowMs(): number;
  /** How long a request waits for another one under its key: 5 s unless given. */
  maxWaitMs?: number;
}

const KEPT_MS = 24 * 3_600_000;
const MAX_WAIT_MS = 5_000;
const ASK_AGAIN_MS = 50;

/**
 * Gives the same answer to the same request again, for 24 hours. It is stored in the transaction of what the request has
 * done: refusals too, faults (5xx) not.
 */
export class IdempotentAnswers {
  readonly #parts: IdempotentAnswersParts;
  /** The keys that this process is at, each with its end. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(parts: IdempotentAnswersParts) {
    this.#parts = parts;
  }

  /**
   * Runs `work` when no other work of this process is under way under its key: it may wait for more than the key itself,
   * which the others need not.
   * @throws AppError 409 where that does not end in time.
   */
  async alone<Result>({ nodeId, ...scope }: KeyedRequest, work: () => Promise<Result>): Promise<Result> {
    const name = `${nodeId} ${scopeHash(scope).toString('hex')}`;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(conflict()), this.#parts.maxWaitMs ?? MAX_WAIT_MS);
    try {
      for (let other = this.#underWay.get(name); other; other = this.#underWay.get(name)) {
        await Promise.race([other, late.promise]);
      }
    } finally {
      clearTimeout(timer);
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#underWay.set(name, promise);
    try {
      return await work();
    } finally {
      this.#underWay.delete(name);
      resolve();
    }
  }

  /**
   * The answer that the request was given before, or that `work` gives now, in a transaction around it. What it throws
   * undoes what it has done, and is an answer where `refusedAs` has one for it: unless given, for an AppError below 500.
   * @throws AppError 409 where the key came with another body, or a request under it does not end in time.
   */
  async answer(
    request: KeyedRequest,
    work: () => Promise<Answer>,
    refusedAs: RefusedAs = envelopeAnswer,
  ): Promise<Answer> {
    const deadline = performance.now() + (this.#parts.maxWaitMs ?? MAX_WAIT_MS);
    for (;;) {
      const answer = await this.#parts.db.transaction(async () => {
        if (!(await this.#take(request))) return undefined;
        return (await this.#kept(request)) ?? (await this.#keep(request, await this.#tried(work, refusedAs)));
      });
      if (answer) return answer;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) throw conflict();
      await delay(Math.min(ASK_AGAIN_MS, leftMs));
    }
  }

  /** Keeps the answer to a request that nothing was to be done for, unless its key has one. */
  async keepRefusal(request: KeyedRequest, refusal: AppError): Promise<void> {
    await this.#parts.db.transaction(async () => {
      if (!(await this.#take(request))) return;
      if ((await this.#find(request)) === undefined) await this.#keep(request, answerOf(refusal));
    });
  }

  /** Deletes what is older than a day. */
  async prune(): Promise<void> {
    await this.#parts.db
      .unscoped('answers age in every node')
      .run((k) => k.deleteFrom('idempotent_answers').where('created_at', '<=', this.#oldest()));
  }

  /** Whether this transaction is the only one under the key. */
  async #take({ nodeId, ...scope }: KeyedRequest): Promise<boolean> {
    const lock = createHash('sha256').update(nodeId).update(scopeHash(scope)).digest().readBigInt64BE().toString();
    const [row] = await this.#parts.db
      .unscoped('a lock is of no table')
      .raw((sql) => sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${lock}::bigint) as taken`);
    return row?.taken ?? false;
  }

  async #kept(request: KeyedRequest): Promise<Answer | undefined> {
    const kept = await this.#find(request);
    if (kept && !sha256(request.bytes).equals(kept.body_sha256)) throw conflict();
    return kept && { status: kept.status, headers: kept.headers, body: kept.body };
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

  /** A refusal leaves nothing of the work behind; a fault ends the transaction. */
  async #tried(work: () => Promise<Answer>, refusedAs: RefusedAs): Promise<Answer> {
    const door = this.#parts.db.unscoped('a savepoint is of no table');
    await door.raw((sql) => sql`savepoint keyed_work`);
    try {
      return await work();
    } catch (error) {
      const answer = refusedAs(error);
      if (!answer) throw error;
      await door.raw((sql) => sql`rollback to savepoint keyed_work`);
      return answer;
    }
  }

  async #keep({ nodeId, bytes, ...scope }: KeyedRequest, answer: Answer): Promise<Answer> {
    if (answer.status >= 500) return answer;
    const kept = {
      ...answer,
      body_sha256: sha256(bytes),
      created_at: new Date(this.#parts.nowMs()).toISOString(),
    };
    // One that is there has been kept for its day.
    await this.#parts.db.forNode(nodeId).run((k) =>
      k
        .insertInto('idempotent_answers')
        .values({ scope: scopeHash(scope), ...kept })
        .onConflict((conflicting) => conflicting.columns(['node_id', 'scope']).doUpdateSet(kept)),
    );
    return answer;
  }

  #oldest(): string {
    return new Date(this.#parts.nowMs() - KEPT_MS).toISOString();
  }
}

function envelopeAnswer(error: unknown): Answer | undefined {
  return error instanceof AppError && error.status < 500 ? answerOf(error) : undefined;
}

function answerOf(refusal: AppError): Answer {
  return { status: refusal.status, headers: refusal.headers, body: JSON.stringify(errorEnvelope(refusal)) };
}

function conflict(): AppError {
  return new AppError(409, 'idempotency_conflict');
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}
