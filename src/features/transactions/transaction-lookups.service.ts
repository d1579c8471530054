import { Counter } from 'prom-client';
import { PoisonError } from '../../events/bus/event-bus.ts';
import type { Log } from '../../lib/log.ts';
import { backoffMs, pause, WorkLoop } from '../../lib/work-loop.ts';
import type { Db } from '../../platform/database/database.ts';
import { BodyTooLongError, bytesOf, HttpAgent } from '../../platform/http-agent.ts';
import { type NewTransaction, parseRegistration } from './notification.input.ts';
import { type DueLookup, LookupStore } from './transactions.store.ts';

/** Returns the pause, in ms, before the next lookup of an id after so many attempts: 1 s, doubling up to 1 h. */
export function lookupBackoffMs(attempts: number): number {
  return backoffMs(attempts, { minMs: 1_000, maxMs: 3_600_000 });
}

/** The outcome of a lookup. */
type Outcome = 'registered' | 'unknown' | 'failed';

/** The number of lookups that one process may have in progress. */
export const LOOKUPS_AT_ONCE = 8;
/** The interval between polls for due lookups, in ms. An id registered by the topic in the meantime needs no lookup. */
const LOOKUP_POLL_MS = 1_000;
/**
 * The time, in ms, beyond the owner's timeout after which another process may claim a lookup, in case this one has
 * died.
 */
const LEASE_MS = 10_000;

/**
 * Looks up ids with parked notifications at the owner (the service that owns transactions), and registers what it
 * finds. The queue is a table: it survives restarts, and only one process at a time looks up an id. The pause after an
 * unsuccessful lookup grows for each id. While the owner fails, the process also pauses between lookups.
 */
export class TransactionLookups extends WorkLoop {
  /** The counter of lookups by outcome; to be registered with the metrics of the process. */
  readonly outcomes = new Counter({
    name: 'portcullis_transaction_lookups_total',
    help: 'Lookups of transactions at their owner, by outcome.',
    labelNames: ['outcome'],
    registers: [],
  });
  readonly #deps;
  readonly #store: LookupStore;
  readonly #underWay = new Set<Promise<void>>();
  /** The number of consecutive failures, over all ids. */
  #failures = 0;

  constructor(deps: {
    db: Db;
    log: Log;
    nowMs(): number;
    transactions: { registerByOwner(transaction: NewTransaction): Promise<void> };
    owner: Pick<TransactionOwner, 'find'>;
    /** The timeout of one lookup, in ms. */
    timeoutMs: number;
  }) {
    super({
      iterate: async (signal) => {
        if (this.#failures > 0) await pause(backoffMs(this.#failures), signal);
        return this.iterate(signal);
      },
      onFailure: (error) => deps.log.warn({ err: error }, 'transaction lookups paused; database unavailable'),
      pollMs: LOOKUP_POLL_MS,
    });
    this.#deps = deps;
    this.#store = new LookupStore(deps.db);
  }

  /** Stops and aborts the lookups in progress; other processes may repeat them at once. */
  override async stop(): Promise<void> {
    await super.stop();
    await this.settled();
  }

  /**
   * Starts as many due lookups as permitted and waits until another one may start. Returns whether any was due.
   * `signal` aborts the started lookups.
   * @throws what the database throws.
   */
  async iterate(signal: AbortSignal): Promise<boolean> {
    const nowMs = this.#deps.nowMs();
    const untilMs = nowMs + this.#deps.timeoutMs + LEASE_MS;
    const due = await this.#store.claim({ limit: LOOKUPS_AT_ONCE - this.#underWay.size, nowMs, untilMs });
    for (const lookup of due) {
      const lookingUp: Promise<void> = this.#lookUp(lookup, signal).finally(() => this.#underWay.delete(lookingUp));
      this.#underWay.add(lookingUp);
    }
    if (this.#underWay.size >= LOOKUPS_AT_ONCE) await Promise.race(this.#underWay);
    return due.length > 0;
  }

  /** Resolves when all lookups in progress have an outcome. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /** Looks up one id. Never rejects: if its outcome cannot be stored, the claim on the id expires. */
  async #lookUp({ id, attempts }: DueLookup, signal: AbortSignal): Promise<void> {
    const { log, nowMs } = this.#deps;
    try {
      const outcome = await this.#ask(id, signal);
      if (outcome === 'unknown') await this.#store.postpone(id, nowMs() + lookupBackoffMs(attempts));
      this.#failures = 0;
      this.outcomes.inc({ outcome });
    } catch (error) {
      if (!signal.aborted) {
        this.#failures += 1;
        this.outcomes.inc({ outcome: 'failed' satisfies Outcome });
        if (this.#failures === 1) {
          log.warn({ err: error, transaction_id: id }, 'could not look up a transaction at its owner');
        }
      }
      const untilMs = signal.aborted ? nowMs() : nowMs() + lookupBackoffMs(attempts);
      await this.#store.postpone(id, untilMs).catch(() => undefined);
    }
  }

  async #ask(id: string, signal: AbortSignal): Promise<Outcome> {
    const ownerTransaction = await this.#deps.owner.find(id, signal);
    if (!ownerTransaction) return 'unknown';
    await this.#deps.transactions.registerByOwner(ownerTransaction);
    return 'registered';
  }
}

/**
 * Thrown when the owner sends no response or no usable one. The message contains nothing of the response but its
 * status.
 */
export class OwnerError extends Error {
  override name = 'OwnerError';
}

const MAX_ANSWER_BYTES = 64 * 1024;

/** A client for the owner, the service that owns transactions. */
export class TransactionOwner {
  readonly #timeoutMs: number;
  readonly #prefix: string;
  readonly #agent: HttpAgent;

  constructor({
    url,
    timeoutMs,
    bearer,
    connections,
  }: {
    /** The base URL, without a slash at its end; a slash and the percent-encoded id follow it. */
    url: string;
    /** The timeout, in ms, from the request to the last byte of the response. */
    timeoutMs: number;
    bearer: string | undefined;
    connections: number;
  }) {
    const { origin, pathname } = new URL(url);
    this.#timeoutMs = timeoutMs;
    this.#prefix = pathname === '/' ? '' : pathname;
    const authorization = bearer === undefined ? undefined : `Bearer ${bearer}`;
    this.#agent = new HttpAgent(origin, { connections, timeoutMs, authorization });
  }

  /**
   * Fetches the registration of an id; returns undefined when the owner does not know the id.
   * @throws OwnerError when there is no valid response of at most 64 KiB within the timeout.
   * @throws the signal's reason when the signal aborts.
   */
  async find(id: string, signal: AbortSignal): Promise<NewTransaction | undefined> {
    // As a path segment these two would change the path, and no encoding prevents that.
    if (id === '.' || id === '..') return undefined;
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    try {
      return await this.#ask(id, AbortSignal.any([signal, timeout]));
    } catch (error) {
      signal.throwIfAborted();
      if (timeout.aborted) throw new OwnerError('no response in time');
      throw faultOf(error);
    }
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }

  async #ask(id: string, signal: AbortSignal): Promise<NewTransaction | undefined> {
    const path = `${this.#prefix}/${encodeURIComponent(id)}`;
    const { statusCode, body } = await this.#agent.request({ path, signal });
    const answer = await bytesOf(body, MAX_ANSWER_BYTES);
    if (statusCode === 404) return undefined;
    if (statusCode !== 200) throw new OwnerError(`the response has status ${statusCode}`);
    const registration = parseRegistration(answer);
    if (registration.id !== id) throw new OwnerError('the response is about another id');
    return registration;
  }
}

function faultOf(error: unknown): OwnerError {
  if (error instanceof OwnerError) return error;
  if (error instanceof BodyTooLongError) return new OwnerError(error.message);
  if (error instanceof PoisonError) return new OwnerError('the response is not a registration');
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unexpected';
  return new OwnerError(`no answer (${code})`);
}
