import { AsyncLocalStorage } from 'node:async_hooks';
import { getHeapStatistics } from 'node:v8';
import { notePresence, type Worker } from '../lib/yielding.ts';
import { pageTooLarge, type Refusal, serviceUnavailable } from './errors.ts';

const MEBIBYTE = 1024 * 1024;

/** The accounts of callers that are no tenants. */
export const OTHER_ACCOUNTS = {
  /** Webhook requests, once their Basic credentials are right. */
  webhook: 'webhook',
  /** Requests that authenticate a client or a supervisor. */
  authentication: 'authentication',
  /** Requests whose token is missing or not verified yet. */
  unidentified: 'unidentified',
} as const;
/** The kinds of accounts, as metrics tell them: there may be thousands of tenants. */
export const ACCOUNT_KINDS = ['tenant', ...Object.values(OTHER_ACCOUNTS)] as const;
type AccountKind = (typeof ACCOUNT_KINDS)[number];

/** The memory of a request without its headers, its body and its results, in bytes, with its place in a queue. */
export const REQUEST_BYTES = 4 * 1024;
/** The share of the heap that requests may hold together: the estimates cover what is held, not what is garbage. */
const HEAP_SHARE = 1 / 4;
const MAX_TOTAL_BYTES = 256 * MEBIBYTE;
/** The most rows that a single request may hold, in bytes. */
export const MAX_ROW_BYTES = 64 * MEBIBYTE;
/** How long a request waits for what it needs: room for its rows, or anything that it waits for without a tenant; in ms. */
export const MAX_WAIT_MS = 10_000;
/** The share of an account that is reserved for requests with few rows. */
const RESERVED_SHARE = 1 / 4;
const SMALL_BYTES = 256 * 1024;
/** An account whose requests hold more than this share of the most that it may hold is near its limit. */
const NEAR_SHARE = 0.8;
/**
 * How much more than the total requests may hold together with refused ones whose work has not ended: the rest of the
 * heap is for copies and garbage.
 */
const MOST_OF_TOTAL = 1.5;
/** How many accounts and parts that hold nothing are kept, since the next request would create them again. */
const MAX_IDLE = 1_024;

/** The error of a read that was given up because its account holds too much. It is repeated later. */
export const GIVEN_UP = new Error('the account holds too much');

/** Returns how many bytes the requests of a process may hold together. */
export function totalBytesOf(heapBytes: number): number {
  return Math.floor(Math.min(heapBytes * HEAP_SHARE, MAX_TOTAL_BYTES));
}

interface Waiter {
  held: HeldMemory;
  resolve(): void;
  reject(error: unknown): void;
}

/** The requests of one address within an account; of a tenant, all. */
class Part {
  bytes = 0;
  /** The open requests, the oldest first. */
  readonly open = new Set<HeldMemory>();
}

/** What the requests of a tenant, or of another kind of caller, hold together. */
class Account {
  readonly parts = new Map<string, Part>();
  readonly waiting = new Set<Waiter>();
  bytes = 0;
  /** What its refused requests hold until their work has ended. */
  refusedBytes = 0;
  requests = 0;
  /** The request that may read although the account is full. There is one at a time, so that some request always ends. */
  turn: HeldMemory | undefined;

  partOf(name: string): Part {
    return this.parts.getOrInsertComputed(name, () => new Part());
  }

  /** Returns the newest request of the part that holds the most. */
  get newest(): HeldMemory | undefined {
    return [...(largestOf(this.parts.values(), ({ bytes }) => bytes)?.open ?? [])].at(-1);
  }

  takesTurn(held: HeldMemory): boolean {
    this.turn ??= held;
    return this.turn === held;
  }

  /** Lets the reads of the next request continue, and of one more if `hasRoom`. */
  serve(hasRoom: boolean): void {
    let mayServeOneMore = hasRoom;
    for (const waiter of this.waiting) {
      if (!this.takesTurn(waiter.held)) {
        if (!mayServeOneMore) continue;
        mayServeOneMore = false;
      }
      this.waiting.delete(waiter);
      waiter.resolve();
    }
  }

  /** Refuses the waiting reads of a request. */
  cancel(held: HeldMemory): void {
    for (const waiter of this.waiting) if (waiter.held === held) this.refuse(waiter);
  }

  refuse(waiter: Waiter): void {
    this.waiting.delete(waiter);
    waiter.reject(serviceUnavailable());
  }
}

/** Returns the one that has the most of something. */
function largestOf<Holder>(holders: Iterable<Holder>, sizeOf: (holder: Holder) => number): Holder | undefined {
  let largest: Holder | undefined;
  for (const holder of holders) if (!largest || sizeOf(holder) > sizeOf(largest)) largest = holder;
  return largest;
}

/**
 * Accounts for the memory that requests hold, from the end of their heads to the end of their responses. While they hold
 * more than the total, the newest request of the account that holds the most is refused. So an account that holds at most
 * an equal share of the total, with one share left over, never loses a request.
 */
export class MemoryAccounts {
  readonly limits: { totalBytes: number; rowBytes: number; waitMs: number };
  readonly #accounts = new Map<string, Account>();
  #active = 0;
  /** What the requests hold that have not been refused, and what refused ones hold until their work has ended. */
  bytes = 0;
  refusedBytes = 0;
  /** The numbers of requests that were refused, by kind of account. */
  readonly refusals: Record<AccountKind, number> = { tenant: 0, webhook: 0, authentication: 0, unidentified: 0 };

  constructor(totalBytes = totalBytesOf(getHeapStatistics().heap_size_limit)) {
    this.limits = { totalBytes, rowBytes: Math.min(MAX_ROW_BYTES, totalBytes / 2), waitMs: MAX_WAIT_MS };
  }

  /** The bytes that each active account may hold, whatever the others hold. */
  get guaranteedBytes(): number {
    return this.limits.totalBytes / (this.#active + 1);
  }

  /** Returns the bytes that the requests of an account hold. */
  held(key: string): number {
    return this.#accounts.get(key)?.bytes ?? 0;
  }

  /** Opens a request in an account, and in its part `part`. */
  open(key: string, part = ''): HeldMemory {
    return new HeldMemory(this, key, part);
  }

  /** Returns what the accounts of a kind hold, and how many of them hold most of an equal share of the total. */
  summaryOf(kind: AccountKind): { near: number; bytes: number } {
    const summary = { near: 0, bytes: 0 };
    const most = this.limits.totalBytes / Math.max(1, this.#active);
    for (const [key, { bytes }] of this.#accounts) {
      if (kindOf(key) !== kind) continue;
      summary.near += Number(bytes > NEAR_SHARE * most);
      summary.bytes += bytes;
    }
    return summary;
  }

  /** Adds a request to an account. */
  enter(held: HeldMemory): Account {
    const account = this.#accounts.getOrInsertComputed(held.key, () => new Account());
    if (account.requests === 0) this.#active += 1;
    account.requests += 1;
    account.partOf(held.part).open.add(held);
    this.change(account, held.part, held.bytes);
    return account;
  }

  /** Removes a request from its account. */
  leave(account: Account, held: HeldMemory): void {
    const { key, part: name } = held;
    const part = account.partOf(name);
    part.open.delete(held);
    if (held.refusal) this.changeRefused(account, -held.bytes);
    else this.change(account, name, -held.bytes);
    if (part.open.size === 0 && account.parts.size > MAX_IDLE) account.parts.delete(name);
    account.requests -= 1;
    if (account.requests > 0) return;
    this.#active -= 1;
    if (this.#accounts.size > MAX_IDLE) this.#accounts.delete(key);
  }

  /** Adds to what an account holds. */
  change(account: Account, part: string, bytes: number): void {
    account.bytes += bytes;
    account.partOf(part).bytes += bytes;
    this.bytes += bytes;
  }

  /** Charges the account of a request for what other requests of it hold. Returns what subtracts that. */
  chargeOthers({ key, part }: HeldMemory, bytes: number): () => void {
    const account = this.#accounts.get(key);
    if (!account) return () => undefined;
    this.change(account, part, bytes);
    this.makeRoom();
    return () => this.change(account, part, -bytes);
  }

  /**
   * Refuses requests until the others hold no more than the total. What refused work still holds is no reason to refuse
   * more at once; while that is much, each request that comes makes one leave.
   */
  makeRoom(): void {
    const { totalBytes } = this.limits;
    while (this.bytes > totalBytes) if (!this.#refuseNewest(({ bytes }) => bytes)) return;
    const isOver = this.bytes + this.refusedBytes > MOST_OF_TOTAL * totalBytes;
    if (isOver) this.#refuseNewest(({ bytes, refusedBytes }) => bytes + refusedBytes);
  }

  /** Refuses the newest request of the account that holds the most. Returns false if it has none. */
  #refuseNewest(sizeOf: (account: Account) => number): boolean {
    const newest = largestOf(this.#accounts.values(), sizeOf)?.newest;
    if (!newest) return false;
    this.refusals[kindOf(newest.key)] += 1;
    newest.refuse(serviceUnavailable());
    return true;
  }

  /** Removes a refused request from the candidates for refusal; its work continues for a while. */
  retire(account: Account, held: HeldMemory): void {
    account.partOf(held.part).open.delete(held);
    this.change(account, held.part, -held.bytes);
    this.changeRefused(account, held.bytes);
  }

  /** Adds to what the refused requests of an account hold. */
  changeRefused(account: Account, bytes: number): void {
    account.refusedBytes += bytes;
    this.refusedBytes += bytes;
  }

  /** Checks whether a request may continue to read rows. At the limit of its account, the first one that asks may. */
  admits(account: Account, held: HeldMemory): boolean {
    const share = held.rows > SMALL_BYTES ? 1 - RESERVED_SHARE : 1;
    return account.bytes <= this.guaranteedBytes * share || account.takesTurn(held);
  }

  /**
   * Waits until a request may continue to read.
   * @throws Refusal `service_unavailable` when that takes too long, or the request ends.
   */
  async wait(account: Account, held: HeldMemory): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { held, resolve, reject };
    account.waiting.add(waiter);
    const timer = setTimeout(() => account.refuse(waiter), this.limits.waitMs);
    this.serve(account);
    await promise.finally(() => clearTimeout(timer));
  }

  /** Lets waiting reads of an account continue. */
  serve(account: Account): void {
    account.serve(account.bytes <= this.guaranteedBytes / 2);
  }
}

function kindOf(key: string): AccountKind {
  return Object.hasOwn(OTHER_ACCOUNTS, key) ? (key as AccountKind) : 'tenant';
}

/**
 * What a request holds, in bytes: of its head, its body, the values made of them, its subscription, its rows and its
 * response. It is charged to one account at a time.
 */
export class HeldMemory implements Worker {
  readonly #accounts: MemoryAccounts;
  #account: Account | undefined;
  #running = 0;
  #isEnded = false;
  #aborting: AbortController | undefined;
  #deadline: NodeJS.Timeout | undefined;
  /** Why nothing more is read: the rows of the request are too many, or its client has left. */
  #readRefusal: Error | undefined;
  /** The account and the part of it that the request is charged to. */
  key: string;
  part: string;
  bytes = 0;
  /** Of these, the rows and the response that is made of them. */
  rows = 0;
  /** Why the request was refused; undefined if it was not. */
  refusal: Refusal | undefined;
  /** Why no more work is done for the request: it was refused, or its client has left. Undefined until then. */
  stopped: Refusal | undefined;
  /** Ends the request, or what it currently does, when it is refused. */
  giveUp: ((refusal: Refusal) => void) | undefined;

  constructor(accounts: MemoryAccounts, key: string, part: string) {
    this.#accounts = accounts;
    this.key = key;
    this.part = part;
    this.#account = accounts.enter(this);
  }

  /** The id of the tenant whose account this is; undefined for the other accounts. */
  get nodeId(): string | undefined {
    return kindOf(this.key) === 'tenant' ? this.key : undefined;
  }

  /**
   * A signal that ends what the request waits for: aborted when it is refused and, without a tenant, when it has waited
   * for 10 s.
   */
  get signal(): AbortSignal {
    this.#aborting ??= new AbortController();
    if (this.nodeId === undefined && !this.#isEnded) {
      const { waitMs } = this.#accounts.limits;
      this.#deadline ??= setTimeout(() => this.#aborting?.abort(serviceUnavailable()), waitMs).unref();
    }
    return this.#aborting.signal;
  }

  /** The worker of what is done even when no client waits for it, such as an audit record. */
  get unstoppable(): Worker {
    return { key: this.key };
  }

  /** Opens another entry in the same account, for what is held longer or shorter than the request. */
  openSeparately(): HeldMemory {
    return this.#accounts.open(this.key, this.part);
  }

  /** Charges its account, even after it has ended, for what other requests of it hold. Returns what subtracts that. */
  chargeOthers(bytes: number): () => void {
    return this.#accounts.chargeOthers(this, bytes);
  }

  /** Moves the request to another account, once its caller is known. */
  moveTo(key: string, part = ''): void {
    if (!this.#account || this.refusal || (key === this.key && part === this.part)) return;
    notePresence(key);
    this.#leave();
    clearTimeout(this.#deadline);
    this.key = key;
    this.part = part;
    this.#account = this.#accounts.enter(this);
  }

  /** Adds bytes that the request holds until it ends. Returns false if it is refused. */
  charge(bytes: number): boolean {
    if (this.#isEnded && this.#running === 0) return false;
    this.bytes += bytes;
    if (this.#account && this.refusal) this.#accounts.changeRefused(this.#account, bytes);
    else if (this.#account) {
      this.#accounts.change(this.#account, this.part, bytes);
      if (bytes > 0) this.#accounts.makeRoom();
    }
    return this.refusal === undefined;
  }

  /**
   * Adds bytes of rows that were read. Returns the error with which the read ends, if no more may be read: `GIVEN_UP` if
   * it can be repeated, otherwise the refusal.
   */
  add(bytes: number, isRepeatable: boolean): Error | undefined {
    if (this.#isEnded && this.#running === 0) return undefined;
    this.rows += bytes;
    this.charge(bytes);
    const { rowBytes } = this.#accounts.limits;
    if (this.rows > rowBytes) this.#readRefusal ??= pageTooLarge(rowBytes);
    return this.#fault ?? (isRepeatable && !this.#mayRead() ? GIVEN_UP : undefined);
  }

  /**
   * Runs reads when the account leaves room for their rows, and again if they are given up.
   * @throws Refusal `page_too_large`, or `service_unavailable` when there is no room for long or the client has left.
   */
  async read<Result>(reads: (mayRead: () => boolean) => Promise<Result>): Promise<Result> {
    for (;;) {
      if (this.#fault) throw this.#fault;
      if (!this.#mayRead()) await this.#wait();
      try {
        return await this.during(() => reads(() => this.#mayRead()));
      } catch (error) {
        if (error !== GIVEN_UP) throw error;
      } finally {
        // It holds little that others need, and may stay open for long, as a stream does.
        if (this.rows <= SMALL_BYTES && this.#account?.turn === this) this.pass();
      }
      await this.#wait();
    }
  }

  /** Runs work that uses what the request holds: until it has ended that stays charged, even if the request is refused. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      if (this.#isEnded) this.end();
      else if (this.refusal && this.#running === 0) this.#leave();
    }
  }

  /**
   * Raises its rows to the size of a response that is made of them. Returns a promise if the rest of the response has to
   * wait for other requests.
   * @throws Refusal `page_too_large` or `service_unavailable`.
   */
  raiseTo(bytes: number): Promise<void> | undefined {
    const error = bytes > this.rows ? this.add(bytes - this.rows, true) : undefined;
    if (error && error !== GIVEN_UP) throw error;
    return error && this.#wait();
  }

  /** Lowers its rows, because they are no longer needed: to the size of the response, or to 0. */
  lowerTo(bytes: number): void {
    this.#readRefusal = undefined;
    this.subtract(Math.max(0, this.rows - bytes));
    this.pass();
  }

  /** Subtracts rows of a read that was given up. */
  subtract(bytes: number): void {
    this.rows -= bytes;
    this.charge(-bytes);
  }

  /** Refuses the request: ends what it waits for or does, so that what it holds is free soon. */
  refuse(refusal: Refusal): void {
    if (this.refusal) return;
    const account = this.#account;
    if (account) this.#accounts.retire(account, this);
    this.refusal = refusal;
    this.stopped = refusal;
    account?.cancel(this);
    if (this.#running === 0) this.#leave();
    this.#aborting?.abort(refusal);
    this.giveUp?.(refusal);
  }

  /** Stops the work of the request at its next turn, because its client has left. */
  leave(): void {
    this.stopped ??= serviceUnavailable();
  }

  /**
   * Ends the request: what waits for it leaves its queue, and it holds nothing once its running work has ended. If it
   * holds many rows, nothing more is read for it.
   */
  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#deadline);
    if (this.rows > SMALL_BYTES) this.#readRefusal ??= serviceUnavailable();
    this.#account?.cancel(this);
    this.#aborting?.abort(serviceUnavailable());
    if (this.#running > 0) return;
    this.#leave();
    this.bytes = 0;
    this.rows = 0;
    this.giveUp = undefined;
  }

  get #fault(): Error | undefined {
    return this.refusal ?? this.#readRefusal;
  }

  #mayRead(): boolean {
    return this.#account === undefined || this.#accounts.admits(this.#account, this);
  }

  async #wait(): Promise<void> {
    if (this.#account) await this.#accounts.wait(this.#account, this);
  }

  /** Ends the turn of what has finished reading, or waits for its client, and lets waiting ones read. */
  pass(): void {
    const account = this.#account;
    if (!account) return;
    if (account.turn === this) account.turn = undefined;
    this.#accounts.serve(account);
  }

  #leave(): void {
    const account = this.#account;
    if (!account) return;
    account.cancel(this);
    this.#accounts.leave(account, this);
    this.#account = undefined;
    if (account.turn === this) account.turn = undefined;
    this.#accounts.serve(account);
  }
}

/**
 * What requests of one account hold together. The first that takes it is charged; when that one releases it, the account
 * is, until the last one does.
 */
export class SharedHold<Value> {
  readonly value: Value;
  readonly #bytes: number;
  #holders = 0;
  #payer: HeldMemory | undefined;
  #subtract: (() => void) | undefined;

  constructor(value: Value, bytes: number) {
    this.value = value;
    this.#bytes = bytes;
  }

  take(held: HeldMemory | undefined): void {
    this.#holders += 1;
    if (this.#holders > 1) return;
    this.#payer = held;
    held?.charge(this.#bytes);
  }

  release(held: HeldMemory | undefined): void {
    this.#holders -= 1;
    if (held && held === this.#payer) {
      this.#payer = undefined;
      held.charge(-this.#bytes);
      if (this.#holders > 0) this.#subtract = held.chargeOthers(this.#bytes);
    } else if (this.#holders === 0) {
      this.#subtract?.();
      this.#subtract = undefined;
    }
  }
}

/** A request that waits for work. */
export interface WaitingRequest {
  held: HeldMemory;
  /** Whether the duration of its statements is limited. */
  hasDeadline: boolean;
  /** Whether its current statements only read, and are repeated when they are given up. */
  isReading?: boolean;
}

/** The request that waits for the work of the current async context; undefined if none does. */
export const waitingRequest = new AsyncLocalStorage<WaitingRequest | undefined>();

/**
 * Runs work that a request waits for: the duration of its statements is limited, they use the tenant's share of the
 * connections, and what it holds is charged to the request.
 */
export function inRequest<Result>(held: HeldMemory, work: () => Result): Result {
  return waitingRequest.run({ held, hasDeadline: true }, work);
}

/** Returns what the request of the current async context holds; undefined if no request waits for it. */
export function heldMemory(): HeldMemory | undefined {
  return waitingRequest.getStore()?.held;
}

/** Returns the signal that ends what the request of the current async context waits for. */
export function requestSignal(): AbortSignal | undefined {
  return heldMemory()?.signal;
}

/**
 * Runs work whose statements may take any time. If a request waits for it, they still use the tenant's share of the
 * connections.
 */
export function withoutDeadline<Result>(work: () => Result): Result {
  const waiting = waitingRequest.getStore();
  return waitingRequest.run(waiting && { ...waiting, hasDeadline: false }, work);
}

/** Runs work that no request waits for, even if a request started it. */
export function outsideRequest<Result>(work: () => Result): Result {
  return waitingRequest.run(undefined, work);
}
