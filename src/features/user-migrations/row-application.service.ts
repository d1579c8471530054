import { noteUsers } from '../../audit/noted-users.ts';
import { identifierKey } from '../../lib/identifier-key.ts';
import { cutTo } from '../../lib/input.ts';
import type { Log } from '../../lib/log.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Db } from '../../platform/database/database.ts';
import { sqlState, violatedConstraint } from '../../platform/errors.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import { present, type UserRow } from '../users/users.rules.ts';
import { UserStore } from '../users/users.service.ts';
import type { FileRow } from './csv.rules.ts';
import type { MigrateUserInput } from './migration.input.ts';
import {
  addressOf,
  faultOf,
  type JudgedRow,
  kycEventOf,
  newUserOf,
  normalRow,
  notedUsersOf,
  outcomesOf,
  type RowOutcome,
  TAKEN_BY_INDEX,
} from './migration-outcome.rules.ts';
import type { RowOutcomeRow } from './migrations.store.ts';

/**
 * Returns the outcome of a row as it is stored. Its identifiers are stored as sent, with U+0000 and lone surrogates
 * replaced; one that is too long is cut. `index` counts from 1.
 */
export function outcomeRowOf({ input, outcome, user, notedUsers }: AppliedRow, index: number): RowOutcomeRow {
  const reason = outcome.status === 'created' ? null : outcome.reason;
  const identifiers = { email: storable(input.email), external_id: storable(input.external_id) };
  return { index, ...identifiers, user_id: user?.id ?? null, noted_users: notedUsers, status: outcome.status, reason };
}

/** Counts the outcomes of rows, as a migration shows them. */
export function countsOf(outcomes: readonly RowOutcomeRow[]) {
  const count = (expectedStatus: string) => outcomes.filter(({ status }) => status === expectedStatus).length;
  return { success: count('created'), skipped: count('skipped'), failed: count('failed') };
}

/** Returns the outcome, as it is stored, of a row of a file that is not a valid user. */
export function faultRowOf({ index, fault, email, externalId }: Extract<FileRow, { fault: string }>): RowOutcomeRow {
  const identifiers = { email: storable(email), external_id: storable(externalId) };
  return { index, ...identifiers, user_id: null, noted_users: null, status: 'failed', reason: fault };
}

function storable(text: string | undefined): string | null {
  const presentText = present(text);
  return presentText === undefined
    ? null
    : cutTo(presentText, MAX_LENGTHS.users.email).replaceAll('\0', '\ufffd').toWellFormed();
}

/** A row as sent, with its outcome; `user` is defined when it was created, which it is not in a dry run. */
export interface AppliedRow {
  input: MigrateUserInput;
  outcome: RowOutcome;
  user: UserRow | undefined;
  /** The ids of the users that the row created or matched; null in a dry run for a row that matched none. */
  notedUsers: readonly string[] | null;
}

/** The rows of one transaction. */
export interface RowsToApply {
  nodeId: string;
  correlationId: string;
  traceparent?: string | undefined;
  rows: readonly MigrateUserInput[];
  /** Whether the users and their events are rolled back once the outcomes are known. */
  isDryRun: boolean;
  /** Whether a row that the database refuses becomes a failed row. If not, the error is thrown. */
  mayFail: boolean;
  atMs: number;
  /** Returns the index under which a row is logged, by its index in `rows`. By default rows are counted from 1. */
  numberOf?(row: number): number;
}

interface Refused {
  row: number;
  error: unknown;
}

const NOT_STORED = 'the row could not be stored';

/**
 * Creates users and their events from rows. It takes one query for duplicates and one insert, however many the rows.
 * When the insert fails, the set is halved until the offending rows are found; then the outcomes of all rows are
 * decided again.
 */
export class RowApplication {
  readonly #store: UserStore;
  readonly #log: Log;

  constructor(db: Db, log: Log) {
    this.#store = new UserStore(db);
    this.#log = log;
  }

  /**
   * Creates the users of the rows, unless it is a dry run, and returns the outcomes. It must run inside a transaction and
   * locks the tenant's users until its end.
   */
  async apply(request: RowsToApply): Promise<AppliedRow[]> {
    const { nodeId, rows: sent, isDryRun, atMs } = request;
    const rows = sent.map(normalRow);
    await this.#store.lock(nodeId);
    const classifiedRows = await this.#classify(nodeId, rows);
    const users = rows.map((row, index) => newUserOf(row, { id: uuidV7(atMs), nodeId, atMs, micros: index }));
    if (isDryRun) await this.#store.savepoint('dry_run');
    for (;;) {
      const outcomes = outcomesOf(classifiedRows);
      const created = outcomes.flatMap(({ status }, index) => (status === 'created' ? [index] : []));
      const rejections = await this.#insertAll(request, users, created);
      if (rejections.length === 0) {
        if (isDryRun) await this.#store.rollBack('dry_run');
        const isCreated = new Set(isDryRun ? [] : created);
        const stored = users.map((user, index) => (isCreated.has(index) ? user : undefined));
        const noted = notedUsersOf(
          classifiedRows,
          stored.map((user) => user?.id),
        );
        noteUsers(noted.flat());
        return sent.map((input, index) => {
          const [outcome, ids] = [outcomes[index], noted[index] ?? []];
          if (!outcome) throw new Error('every row has an outcome');
          return { input, outcome, user: stored[index], notedUsers: isDryRun && ids.length === 0 ? null : ids };
        });
      }
      for (const { row, error } of rejections) this.#noteConflict(request, classifiedRows[row], row, error);
    }
  }

  async #classify(nodeId: string, rows: readonly MigrateUserInput[]): Promise<JudgedRow[]> {
    const faults = rows.map(faultOf);
    const identities = rows.map((row) => ({
      emailKey: row.email && identifierKey(row.email),
      externalId: row.external_id,
      address: addressOf(row.wallet_address),
    }));
    const lookupKeys = identities.map(({ emailKey = null, externalId = null, address }, index) =>
      faults[index] === undefined
        ? { email: emailKey, externalId, address }
        : { email: null, externalId: null, address: null },
    );
    const owners = await this.#store.owners(nodeId, lookupKeys);
    return identities.map((identity, index) => {
      const { email, externalId, address } = owners[index] ?? {};
      return {
        identity,
        taken: { email: email != null, externalId: externalId != null, address: address != null },
        owners: [email, externalId, address].filter((id) => id != null),
        fault: faults[index],
      };
    });
  }

  /** Inserts all these users, or none when any is refused. Returns the refused ones. */
  async #insertAll(request: RowsToApply, users: readonly UserRow[], rows: readonly number[]): Promise<Refused[]> {
    if (rows.length === 0) return [];
    const first = await this.#insert(request, users, rows);
    if (first.length < 2) return first;
    await this.#store.savepoint('search');
    const rejections = await this.#insertHalves(request, users, rows);
    if (rejections.length > 0) await this.#store.rollBack('search');
    await this.#store.release('search');
    return rejections;
  }

  async #insertHalves(request: RowsToApply, users: readonly UserRow[], rows: readonly number[]): Promise<Refused[]> {
    const middle = Math.ceil(rows.length / 2);
    const rejections: Refused[] = [];
    for (const half of [rows.slice(0, middle), rows.slice(middle)]) {
      const together = await this.#insert(request, users, half);
      rejections.push(...(together.length < 2 ? together : await this.#insertHalves(request, users, half)));
    }
    return rejections;
  }

  /** Inserts users in one statement. When it is refused, returns all of its rows as suspects. */
  async #insert(
    { correlationId, traceparent, atMs }: RowsToApply,
    users: readonly UserRow[],
    rows: readonly number[],
  ): Promise<Refused[]> {
    const chosen = rows.flatMap((row) => users[row] ?? []);
    const events = chosen
      .filter(({ kyc_token_sent }) => !kyc_token_sent)
      .map((user) => kycEventOf(user, { id: uuidV7(atMs), correlationId, traceparent, occurredAtMs: atMs }));
    await this.#store.savepoint('rows');
    try {
      await this.#store.insert(chosen, events);
    } catch (error) {
      // The database refuses the values if it can serve (SQLSTATE 22, 23, 54, P0).
      if (!/^(?:22|23|54|P0)/.test(sqlState(error) ?? '')) throw error;
      await this.#store.rollBack('rows');
      await this.#store.release('rows');
      return rows.map((row) => ({ row, error }));
    }
    await this.#store.release('rows');
    return [];
  }

  /** Records for a row why its insert was refused: an identifier is taken, or the row cannot be stored. */
  #noteConflict(
    { mayFail, correlationId, numberOf }: RowsToApply,
    classifiedRow: JudgedRow | undefined,
    row: number,
    error: unknown,
  ): void {
    if (!classifiedRow) return;
    const taken = TAKEN_BY_INDEX.get(violatedConstraint(error));
    if (taken) {
      classifiedRow.taken = { ...classifiedRow.taken, [taken]: true };
      return;
    }
    if (!mayFail) throw error;
    classifiedRow.fault = NOT_STORED;
    // The error itself is not logged, because its message quotes personal data.
    this.#log.error(
      {
        correlation_id: correlationId,
        row: numberOf?.(row) ?? row + 1,
        sql_state: sqlState(error),
        constraint: violatedConstraint(error),
      },
      'could not store a user',
    );
  }
}
