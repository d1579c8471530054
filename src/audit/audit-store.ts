import type { Db } from '../db.ts';
import { sqlState } from '../lib/sql-state.ts';
import { unhurried } from '../lib/tenant-db.ts';

/** Told of a record that the database takes in no case. */
type OnRefused = (error: unknown, line: string) => void;

/** Writes spooled records to `audit_records`; one that is there already changes nothing. */
export function auditInsert(db: Db, onRefused: OnRefused): (lines: string[]) => Promise<void> {
  const door = db.unscoped('an audit record can belong to no node');

  async function insertAll(lines: readonly string[]): Promise<void> {
    const records = `[${lines.join(',')}]`;
    // The timer that it runs by may be of a request.
    await unhurried(() =>
      door.raw(
        (sql) => sql`
          insert into audit_records
          select * from json_populate_recordset(null::audit_records, ${records}::json)
          on conflict do nothing`,
      ),
    );
  }

  return async function insert(lines) {
    try {
      await insertAll(lines);
    } catch (error) {
      if (!isRefusedValue(error)) throw error;
      for (const line of lines) await insertOne(line);
    }
  };

  async function insertOne(line: string): Promise<void> {
    try {
      await insertAll([line]);
    } catch (error) {
      if (!isRefusedValue(error)) throw error;
      onRefused(error, line);
    }
  }
}

/** SQLSTATE classes 22 and 23: no repeat would mend it. */
function isRefusedValue(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error) ?? '');
}
