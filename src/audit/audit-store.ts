import { randomUUID } from 'node:crypto';
import type { Db } from '../db.ts';
import { sqlState } from '../lib/sql-state.ts';
import { forNoRequest } from '../lib/tenant-db.ts';

/** Told of a record that the database refuses. */
type OnRefused = (error: unknown, line: string) => void;

interface Refusal {
  error: unknown;
  line: string;
}

/** Where spooled records go. */
export class AuditStore {
  readonly #db: Db;
  readonly #door: ReturnType<Db['unscoped']>;

  constructor(db: Db) {
    this.#db = db;
    this.#door = db.unscoped('an audit record can belong to no node');
  }

  /** Writes spooled records to `audit_records`, all or none; one that is there already changes nothing. */
  async insertAll(lines: readonly string[]): Promise<void> {
    const records = `[${lines.join(',')}]`;
    // The timer that it runs by may be of a request.
    await forNoRequest(() =>
      this.#door.raw(
        (sql) => sql`
          insert into audit_records
          select * from json_populate_recordset(null::audit_records, ${records}::json)
          on conflict do nothing`,
      ),
    );
  }

  /** Whether the table takes records at all: tries one, and takes it back. */
  async takesOthers(): Promise<boolean> {
    try {
      await forNoRequest(() =>
        this.#db.transaction(async () => {
          await this.insertAll([probe()]);
          throw new TakenBack();
        }),
      );
    } catch (error) {
      return error instanceof TakenBack;
    }
    return false;
  }

  /**
   * Writes records; of those that are refused while others are taken `onBadValue` is told where no repeat would mend it, and
   * `onRefused` otherwise.
   * @throws the database's error where it takes none.
   */
  async insert(lines: readonly string[], onBadValue: OnRefused, onRefused: OnRefused): Promise<void> {
    for (const { error, line } of await this.#refusals(lines)) {
      if (isBadValue(error)) onBadValue(error, line);
      else onRefused(error, line);
    }
  }

  /** Halves what is refused until it is known which records they are: the others are written. */
  async #refusals(lines: readonly string[]): Promise<Refusal[]> {
    try {
      await this.insertAll(lines);
      return [];
    } catch (error) {
      const [line = ''] = lines;
      if (!isBadValue(error) && (sqlState(error) === undefined || !(await this.takesOthers()))) throw error;
      if (lines.length <= 1) return this.#refusalOfOne(line, error);
      const half = Math.ceil(lines.length / 2);
      return [...(await this.#refusals(lines.slice(0, half))), ...(await this.#refusals(lines.slice(half)))];
    }
  }

  /** What ended while it was tried may have refused it, and no fault of its own: it is tried once more now that others are taken. */
  async #refusalOfOne(line: string, error: unknown): Promise<Refusal[]> {
    if (isBadValue(error)) return [{ error, line }];
    try {
      await this.insertAll([line]);
      return [];
    } catch (again) {
      return [{ error: again, line }];
    }
  }
}

class TakenBack extends Error {
  override readonly name = 'TakenBack';
}

function probe(): string {
  const texts = { correlation_id: '', method: '', path: '', remote_address: '', real_ip: '' };
  const numbers = { status_code: 0, elapsed: 0, request_bytes: 0, response_bytes: 0 };
  const at = new Date().toISOString();
  return JSON.stringify({ at, id: randomUUID(), ...texts, ...numbers, headers: {}, is_api: false, aborted: false });
}

/** SQLSTATE classes 22 and 23: no repeat would mend it. */
function isBadValue(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error) ?? '');
}
