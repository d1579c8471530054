import { pageTooLarge, serviceUnavailable } from '../errors.ts';

/** The limits on the results that the requests of one tenant hold in this process. */
interface ResultLimits {
  /** The most bytes that the requests of a tenant hold together, and that a single request holds. */
  maxBytes: number;
  /** How long a request waits until it may read, in milliseconds. */
  waitMs: number;
}

/** The maximum size of the results that the requests of one tenant hold in this process, in bytes. */
export const MAX_HELD_BYTES = 64 * 1024 * 1024;
const WAIT_MS = 10_000;
/** The share of the limit that is reserved for requests with small results. */
const RESERVED_SHARE = 1 / 4;
const SMALL_BYTES = 256 * 1024;

/** The error of a read that was given up because its tenant holds too much. It is repeated later. */
export const GIVEN_UP = new Error('the tenant holds too many results');

interface Waiter {
  held: HeldResults;
  resolve(): void;
  reject(error: unknown): void;
}

/** The results that the requests of one tenant hold. */
class Budget {
  readonly limits: ResultLimits;
  readonly #waiting = new Set<Waiter>();
  /** The number of requests that use it. */
  requests = 0;
  bytes = 0;
  /**
   * The request that may read although the limit is reached. There is one at a time, so that some request always ends.
   */
  #turn: HeldResults | undefined;

  constructor(limits: ResultLimits) {
    this.limits = limits;
  }

  /** Checks whether a request may continue to read. At the limit, the first one that asks may. */
  admits(held: HeldResults): boolean {
    const { maxBytes } = this.limits;
    const reserved = held.bytes > SMALL_BYTES ? maxBytes * RESERVED_SHARE : 0;
    return this.bytes <= maxBytes - reserved || this.#takesTurn(held);
  }

  /**
   * Waits until a request may continue to read.
   * @throws Refusal `service_unavailable` when that takes too long, or the request ends.
   */
  async wait(held: HeldResults): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { held, resolve, reject };
    this.#waiting.add(waiter);
    const timer = setTimeout(() => this.#refuse(waiter), this.limits.waitMs);
    this.#serve();
    await promise.finally(() => clearTimeout(timer));
  }

  /** Ends the turn of a request that has finished reading, and lets waiting ones read. */
  pass(held: HeldResults): void {
    if (this.#turn === held) this.#turn = undefined;
    this.#serve();
  }

  /** Refuses the waiting reads of a request. */
  cancel(held: HeldResults): void {
    for (const waiter of this.#waiting) if (waiter.held === held) this.#refuse(waiter);
  }

  #refuse(waiter: Waiter): void {
    this.#waiting.delete(waiter);
    waiter.reject(serviceUnavailable());
  }

  #takesTurn(held: HeldResults): boolean {
    if (!this.#turn && this.bytes - held.bytes <= this.limits.maxBytes) this.#turn = held;
    return this.#turn === held;
  }

  /** Lets the reads of the next request continue, and of one more if half of the limit is free. */
  #serve(): void {
    let another = this.bytes <= this.limits.maxBytes / 2;
    for (const waiter of this.#waiting) {
      if (!this.#takesTurn(waiter.held)) {
        if (!another) continue;
        another = false;
      }
      this.#waiting.delete(waiter);
      waiter.resolve();
    }
  }
}

/**
 * Limits the bytes of results in flight by tenant: of rows from the time they are read, and of the response that is
 * made of them until it is sent. A request that alone would hold more is refused; others wait for each other.
 */
export class ResultBudgets {
  readonly limits: ResultLimits = { maxBytes: MAX_HELD_BYTES, waitMs: WAIT_MS };
  readonly #budgets = new Map<string, Budget>();

  /** Returns the bytes that the requests of a tenant hold. */
  held(nodeId: string): number {
    return this.#budgets.get(nodeId)?.bytes ?? 0;
  }

  /** Begins a request. `nodeOf` returns the id of its tenant, undefined until it is known; nothing counts before. */
  begin(nodeOf: () => string | undefined): HeldResults {
    return new HeldResults(this, nodeOf);
  }

  /** Returns the budget of a tenant, for one more request. */
  enter(nodeId: string): Budget {
    const budget = this.#budgets.get(nodeId) ?? new Budget(this.limits);
    this.#budgets.set(nodeId, budget);
    budget.requests += 1;
    return budget;
  }

  /** Ends the use of a budget by a request. */
  leave(nodeId: string, budget: Budget): void {
    budget.requests -= 1;
    if (budget.requests === 0) this.#budgets.delete(nodeId);
  }
}

/** The results that a request holds: rows, and the response that is made of them. */
export class HeldResults {
  /** Returns the id of the request's tenant; undefined until it is known. */
  readonly nodeOf: () => string | undefined;
  readonly #budgets: ResultBudgets;
  #nodeId = '';
  #budget: Budget | undefined;
  #refusal: Error | undefined;
  #running = 0;
  #isEnded = false;
  /** The bytes that it holds. */
  bytes = 0;

  constructor(budgets: ResultBudgets, nodeOf: () => string | undefined) {
    this.#budgets = budgets;
    this.nodeOf = nodeOf;
  }

  /** Starts separate accounting for the same caller, for results whose lifetime differs from the request's. */
  apart(): HeldResults {
    return this.#budgets.begin(this.nodeOf);
  }

  /**
   * Adds bytes that were read. Returns the error with which the read ends, if no more may be read: `GIVEN_UP` if it can
   * be repeated, otherwise the refusal.
   */
  add(bytes: number, isRepeatable: boolean): Error | undefined {
    const budget = this.#isEnded && this.#running === 0 ? undefined : this.#entered();
    if (!budget) return undefined;
    this.bytes += bytes;
    budget.bytes += bytes;
    if (this.bytes > budget.limits.maxBytes) this.#refusal ??= pageTooLarge(budget.limits.maxBytes);
    if (this.#refusal) return this.#refusal;
    return isRepeatable && !budget.admits(this) ? GIVEN_UP : undefined;
  }

  /**
   * Runs reads when the tenant's other requests leave room for their rows, and again if they are given up.
   * @throws Refusal `page_too_large`, or `service_unavailable` when there is no room for long or the client has left.
   */
  async read<Result>(reads: (mayRead: () => boolean) => Promise<Result>): Promise<Result> {
    for (;;) {
      if (this.#refusal) throw this.#refusal;
      const budget = this.#entered();
      if (!budget) return reads(() => true);
      if (!budget.admits(this)) await budget.wait(this);
      this.#running += 1;
      try {
        return await reads(() => budget.admits(this));
      } catch (error) {
        if (error !== GIVEN_UP) throw error;
        await budget.wait(this);
      } finally {
        this.#running -= 1;
        if (this.#isEnded) this.end();
      }
    }
  }

  /**
   * Raises the bytes that it holds to the size of a response that is made of its rows. Returns a promise if the rest of
   * the response has to wait for other requests.
   * @throws Refusal `page_too_large`.
   */
  raiseTo(bytes: number): Promise<void> | undefined {
    const error = bytes > this.bytes ? this.add(bytes - this.bytes, true) : undefined;
    if (error && error !== GIVEN_UP) throw error;
    return error && this.#budget?.wait(this);
  }

  /** Lowers the bytes that it holds, because rows are no longer needed: to the size of the response, or to 0. */
  lowerTo(bytes: number): void {
    this.#refusal = undefined;
    this.subtract(Math.max(0, this.bytes - bytes));
    this.#budget?.pass(this);
  }

  /** Subtracts bytes of a read that was given up. */
  subtract(bytes: number): void {
    this.bytes -= bytes;
    if (this.#budget) this.#budget.bytes -= bytes;
  }

  /**
   * Ends the request: it holds nothing once its running reads have ended. If it holds much, nothing more is read for
   * it.
   */
  end(): void {
    this.#isEnded = true;
    if (this.bytes > SMALL_BYTES) this.#refusal ??= serviceUnavailable();
    this.#budget?.cancel(this);
    if (this.#running > 0 || !this.#budget) return;
    this.subtract(this.bytes);
    this.#budget.pass(this);
    this.#budgets.leave(this.#nodeId, this.#budget);
    this.#budget = undefined;
  }

  #entered(): Budget | undefined {
    if (this.#budget) return this.#budget;
    const nodeId = this.nodeOf();
    if (nodeId === undefined) return undefined;
    this.#nodeId = nodeId;
    this.#budget = this.#budgets.enter(nodeId);
    return this.#budget;
  }
}
