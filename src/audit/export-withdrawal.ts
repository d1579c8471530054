import { expressionBuilder } from 'kysely';
import type { Db } from '../platform/database/database.ts';
import type { Tables } from '../tables/tables.ts';
import { type AuditFilter, auditConditions } from './audit-filter.ts';

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
