import type { Db } from '../platform/database/database.ts';

/** A calendar month in UTC; `month` is 1 to 12. */
interface Month {
  year: number;
  month: number;
}

/** Returns the UTC month of a time in ms since 1970. */
function monthOf(ms: number): Month {
  const date = new Date(ms);
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1 };
}

/** Returns the month that is `count` months later. */
function addMonths({ year, month }: Month, count: number): Month {
  return monthOf(Date.UTC(year, month - 1 + count));
}

/** Returns the table name of a month's partition and its range of times: `from` is inclusive, `to` exclusive. */
function partitionOf(month: Month): { name: string; from: string; to: string } {
  const name = `audit_records_${month.year}_${String(month.month).padStart(2, '0')}`;
  return { name, from: startOf(month), to: startOf(addMonths(month, 1)) };
}

/** Returns the month of the partition with this table name; undefined when the table is no monthly partition. */
function monthOfPartition(name: string): Month | undefined {
  const [, year, month] = /^audit_records_(\d{4})_(\d\d)$/.exec(name) ?? [];
  return year === undefined || month === undefined ? undefined : { year: Number(year), month: Number(month) };
}

function startOf({ year, month }: Month): string {
  return new Date(Date.UTC(year, month - 1)).toISOString();
}

interface AuditRetentionParts {
  db: Db;
  nowMs(): number;
  retentionDays: number;
}

/** The key of the PostgreSQL advisory lock that lets only one process at a time change partitions. */
const LOCK = 4_273_004;
const MONTHS_AHEAD = 2;
const BATCH = 5_000;
const DAY_MS = 24 * 3_600_000;

/**
 * Maintains the monthly partitions of `audit_records`: creates them before their month begins and removes records older
 * than `retentionDays`, whole months by dropping the partition, the rest in batches. Records of a month without a
 * partition are stored in the default partition until it is created.
 */
export class AuditRetention {
  readonly #parts: AuditRetentionParts;

  constructor(parts: AuditRetentionParts) {
    this.#parts = parts;
  }

  /**
   * Creates and drops the partitions that are due and deletes expired records. Skips changes to partitions while
   * another process holds the advisory lock.
   */
  async keep(): Promise<void> {
    const { nowMs, retentionDays } = this.#parts;
    const current = monthOf(nowMs());
    for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead += 1) await this.#makePartition(addMonths(current, ahead));
    const oldestMs = nowMs() - retentionDays * DAY_MS;
    await this.#dropBefore(monthOf(oldestMs));
    await this.#deleteBefore(new Date(oldestMs).toISOString());
  }

  async #makePartition(month: Month): Promise<void> {
    const { name, from, to } = partitionOf(month);
    if ((await this.#partitions()).includes(name)) return;
    await this.#alone(async () => {
      const unscoped = this.#unscoped();
      if ((await this.#partitions()).includes(name)) return;
      // While this lock lasts, no record of the month can enter the default partition, which may hold some already.
      await unscoped.raw((sql) => sql`lock table audit_records_default in access exclusive mode`);
      await unscoped.raw((sql) => sql`create table ${sql.id(name)} (like audit_records including all)`);
      await unscoped.raw(
        (sql) => sql`
          with moved as (delete from audit_records_default where at >= ${from} and at < ${to} returning *)
          insert into ${sql.id(name)} select * from moved`,
      );
      await unscoped.raw(
        (sql) => sql`
          alter table audit_records attach partition ${sql.id(name)} for values from (${sql.lit(from)}) to (${sql.lit(to)})`,
      );
    });
  }

  async #dropBefore(oldest: Month): Promise<void> {
    const { from } = partitionOf(oldest);
    for (const name of await this.#partitions()) {
      const month = monthOfPartition(name);
      if (!month || partitionOf(month).to > from) continue;
      await this.#alone(async () => {
        await this.#unscoped().raw((sql) => sql`drop table if exists ${sql.id(name)}`);
      });
    }
  }

  async #deleteBefore(oldest: string): Promise<void> {
    for (let deleted = BATCH; deleted === BATCH; ) {
      const rows = await this.#unscoped().raw(
        (sql) => sql`
          delete from audit_records where (at, id) in
            (select at, id from audit_records where at < ${oldest} order by at, id limit ${BATCH}) returning 1`,
      );
      deleted = rows.length;
    }
  }

  async #partitions(): Promise<string[]> {
    const rows = await this.#unscoped().raw(
      (sql) => sql<{ name: string }>`
        select relid::regclass::text as name from pg_partition_tree('audit_records') where level = 1`,
    );
    return rows.map(({ name }) => name);
  }

  /**
   * Runs `work` in a transaction of its own, unless another process holds the advisory lock. Waits at most 2 s for a
   * table lock, because inserts of audit records queue behind it.
   */
  async #alone(work: () => Promise<void>): Promise<void> {
    await this.#parts.db.transaction(async () => {
      const unscoped = this.#unscoped();
      const [row] = await unscoped.raw(
        (sql) => sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${LOCK}) as taken`,
      );
      if (!row?.taken) return;
      await unscoped.raw((sql) => sql`set local lock_timeout = '2s'`);
      await work();
    });
  }

  #unscoped() {
    return this.#parts.db.unscoped('audit records age in every node, and can belong to none');
  }
}
