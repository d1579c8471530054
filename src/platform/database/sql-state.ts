import { notFound } from '../errors.ts';

/** Returns the SQLSTATE of a database error from either driver, wrapped or not; undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  return textOf(error, 'code', /^[0-9A-Z]{5}$/);
}

/** The SQLSTATEs of a deadlock, a lock timeout, a value that a unique index has already, and one that refers to no row. */
export const DEADLOCK = '40P01';
export const LOCK_TIMEOUT = '55P03';
export const UNIQUE_VIOLATION = '23505';
const FOREIGN_KEY_VIOLATION = '23503';

/**
 * Writes a row that refers to another.
 * @throws Refusal `not_found` when there is no such other row, else what `write` throws.
 */
export async function withParent<Result>(write: () => Promise<Result>): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    throw sqlState(error) === FOREIGN_KEY_VIOLATION ? notFound() : error;
  }
}

/** Checks whether the database or a constraint refused a value (SQLSTATE classes 22 and 23), so that no retry helps. */
export function isRefusedValue(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error) ?? '');
}

/** Matches the code of an error, or its message if it has none, by which Node, PostgreSQL and the driver say `isServerAway`. */
const AWAY =
  /^(?:E(?:CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_AGAIN)|08\w{3} |57P0|53300|25006| (?:connection terminated|timeout exceeded when trying to connect|client has encountered))/i;

/**
 * Checks whether an error says that the server is unavailable: it cannot be reached or was lost, is starting or stopping,
 * has no free connection, or accepts no writes.
 */
export function isServerAway(error: unknown): error is Error {
  return error instanceof Error && AWAY.test(`${'code' in error ? error.code : ''} ${error.message}`);
}

/**
 * Returns the name of the constraint or unique index that a database error names, wrapped or not; undefined if none.
 */
export function violatedConstraint(error: unknown): string | undefined {
  return textOf(error, 'constraint', /^/);
}

/** Returns the first text that matches `form` in the named member of an error or of its causes; undefined if none. */
function textOf(error: unknown, member: string, form: RegExp): string | undefined {
  for (let current = error, depth = 0; typeof current === 'object' && current !== null && depth < 5; depth++) {
    const value: unknown = Reflect.get(current, member);
    if (typeof value === 'string' && form.test(value)) return value;
    current = 'cause' in current ? current.cause : undefined;
  }
  return undefined;
}
