import { setImmediate as nextTurn } from 'node:timers/promises';
import { expressionBuilder } from 'kysely';
import type { Db } from '../platform/database/database.ts';
import { textColumn } from '../platform/database/row-sets.ts';
import type { Tables } from '../tables/tables.ts';
import { type AuditFilter, auditConditions } from './audit-filter.ts';
import type { AuditSeals, Seal } from './seals.ts';

/** The greatest number of records that one statement finds. */
const MAX_FOUND = 10_000;
/** The first and the greatest number of records that one statement erases; a record has up to 128 KiB to hash. */
const FIRST_BATCH = 4;
const MAX_BATCH = 256;
/** The duration of a statement, in ms, to which the batches are fitted: the embedded database holds the event loop. */
const STATEMENT_MS = 10;

/**
 * Erases the audit records that have noted a user: the database removes their bodies, the query of their URL and the salts
 * of both, and keeps the digests, by which the chain is verified.
 */
export class AuditErasure {
  readonly #db: Db;
  readonly #seals: AuditSeals;

  constructor(db: Db, seals: AuditSeals) {
    this.#db = db;
    this.#seals = seals;
  }

  /** Seals that a user is erased, and returns the seal. Without it, verification reports the user's erased records. */
  seal(userId: string): Promise<Seal | undefined> {
    return this.#seals.add({ kind: 'erasure', user: userId });
  }

  /**
   * Erases the records of the user's tenant that have noted the user, and returns their number. Exports with such records
   * are deleted.
   */
  async erase(userId: string): Promise<number> {
    const total = await this.#eraseRecords(userId);
    await withdrawExportsOf(this.#db, userId);
    return total;
  }

  async #eraseRecords(userId: string): Promise<number> {
    for (let total = 0; ; ) {
      const records = await this.#unscoped().raw(
        (sql) => sql<{ at: string; id: string }>`
          select a.at, a.id from users u join audit_records a on a.node_id = u.node_id
          where u.id = ${userId}::uuid and a.noted_users @> array[${userId}::uuid] and a.digests is null
            and a.at < coalesce(u.erased_at + interval '10 minutes', 'infinity')
          order by a.at, a.id limit ${MAX_FOUND}`,
      );
      for (let [start, size] = [0, FIRST_BATCH]; start < records.length; await nextTurn()) {
        const batch = records.slice(start, start + size);
        const startedTick = performance.now();
        const [row] = await this.#unscoped().raw(
          (sql) => sql<{ erased: number }>`
            select audit_erase(${userId}::uuid, ${textColumn(batch, 'at')}::text[]::timestamptz[],
              ${textColumn(batch, 'id')}::text[]::uuid[]) as erased`,
        );
        total += row?.erased ?? 0;
        start += size;
        const isShort = performance.now() - startedTick < STATEMENT_MS;
        size = isShort ? Math.min(size * 2, MAX_BATCH) : Math.max(Math.floor(size / 2), 1);
      }
      if (records.length < MAX_FOUND) return total;
    }
  }

  /** Repeats the erasures since a time, for records that have arrived late. */
  async repeat(sinceMs: number): Promise<void> {
    const users = await this.#unscoped().raw(
      (sql) => sql<{ id: string }>`
        select distinct u.id from users u join audit_records a on a.noted_users @> array[u.id]
        where u.erased_at >= ${new Date(sinceMs).toISOString()} and a.node_id = u.node_id and a.digests is null
          and a.at < u.erased_at + interval '10 minutes'`,
    );
    for (const { id } of users) await this.erase(id);
  }

  #unscoped() {
    return this.#db.unscoped('the function erases only records of the node of the user');
  }
}

/**
 * Deletes the files of exports that are being written or are ready; `reason` is for those who have asked for them. Without
 * `ids` it deletes those of all tenants.
 */
export async function withdrawExports(db: Db, reason: string, ids?: readonly string[]): Promise<void> {
  await unscoped(db).raw(
    (sql) => sql`
      with ended as (
        update audit_exports set status = 'failed', finished_at = now(), state = null, reason = ${reason}
        where status in ('running', 'ready') and ${ids === undefined ? sql`true` : sql`id = any (${ids}::uuid[])`}
        returning id)
      delete from audit_export_chunks where export_id in (select id from ended)`,
  );
}

/** Deletes the files of the exports whose filter matches a record that has noted a user. */
export async function withdrawExportsOf(db: Db, userId: string): Promise<void> {
  const eb = expressionBuilder<Tables, 'audit_records'>();
  const exports = await unscoped(db).raw(
    (sql) => sql<{ id: string; filter: AuditFilter }>`
      select e.id, e.filter from audit_exports e join users u on u.node_id = e.node_id
      where u.id = ${userId} and e.status in ('running', 'ready')`,
  );
  for (const { id, filter } of exports) {
    const noted = await unscoped(db).raw(
      (sql) => sql`
        select from audit_records
        where noted_users @> array[${userId}::uuid] and ${eb.and(auditConditions(eb, filter))} limit 1`,
    );
    if (noted.length > 0) await withdrawExports(db, 'a user in its records was erased: ask for it again', [id]);
  }
}

function unscoped(db: Db) {
  return db.unscoped('erasures and redactions reach exports of all nodes');
}
