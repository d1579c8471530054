import type { Db, SqlTag } from '../platform/database/database.ts';
import type { AuditSeals } from './seals.ts';

/**
 * A calendar month in UTC: the name of its partition, and its times, of which `from` is inclusive and `to` exclusive.
 */
interface Month {
  name: string;
  from: string;
  to: string;
}

/** Returns the month that is `later` months after the month of a time in ms since 1970. */
function monthOf(ms: number, later = 0): Month {
  const date = new Date(ms);
  const startOf = (count: number) =>
    new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + count)).toISOString();
  const from = startOf(later);
  return { name: `audit_records_${from.slice(0, 7).replace('-', '_')}`, from, to: startOf(later + 1) };
}

/** Returns the month of the partition with this table name; undefined when the table is not a monthly partition. */
function monthOfPartition(name: string): Month | undefined {
  const [, year, month] = /^audit_records_(\d{4})_(\d\d)$/.exec(name) ?? [];
  return year === undefined || month === undefined ? undefined : monthOf(Date.UTC(Number(year), Number(month) - 1));
}

/**
 * Sets, if this is the owner of the tables, for how long the database keeps audit records, even if the role of services
 * asks for.
 */
export async function setAuditRetention(db: Db, days: number): Promise<void> {
  const unscoped = db.unscoped('retention of all nodes');
  const [owned] = await unscoped.raw(
    (sql) => sql<{ due: boolean }>`
      select audit_retention_days() <> ${days} and pg_has_role(proowner, 'usage') as due
      from pg_proc where oid = 'audit_retention_days()'::regprocedure`,
  );
  if (!owned?.due) return;
  await unscoped.raw(
    (sql) => sql`
      create or replace function audit_retention_days() returns integer language sql stable as ${sql.lit(`select ${days}`)}`,
  );
}

/** The key of the PostgreSQL advisory lock that lets only one process at a time change partitions. */
const LOCK = 4_273_004;
const MONTHS_AHEAD = 2;
const BATCH = 5_000;
const DAY_MS = 24 * 3_600_000;

/**
 * Maintains the monthly partitions of `audit_records`: creates them before their month begins and removes records that
 * are past the retention, whole months by dropping the partition, the rest in batches. Records of a month without a
 * partition are stored in the default partition until it is created.
 */
export class AuditRetention {
  readonly #deps;

  constructor(deps: {
    db: Db;
    seals: AuditSeals;
    nowMs(): number;
    /** For how long records are kept, unless the owner of the tables has set a longer retention. */
    retentionDays: number;
  }) {
    this.#deps = deps;
  }

  /**
   * Creates and drops the partitions that are due and deletes expired records. Skips changes to partitions while
   * another process holds the advisory lock.
   */
  async enforce(): Promise<void> {
    const { nowMs, retentionDays } = this.#deps;
    for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead += 1) await this.#makePartition(monthOf(nowMs(), ahead));
    const configuredOldest = new Date(nowMs() - retentionDays * DAY_MS).toISOString();
    const [row] = await this.#unscoped().raw(
      (sql) => sql<{ oldest: string }>`
        select to_char(least(${configuredOldest}, now() - make_interval(days => audit_retention_days())) at time zone 'UTC',
          'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as oldest`,
    );
    const oldest = row?.oldest ?? configuredOldest;
    await this.#dropBefore(monthOf(Date.parse(oldest)).from);
    await this.#deleteBefore(oldest);
  }

  async #makePartition({ name, from }: Month): Promise<void> {
    if ((await this.#partitions()).includes(name)) return;
    await this.#deps.db.transaction(async () => {
      const [row] = await this.#unscoped().raw(
        (sql) => sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${LOCK}) as taken`,
      );
      if (!row?.taken) return;
      await this.#waitBriefly();
      await this.#unscoped().raw((sql) => sql`select audit_make_month(${from}::date)`);
    });
  }

  async #dropBefore(oldest: string): Promise<void> {
    for (const name of await this.#partitions()) {
      const month = monthOfPartition(name);
      if (!month || month.to > oldest) continue;
      const { from, to } = month;
      const dropped = await this.#dropped(to, (sql) => sql`at >= ${from} and at < ${to}`);
      const statement = async () => {
        await this.#waitBriefly();
        return (await this.#partitions()).includes(name) ? dropped : undefined;
      };
      await this.#deps.seals.add(statement, async (seal) => {
        await this.#unscoped().raw((sql) => sql`select audit_drop_month(${name}, ${seal}::json)`);
      });
    }
  }

  async #deleteBefore(oldest: string): Promise<void> {
    for (let deleted = BATCH; deleted === BATCH; ) {
      const rows = await this.#unscoped().raw(
        (sql) => sql<{ at: string; id: string }>`
          select at, id from audit_records where at < ${oldest} order by at, id limit ${BATCH}`,
      );
      const last = rows.at(-1);
      if (!last) return;
      const dropped = async () => {
        const statement = await this.#dropped(oldest, (sql) => sql`(at, id) <= (${last.at}, ${last.id})`);
        // Another process can have deleted them meanwhile.
        return statement.ranges.length + statement.unchained > 0 ? statement : undefined;
      };
      await this.#deps.seals.add(dropped, async (seal) => {
        await this.#unscoped().raw((sql) => sql`select audit_delete(${last.at}, ${last.id}, ${seal}::json)`);
      });
      deleted = rows.length;
    }
  }

  /**
   * Returns what a seal states of the records that are dropped. One whose index no service gives counts as without a
   * chain.
   */
  async #dropped(before: string, condition: (sql: SqlTag) => ReturnType<SqlTag>) {
    const rows = await this.#unscoped().raw(
      (sql) => sql<{
        chain: string | null;
        from: string | null;
        to: string | null;
        records: string;
      }>`
        select chain_id as chain, min(chain_index) as from, max(chain_index) as to, count(*) as records from (
          select chain_id, chain_index, chain_index - row_number() over (
            partition by chain_id order by chain_index) as run
          from (
            select case when is_placed then chain_id end as chain_id, case when is_placed then chain_index end as chain_index
            from audit_records, lateral (select chain_index between 0 and ${Number.MAX_SAFE_INTEGER} as is_placed) place
            where ${condition(sql)}) dropped) placed
        group by chain_id, run order by chain_id, min(chain_index)`,
    );
    const ranges = rows.flatMap(({ chain, from, to }) =>
      chain === null ? [] : [{ chain, from: Number(from), to: Number(to) }],
    );
    const unchained = rows.filter(({ chain }) => chain === null).reduce((sum, row) => sum + Number(row.records), 0);
    return { kind: 'dropped', before, ranges, unchained } as const;
  }

  async #partitions(): Promise<string[]> {
    const rows = await this.#unscoped().raw(
      (sql) => sql<{ name: string }>`
        select relid::regclass::text as name from pg_partition_tree('audit_records') where level = 1`,
    );
    return rows.map(({ name }) => name);
  }

  /** Makes the transaction wait at most 2 s for a table lock, because inserts of audit records queue behind it. */
  async #waitBriefly(): Promise<void> {
    await this.#unscoped().raw((sql) => sql`set local lock_timeout = '2s'`);
  }

  #unscoped() {
    return this.#deps.db.unscoped('retention of all nodes, and of records without a node');
  }
}
