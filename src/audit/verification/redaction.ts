import { randomUUID } from 'node:crypto';
import type { ExpressionBuilder } from 'kysely';
import { isUuid } from '../../lib/input.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Tables } from '../../tables/tables.ts';
import { type AuditFilter, auditConditions } from '../audit-filter.ts';
import { columnDigests, RECORD_COLUMNS } from '../audit-record.ts';
import { withdrawExports } from '../erasure.ts';
import type { AuditSeals, Statement } from '../seals.ts';
import { type ChainedRow, contentLeaf } from './chained.ts';

/** The most records that one seal lists; each has up to 128 KiB to hash. */
const BATCH = 100;
/** The name under which the headers of a redacted record have the id of its redaction; no real header has it. */
const REDACTION = ':redacted';
/** What a redacted record has instead of a text of the caller that cannot be null. */
const BLANK = '***';

type Redaction = Extract<Statement, { kind: 'redaction' }>;

/**
 * Redacts audit records, as the owner of the tables: removes what callers wrote freely, and keeps the digests of query
 * and bodies. A seal lists the records of a batch, with the leaf of each and of what is left of it, and is added in the
 * same transaction. A redacted record matches no filter any more, so another run continues one that was interrupted.
 */
export class AuditRedaction {
  readonly #deps;

  constructor(deps: { db: Db; seals: AuditSeals; filter: AuditFilter }) {
    this.#deps = deps;
  }

  /** Returns the number of records that match the filter and are not redacted. */
  async count(): Promise<number> {
    const [counted] = await this.#unscoped().run((k) =>
      k
        .selectFrom('audit_records')
        .select((eb) => eb.fn.countAll<string>().as('total'))
        .where((eb) => eb.and(this.#conditions(eb))),
    );
    return Number(counted?.total ?? 0);
  }

  /** Redacts all records that match, and returns their number; `onBatch` is called with the number so far. */
  async redact(
    request: Pick<Redaction, 'by' | 'reason' | 'filter'>,
    onBatch: (total: number) => void,
  ): Promise<number> {
    const redaction = randomUUID();
    let rows: ChainedRow[] = [];
    let total = 0;
    for (;;) {
      const last = rows.at(-1);
      const statement = async (): Promise<Redaction | undefined> => {
        rows = await this.#next(last);
        if (rows.length === 0) return undefined;
        return {
          kind: 'redaction',
          redaction,
          ...request,
          count: rows.length,
          records: await this.#blank(rows, redaction),
        };
      };
      await this.#deps.seals.add(statement, async (seal) => {
        await this.#unscoped().raw(
          (sql) => sql`insert into audit_seals select * from json_populate_record(null::audit_seals, ${seal}::json)`,
        );
      });
      total += rows.length;
      onBatch(total);
      if (rows.length < BATCH) break;
    }
    if (total > 0) await withdrawExports(this.#deps.db, 'records were redacted: ask for it again');
    return total;
  }

  /** Returns the next records that match, from the oldest on, behind the last one of the batch before. */
  #next(last: ChainedRow | undefined): Promise<ChainedRow[]> {
    return this.#unscoped().run((k) =>
      k
        .selectFrom('audit_records')
        .select([...RECORD_COLUMNS, 'digests', 'chain_id', 'chain_index'])
        .select((eb) =>
          (['previous_hash', 'hash', 'salts'] as const).map((column) =>
            eb.fn<string>('encode', [column, eb.val('hex')]).as(column),
          ),
        )
        .where((eb) => eb.and(this.#conditions(eb)))
        .$if(last !== undefined, (query) =>
          query.where((eb) => eb(eb.refTuple('at', 'id'), '>', eb.tuple(last?.at ?? '', last?.id ?? ''))),
        )
        .orderBy('at')
        .orderBy('id')
        .limit(BATCH)
        .$castTo<ChainedRow>(),
    );
  }

  /** Blanks records, and returns the places of those in chains with their leaves before and after. */
  async #blank(rows: readonly ChainedRow[], redaction: string): Promise<Redaction['records']> {
    const headers = { [REDACTION]: redaction };
    const remaining = rows.map((row) => {
      // Records of release 0.1.0 have no salts, and those of an erased user none any more.
      const digests = row.digests ?? (row.salts === null ? [] : columnDigests(row, row.salts));
      return {
        ...row,
        ...{ path: BLANK, headers, query: null, request_body: null, response_body: null, digests },
        correlation_id: isUuid(row.correlation_id) ? row.correlation_id : BLANK,
        leaf: contentLeaf(row, digests),
      };
    });
    const changes = remaining.map(({ at, id, correlation_id, digests }) => ({ at, id, correlation_id, digests }));
    await this.#unscoped().raw(
      (sql) => sql`
        update audit_records a set query = null, request_body = null, response_body = null, salts = null, path = ${BLANK},
          headers = ${JSON.stringify(headers)}::jsonb, correlation_id = c.correlation_id, digests = c.digests
        from json_populate_recordset(null::audit_records, ${JSON.stringify(changes)}::json) c
        where a.at = c.at and a.id = c.id`,
    );
    return remaining
      .filter(({ chain_id }) => chain_id !== null)
      .map(({ leaf, ...row }) => ({
        chain: row.chain_id,
        index: Number(row.chain_index),
        leaf,
        remaining: contentLeaf(row, row.digests),
      }));
  }

  #conditions(eb: ExpressionBuilder<Tables, 'audit_records'>) {
    const isRedacted = eb.fn<boolean>('jsonb_exists', ['headers', eb.val(REDACTION)]);
    return [...auditConditions(eb, this.#deps.filter), eb.not(isRedacted)];
  }

  #unscoped() {
    return this.#deps.db.unscoped('operators redact records of all nodes');
  }
}
