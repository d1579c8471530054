import type { KeyObject } from 'node:crypto';
import type { Db } from '../../platform/database/database.ts';
import { ERASABLE_COLUMNS } from '../audit-record.ts';
import { CHAINED_COLUMNS, type ChainedRow, VerifiedChain } from './chained.ts';
import { type Finding, FindingList, SealedAudit, type SealedRedaction } from './sealed.ts';

interface VerificationInput {
  db: Db;
  /** The keys whose signatures count; without any, signatures are not checked. */
  keys: readonly KeyObject[];
  /** The earliest time of the records, inclusive, as text that PostgreSQL parses as a timestamp. */
  from?: string | undefined;
  /** The end of the period, exclusive, as text that PostgreSQL parses as a timestamp. */
  to?: string | undefined;
  /** Seals that were kept outside the database, each a line of JSON. */
  keptSeals?: AsyncIterable<string> | undefined;
  onProgress(progress: { done: number; total: number }): void;
}

/** What a verification has found. */
export interface VerificationReport {
  records: number;
  /** The number of records without a place in a chain, which release 0.1.0 wrote. */
  unchained: number;
  chains: number;
  seals: number;
  /** The number of seals from before the first key. */
  unsigned: number;
  redactions: readonly SealedRedaction[];
  findingCount: number;
  findings: readonly Finding[];
}

const FETCHED = 100;

const TEXTS = [
  ...['correlation_id', 'method', 'path', 'remote_address', 'real_ip', 'subject', 'client_id', 'operation'],
  ...ERASABLE_COLUMNS,
];
/**
 * Whether a record has several times what a service writes: anyone who can add records could otherwise use up all
 * memory. The sizes are read without the values; compressed values expand at most 255 times.
 */
export const IS_LONG = `(
  ${TEXTS.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ')} > 1048576
  or pg_column_size(headers) > 2048 and octet_length(headers::text) > 1048576
  or coalesce(cardinality(noted_users), 0) > 100000
  or ${['digests', 'salts', 'hash', 'previous_hash'].map((column) => `coalesce(pg_column_size(${column}), 0)`).join(' + ')} > 2048)`;

/**
 * Verifies the chains of audit records and their seals, as they are at one moment, in bounded memory: the hash of each
 * record, that each follows on the one before, and that seals agree.
 */
export function verifyAudit(input: VerificationInput): Promise<VerificationReport> {
  return input.db.transaction(() => verifyNow(input));
}

async function verifyNow({
  db,
  keys,
  from,
  to,
  keptSeals,
  onProgress,
}: VerificationInput): Promise<VerificationReport> {
  const unscoped = db.unscoped('audit chains span all nodes');
  await unscoped.raw((sql) => sql`set transaction isolation level repeatable read, read only`);
  const findings = new FindingList();
  const sealed = new SealedAudit(unscoped, keys, findings);
  await sealed.read();
  if (keptSeals) await sealed.compare(keptSeals);
  const first = from ?? '-infinity';
  const [counts] = await unscoped.raw(
    (sql) => sql<{ total: string; unchained: string; late: string; id: string | null; longId: string | null }>`
      select count(*) as total, count(*) filter (where is_bare) as unchained,
        count(*) filter (where is_bare and is_late) as late, min(id::text) filter (where is_bare and is_late) as id,
        min(id::text) filter (where is_long) as "longId"
      from (
        select id, chain_id is null or chain_index is null as is_bare, at >= ${sealed.firstAt ?? 'infinity'} as is_late,
          ${sql.raw(IS_LONG)} as is_long
        from audit_records where at >= ${first} and ${to === undefined ? sql`true` : sql`at < ${to}`}) placed`,
  );
  const { total = 0, unchained = 0, late = 0, id, longId } = counts ?? {};
  if (longId) {
    findings.add('changed', `record ${longId} is longer than the gateway ever writes: it was altered or forged`);
  }
  if (Number(late) > 0) {
    findings.add(
      'unchained',
      `record ${id} belongs to no chain, although there were chains when it was written (${late} such records)`,
    );
  }
  let records = 0;
  const seen = new Set<string>();
  await unscoped.raw(
    (sql) => sql`
      declare chained no scroll cursor for
      select ${sql.raw(CHAINED_COLUMNS)} from audit_records
      where chain_id is not null and chain_index is not null and not ${sql.raw(IS_LONG)} and at >= ${sql.lit(first)}
        and ${to === undefined ? sql`true` : sql`at < ${sql.lit(to)}`}
      order by chain_id, chain_index`,
  );
  const parts = { sealed, findings, db: unscoped, isPartial: from !== undefined || to !== undefined };
  let chain: VerifiedChain | undefined;
  for (let size = FETCHED; size === FETCHED; ) {
    const rows = await unscoped.raw((sql) => sql<ChainedRow>`fetch ${sql.lit(FETCHED)} from chained`);
    for (const row of rows) {
      if (!chain || !seen.has(row.chain_id)) {
        await chain?.end();
        chain = new VerifiedChain(row.chain_id, parts);
        seen.add(row.chain_id);
      }
      await chain.add(row);
    }
    size = rows.length;
    records += size;
    onProgress({ done: records, total: Number(total) - Number(unchained) });
  }
  await chain?.end();
  if (!parts.isPartial) for (const [id] of sealed.chains) if (!seen.has(id)) await new VerifiedChain(id, parts).end();
  return {
    records,
    unchained: Number(unchained),
    chains: seen.size,
    seals: sealed.count,
    unsigned: sealed.unsigned,
    redactions: [...sealed.redactions.values()],
    findingCount: findings.count,
    findings: findings.listed,
  };
}
