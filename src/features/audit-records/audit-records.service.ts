import { type AuditFilter, type AuditRecordRow, auditConditions } from '../../audit/audit-filter.ts';
import { RECORD_COLUMNS } from '../../audit/audit-record.ts';
import { newestFirst, type Page, type PageKey, type PageRequest, pageOf, pageRead } from '../../lib/keyset.ts';
import type { Db } from '../../platform/database/database.ts';
import { keysetPage } from '../../platform/database/keyset-list.ts';

/** Lists audit records, newest first, by keyset pagination. */
export class AuditPages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Returns a page of one tenant's audit records. Records without a tenant are on no page. */
  async page(nodeId: string, filter: AuditFilter, request: PageRequest): Promise<Page<AuditRecordRow>> {
    const rows = await this.#db.forNode(nodeId).run((k) => {
      const listed = k
        .selectFrom('audit_records')
        .select(RECORD_COLUMNS)
        .where((eb) => eb.and(auditConditions(eb, filter)));
      return keysetPage(listed, pageRead(newestFirst(request)), ['at', 'id']);
    });
    return pageOf(rows, request);
  }

  /** Returns the number of the tenant's audit records that match the filter. */
  async count(nodeId: string, filter: AuditFilter): Promise<number> {
    const [counted] = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('audit_records')
        .select((eb) => eb.fn.countAll<string>().as('total'))
        .where((eb) => eb.and(auditConditions(eb, filter))),
    );
    return Number(counted?.total ?? 0);
  }

  /** Returns the sort key of a record, for its cursor. */
  keyOf({ at, id }: AuditRecordRow): PageKey {
    return { at, id };
  }
}
