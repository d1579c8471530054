import type { ExpressionBuilder, Selectable } from 'kysely';
import { newestFirst, type Page, type PageKey, type PageRequest, pageOf, pageRead } from '../lib/keyset.ts';
import { keysetPage } from '../platform/database/conditions.ts';
import type { Db } from '../platform/database/database.ts';
import type { Tables } from '../tables/tables.ts';
import { RECORD_COLUMNS } from './audit-record.ts';
import { correlationKey } from './mask-keys.ts';

/** A row of `audit_records`, without its place in a chain. Times are PostgreSQL's text in UTC, to the microsecond. */
export type AuditRecordRow = Pick<Selectable<Tables['audit_records']>, (typeof RECORD_COLUMNS)[number]>;

/** The conditions that the audit records of a list must meet, all of them; an undefined member sets no condition. */
export interface AuditFilter {
  correlationId?: string | undefined;
  method?: string | undefined;
  path?: string | undefined;
  statusCode?: number | undefined;
  /** The earliest time, inclusive, as text that PostgreSQL parses as a timestamp. */
  since?: string | undefined;
  /** The end of the period, exclusive, as text that PostgreSQL parses as a timestamp. */
  until?: string | undefined;
}

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

/** Returns the SQL conditions of a filter, all of which a record must meet. */
export function auditConditions(eb: ExpressionBuilder<Tables, 'audit_records'>, filter: AuditFilter) {
  const { correlationId, method, path, statusCode, since, until } = filter;
  return [
    ...(correlationId === undefined ? [] : [eb('correlation_id', '=', correlationKey(correlationId))]),
    ...(method === undefined ? [] : [eb('method', '=', method)]),
    ...(path === undefined ? [] : [eb('path', '=', path)]),
    ...(statusCode === undefined ? [] : [eb('status_code', '=', statusCode)]),
    ...(since === undefined ? [] : [eb('at', '>=', since)]),
    ...(until === undefined ? [] : [eb('at', '<', until)]),
  ];
}
