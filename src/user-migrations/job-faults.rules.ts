import { AppError } from '../errors/app-error.ts';
import { sqlState } from '../lib/sql-state.ts';

/**
 * Connections (08), authorization (28), transactions that collide (40), resources (53), locks (55), operators (57),
 * disks (58) and read-only servers (25): the same statement may succeed later.
 */
const PASSING_STATES = /^(?:08|25|28|40|53|55|57|58)/;
const PASSING_CODES = /^(?:E[A-Z]{3,}|CONNECTION_[A-Z_]+)$/;
const PASSING_MESSAGES = /connection|terminat|timeout|timed out/i;

/** Whether an error tells that a part is away for now, rather than of a fault in what was to be done. */
export function isPassing(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined && !PASSING_CODES.test(state)) return PASSING_STATES.test(state);
  for (let current = error, depth = 0; current instanceof Error && depth < 5; depth += 1) {
    if (current instanceof AppError && current.status === 503) return true;
    if ('code' in current && typeof current.code === 'string' && PASSING_CODES.test(current.code)) return true;
    if (PASSING_MESSAGES.test(current.message)) return true;
    current = current.cause;
  }
  return false;
}
