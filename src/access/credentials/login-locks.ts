import { identifierKey } from '../../lib/identifier-key.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Db } from '../../platform/database/database.ts';

/** The number of failed logins within `WINDOW_MS` that lock a username for `WINDOW_MS`. */
const FAILURES_TO_LOCK = 5;
/** The number of failed sign-ins from all addresses that lock a username for the console. */
const SIGN_INS_TO_LOCK = 100;
export const WINDOW_MS = 15 * 60_000;

/** The rule of lockouts, for people: wrong passwords from one address within so many seconds lock it for as long. */
export const LOGIN_LOCK = { failures: FAILURES_TO_LOCK, seconds: WINDOW_MS / 1_000 };

/**
 * Returns when the lockout of a username ends, in ms since 1970; undefined when it is not locked
 * (docs/contract.md, D3-17). `failedAtMs` are the times of its failed logins in any order; only the newest `failures`
 * count.
 */
export function lockedUntilMs(
  failedAtMs: readonly number[],
  nowMs: number,
  failures = FAILURES_TO_LOCK,
): number | undefined {
  const newest = failedAtMs.toSorted((a, b) => b - a);
  const [last] = newest;
  const first = newest[failures - 1];
  if (last === undefined || first === undefined || last - first >= WINDOW_MS) return undefined;
  const untilMs = last + WINDOW_MS;
  return nowMs < untilMs ? untilMs : undefined;
}

/**
 * Where a password was sent: null at the token endpoint; at the console the address that sent it; for a change of one's
 * own password the session. Failures from an address or a session lock the username for that one only.
 */
export type LoginOrigin = string | null;

interface Failure {
  address: LoginOrigin;
  atMs: number;
}

/** Returns when the last lockout of a username ends for logins from an origin; from any if that is undefined. */
function lockoutOf(failures: readonly Failure[], origin: LoginOrigin | undefined, nowMs: number): number | undefined {
  const lockouts = [...Map.groupBy(failures, ({ address }) => address)]
    .filter(([address]) => origin === undefined || address === origin)
    .map(([, ofOrigin]) => lockedUntilMs(ofOrigin.map(timeOf), nowMs));
  const signIns = origin === null ? [] : failures.filter(({ address }) => address !== null);
  return [...lockouts, lockedUntilMs(signIns.map(timeOf), nowMs, SIGN_INS_TO_LOCK)]
    .filter((untilMs) => untilMs !== undefined)
    .toSorted((a, b) => a - b)
    .at(-1);
}

/** Stores failed logins by tenant and key of the username in the database, and derives lockouts from them for all processes. */
export class LoginLocks {
  readonly #deps;

  constructor(deps: { db: Db; nowMs(): number }) {
    this.#deps = deps;
  }

  /** Checks whether a username is locked now for logins from an origin. */
  async isLocked(nodeId: string, username: string, origin: LoginOrigin): Promise<boolean> {
    return (await this.lockOf(nodeId, username, origin)).untilMs !== undefined;
  }

  /**
   * Returns until when a username is locked now for logins from an origin, and until when it is once another one has failed
   * at a time.
   */
  async lockOf(nodeId: string, username: string, address: LoginOrigin) {
    const failures = await this.#failuresOf(nodeId, [username]);
    return {
      untilMs: lockoutOf(failures, address, this.#deps.nowMs()),
      untilAfter: (atMs: number) => lockoutOf([...failures, { address, atMs }], address, atMs),
    };
  }

  /** Records a failed login. Returns its time. */
  async recordFailure(nodeId: string, username: string, address: LoginOrigin): Promise<number> {
    const { db, nowMs } = this.#deps;
    const atMs = nowMs();
    const row = { id: uuidV7(), username: identifierKey(username), address, failed_at: new Date(atMs).toISOString() };
    await db.forNode(nodeId).run((k) => k.insertInto('login_failures').values(row));
    return atMs;
  }

  /** Deletes the failed logins of a username, which ends its lockout: those from an origin, or all. */
  async unlock(nodeId: string, username: string, origin?: LoginOrigin): Promise<void> {
    await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .deleteFrom('login_failures')
        .where('username', '=', identifierKey(username))
        .$if(origin !== undefined, (query) => query.where('address', 'is not distinct from', origin ?? null)),
    );
  }

  /**
   * Returns, by username as given, the end of its lockout in ms since 1970, for logins from one origin or from any;
   * usernames that are not locked are left out. It takes one statement, however many the usernames.
   */
  async lockedUntil(
    nodeId: string,
    usernames: readonly string[],
    origin?: LoginOrigin,
  ): Promise<ReadonlyMap<string, number>> {
    const now = this.#deps.nowMs();
    const failures = Map.groupBy(await this.#failuresOf(nodeId, usernames), ({ key }) => key);
    return new Map(
      usernames.flatMap((username) => {
        const untilMs = lockoutOf(failures.get(identifierKey(username)) ?? [], origin, now);
        return untilMs === undefined ? [] : [[username, untilMs] as const];
      }),
    );
  }

  async #failuresOf(nodeId: string, usernames: readonly string[]) {
    const { db, nowMs } = this.#deps;
    // Older failures cannot lock any more. None is added during a lockout, so there are few: five, or a hundred.
    const since = new Date(nowMs() - 2 * WINDOW_MS).toISOString();
    const rows = await db.forNode(nodeId).run((k) =>
      k
        .selectFrom('login_failures')
        .select(['username', 'address', 'failed_at'])
        .where('username', 'in', usernames.length > 0 ? usernames.map(identifierKey) : [''])
        .where('failed_at', '>', since),
    );
    return rows.map(({ username, address, failed_at: at }) => ({
      key: username,
      address,
      atMs: Date.parse(isoFromPg(at)),
    }));
  }
}

const timeOf = ({ atMs }: Failure) => atMs;
