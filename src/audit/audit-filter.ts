import { setTimeout } from 'node:timers/promises';
import type { ExpressionBuilder, Selectable } from 'kysely';
import type { Db } from '../platform/database/database.ts';
import { containing, startingWith } from '../platform/database/keyset-list.ts';
import type { Tables } from '../tables/tables.ts';
import { RECORD_COLUMNS } from './audit-record.ts';
import { correlationHash, correlationKey } from './masked-names.ts';

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
  /** The reasons of refused sign-ins, and the subjects of which they have named one. */
  attempted?: { subjects: readonly string[]; reasons: readonly string[] } | undefined;
  /** Leaves out what a subject read, or anybody; `mutations` are the root fields of GraphQL that change something. */
  hiddenReads?: { subject: string | undefined; mutations: readonly string[] } | undefined;
  /** The earliest time, inclusive, as text that PostgreSQL parses as a timestamp. */
  since?: string | undefined;
  /** The end of the period, exclusive, as text that PostgreSQL parses as a timestamp. */
  until?: string | undefined;
}

/** Returns the forms in which records may have a correlation id: which one depends on the secrets of their request. */
const storedForms = (correlationId: string) => [correlationKey(correlationId), correlationHash(correlationId)];

/** Returns the SQL conditions of a filter, all of which a record must meet. */
export function auditConditions(eb: ExpressionBuilder<Tables, 'audit_records'>, filter: AuditFilter) {
  const {
    nodeId,
    clientId,
    correlationId,
    correlationIds,
    method,
    path,
    pathPrefix,
    statusCode,
    statusClass,
    isFailed,
    subject,
    attempted,
    operation,
    hiddenReads,
    since,
    until,
  } = filter;
  return [
    ...(nodeId === undefined ? [] : [eb('node_id', '=', nodeId)]),
    ...(clientId === undefined ? [] : [eb('client_id', '=', clientId)]),
    ...(correlationId === undefined ? [] : [eb('correlation_id', 'in', storedForms(correlationId))]),
    ...(correlationIds === undefined ? [] : [eb('correlation_id', 'in', correlationIds.flatMap(storedForms))]),
    ...(method === undefined ? [] : [eb('method', '=', method)]),
    ...(path === undefined ? [] : [eb('path', '=', path)]),
    ...(pathPrefix === undefined ? [] : [eb('path', 'like', startingWith(pathPrefix))]),
    ...(statusCode === undefined ? [] : [eb('status_code', '=', statusCode)]),
    ...(statusClass === undefined
      ? []
      : [eb('status_code', '>=', statusClass * 100), eb('status_code', '<', (statusClass + 1) * 100)]),
    ...(isFailed ? [eb('status_code', '>=', 400)] : []),
    ...(subject === undefined ? [] : [eb('subject', '=', subject)]),
    ...(attempted === undefined
      ? []
      : [
          eb('subject', 'in', attempted.subjects),
          eb(eb.ref('headers', '->>').key(':reason'), 'in', attempted.reasons),
        ]),
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
              eb.or([
                eb('operation', 'is', null), // What is no read of GraphQL: path patterns, and mutations.
                eb('operation', '~', `^(/|(${hiddenReads.mutations.join('|')})(,|$))`),
              ]),
            ]),
          ]),
        ]),
    ...(since === undefined ? [] : [eb('at', '>=', since)]),
    ...(until === undefined ? [] : [eb('at', '<', until)]),
  ];
}

/** An audit record with its position; 0 for records of 0.1.0, which have none and come first, by time. */
export type ArrivedRow = AuditRecordRow & { position: string };

/** The lock by which whoever inserts records shows the last position before its own, modulo 2^31 (the trigger `show_audit_position`). */
const ARRIVAL_LOCK = 4_273_009;
const PAGE_SIZE = 200;
/** How many positions one query covers at first; twice as many after each query that has found nothing. */
const FIRST_SPAN = 2_000;
const RETRY_MS = 20;
/** Sorts behind every record of a position. */
const END_OF_POSITION = { at: 'infinity', id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };

/** Reads audit records of all nodes in the order of their arrival, without a gap, page by page. */
export class AuditArrivals {
  readonly #unscoped: ReturnType<Db['unscoped']>;

  constructor(db: Db) {
    this.#unscoped = db.unscoped('operators read records of all nodes');
  }

  /**
   * Returns the last position up to which no record can arrive any more. Records behind it may be in the database, but
   * a transaction that is still open may yet add one before them.
   */
  async horizon(): Promise<number> {
    for (;;) {
      // Read before the locks: whoever has got a position until now either shows it there, or has ended.
      const [drawn] = await this.#unscoped.raw(
        (sql) => sql<{ last: string }>`select coalesce(pg_sequence_last_value('audit_positions'), 0) as last`,
      );
      const last = Number(drawn?.last ?? 0);
      const [open] = await this.#unscoped.raw(
        (sql) => sql<{ before: string; isShown: boolean }>`
          select least(${last}::bigint, min(shown)) as before, coalesce(bool_and(shown is not null), true) as "isShown"
          from (
            select ${last}::bigint + min(((objid::bigint - ${last}::bigint + 1073741824) & 2147483647) - 1073741824)
              filter (where locktype = 'advisory') as shown
            from pg_locks
            where granted and pid <> pg_backend_pid()
              and database = (select oid from pg_database where datname = current_database())
              and (relation = 'audit_records'::regclass and mode = 'RowExclusiveLock'
                or locktype = 'advisory' and classid = ${ARRIVAL_LOCK}::oid and objsubid = 2)
            group by virtualtransaction) writers`,
      );
      if (open?.isShown) return Number(open.before);
      // A writer is between its lock of the table and its trigger.
      await setTimeout(RETRY_MS);
    }
  }

  /** Returns the position behind which the newest `count` records that match begin, as of a horizon. */
  async before(filter: AuditFilter, count: number, horizon: number): Promise<number> {
    let [left, end, span] = [count, horizon, FIRST_SPAN];
    while (end > 0) {
      const first = Math.max(0, end - span);
      const rows = await this.#unscoped.run((k) =>
        k
          .selectFrom('audit_records')
          .select((eb) => arrival(eb).as('position'))
          .where((eb) => eb.and([...within(eb, first + 1, end), ...auditConditions(eb, filter)]))
          .orderBy((eb) => arrival(eb), 'desc')
          .limit(left),
      );
      left -= rows.length;
      if (left === 0) return Number(rows.at(-1)?.position) - 1;
      [end, span] = [first, span * 2];
    }
    return 0;
  }

  /** Yields the records that match behind a position, up to a horizon; -1 begins with those that have no position. */
  async *read(filter: AuditFilter, position: number, horizon: number): AsyncGenerator<ArrivedRow> {
    let last: Pick<ArrivedRow, 'at' | 'id'> & { position: string | number } = { position, ...END_OF_POSITION };
    let span = FIRST_SPAN;
    while (Number(last.position) < horizon) {
      const end = Math.min(horizon, Number(last.position) + span);
      const rows = await this.#page(filter, last, end);
      yield* rows;
      span = rows.length === 0 ? span * 2 : FIRST_SPAN;
      last = (rows.length === PAGE_SIZE && rows.at(-1)) || { position: end, ...END_OF_POSITION };
    }
  }

  #page(
    filter: AuditFilter,
    { position, at, id }: Pick<ArrivedRow, 'at' | 'id'> & { position: string | number },
    end: number,
  ): Promise<ArrivedRow[]> {
    return this.#unscoped.run((k) =>
      k
        .selectFrom('audit_records')
        .select(RECORD_COLUMNS)
        .select((eb) => arrival(eb).as('position'))
        .where((eb) =>
          eb.and([
            ...within(eb, position, end),
            eb(eb.refTuple(arrival(eb), 'at', 'id'), '>', eb.tuple(String(position), at, id)),
            ...auditConditions(eb, filter),
          ]),
        )
        .orderBy((eb) => arrival(eb))
        .orderBy('at')
        .orderBy('id')
        .limit(PAGE_SIZE),
    );
  }
}

/** The expression of the index `audit_records_position`. */
function arrival(eb: ExpressionBuilder<Tables, 'audit_records'>) {
  return eb.fn.coalesce('position', eb.lit(0)).$castTo<string>();
}

function within(eb: ExpressionBuilder<Tables, 'audit_records'>, first: string | number, last: number) {
  return [eb(arrival(eb), '>=', String(first)), eb(arrival(eb), '<=', String(last))];
}
