import type { ExpressionBuilder, Selectable } from 'kysely';
import { newestFirst, type Page, type PageRequest, pageOf, pageRead } from '../lib/keyset.ts';
import { keysetPage } from '../platform/database/conditions.ts';
import type { Db } from '../platform/database/database.ts';
import type { Tables } from '../tables/tables.ts';
import { correlationKey } from './mask-keys.ts';

/** An audit record as the table has it; times are PostgreSQL's text in UTC, to the microsecond. */
export type AuditRecordRow = Selectable<Tables['audit_records']>;

/** Which records a list has; all that is given must hold. */
export interface AuditFilter {
  correlationId?: string | undefined;
  method?: string | undefined;
  path?: string | undefined;
  statusCode?: number | undefined;
  /** At or after this; a text that PostgreSQL reads. */
  since?: string | undefined;
  /** Before this. */
  until?: string | undefined;
}

/** Reads audit records by keyset, newest first. */
export class AuditPages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Returns a page of a tenant's records. Records of no tenant are in none. */
  async page(nodeId: string, filter: AuditFilter, request: PageRequest): Promise<Page<AuditRecordRow>> {
    const rows = await this.#db.forNode(nodeId).run((k) => {
      const listed = k
        .selectFrom('audit_records')
        .selectAll()
        .where((eb) => eb.and(auditConditions(eb, filter)));
      return keysetPage(listed, pageRead(newestFirst(request)), ['at', 'id']);
    });
    return pageOf(rows, request);
  }

  /** Returns how many records of the tenant the filter lets through. */
  async count(nodeId: string, filter: AuditFilter): Promise<number> {
    const [counted] = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('audit_records')
        .select((eb) => eb.fn.countAll<string>().as('total'))
        .where((eb) => eb.and(auditConditions(eb, filter))),
    );
    return Number(counted?.total ?? 0);
  }
}

/** Returns the conditions of a filter. */
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
