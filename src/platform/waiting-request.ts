import { AsyncLocalStorage } from 'node:async_hooks';
import type { HeldMemory } from './held-memory.ts';

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
