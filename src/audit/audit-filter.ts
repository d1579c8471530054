import type { ExpressionBuilder, Selectable } from 'kysely';
import { containing, startingWith } from '../platform/database/keyset-list.ts';
import type { Tables } from '../tables/tables.ts';
import type { RECORD_COLUMNS } from './audit-record.ts';
import { correlationKey } from './masked-names.ts';

/** A row of `audit_records`, without its place in a chain. Times are PostgreSQL's text in UTC, to the microsecond. */
export type AuditRecordRow = Pick<Selectable<Tables['audit_records']>, (typeof RECORD_COLUMNS)[number]>;

/** The conditions that the audit records of a list must meet, all of them; an undefined member sets no condition. */
export interface AuditFilter {
  nodeId?: string | undefined;
  clientId?: string | undefined;
  correlationId?: string | undefined;
  /** The ids of which a record must have one. */
  correlationIds?: readonly string[] | undefined;
  method?: string | undefined;
  path?: string | undefined;
  pathPrefix?: string | undefined;
  statusCode?: number | undefined;
  /** The first digit of the HTTP status. */
  statusClass?: number | undefined;
  /** Whether the status must be 400 or higher. */
  isFailed?: boolean | undefined;
  subject?: string | undefined;
  /** A path pattern, or one of the root fields of a GraphQL operation. */
  operation?: string | undefined;
  /** Leaves out what a subject read, or anybody; `mutations` are the root fields of GraphQL that change something. */
  hiddenReads?: { subject: string | undefined; mutations: readonly string[] } | undefined;
  /** The earliest time, inclusive, as text that PostgreSQL parses as a timestamp. */
  since?: string | undefined;
  /** The end of the period, exclusive, as text that PostgreSQL parses as a timestamp. */
  until?: string | undefined;
}

/** Returns the SQL conditions of a filter, all of which a record must meet. */
export function auditConditions(eb: ExpressionBuilder<Tables, 'audit_records'>, filter: AuditFilter) {
  const { correlationId, method, path, pathPrefix, statusCode, statusClass, subject, operation, since, until } = filter;
  const { hiddenReads, nodeId, clientId, isFailed, correlationIds } = filter;
  return [
    ...(nodeId === undefined ? [] : [eb('node_id', '=', nodeId)]),
    ...(clientId === undefined ? [] : [eb('client_id', '=', clientId)]),
    ...(correlationId === undefined ? [] : [eb('correlation_id', '=', correlationKey(correlationId))]),
    ...(correlationIds === undefined ? [] : [eb('correlation_id', 'in', correlationIds.map(correlationKey))]),
    ...(method === undefined ? [] : [eb('method', '=', method)]),
    ...(path === undefined ? [] : [eb('path', '=', path)]),
    ...(pathPrefix === undefined ? [] : [eb('path', 'like', startingWith(pathPrefix))]),
    ...(statusCode === undefined ? [] : [eb('status_code', '=', statusCode)]),
    ...(statusClass === undefined
      ? []
      : [eb('status_code', '>=', statusClass * 100), eb('status_code', '<', (statusClass + 1) * 100)]),
    ...(isFailed ? [eb('status_code', '>=', 400)] : []),
    ...(subject === undefined ? [] : [eb('subject', '=', subject)]),
    ...(operation === undefined
      ? []
      : [eb(eb(eb(eb.val(', '), '||', eb.ref('operation')), '||', ', '), 'like', containing(`, ${operation}, `))]),
    ...(hiddenReads === undefined
      ? []
      : [
          eb.or([
            ...(hiddenReads.subject === undefined ? [] : [eb('subject', 'is distinct from', hiddenReads.subject)]),
            eb.and([
              eb('method', 'not in', ['GET', 'HEAD']),
              eb.or([eb('operation', 'is', null), eb('operation', '~', changing(hiddenReads.mutations))]),
            ]),
          ]),
        ]),
    ...(since === undefined ? [] : [eb('at', '>=', since)]),
    ...(until === undefined ? [] : [eb('at', '<', until)]),
  ];
}

/** Returns the regular expression of operations that are no reads of GraphQL: path patterns, and mutations. */
function changing(mutations: readonly string[]): string {
  return `^(/|(${mutations.join('|')})(,|$))`;
}
