import { type KeyObject, sign } from 'node:crypto';
import { expressionBuilder } from 'kysely';
import type { Db } from '../../platform/database/database.ts';
import type { SqlTag } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';
import { type AuditFilter, auditConditions } from '../audit-filter.ts';
import { RECORD_COLUMNS } from '../audit-record.ts';
import { keyId } from '../seals.ts';
import { CHAINED_COLUMNS, type ChainedRow, contentLeaf, exactRecord } from '../verification/chained.ts';
import { FindingList } from '../verification/findings.ts';
import { SealedAudit } from '../verification/sealed.ts';
import { IS_LONG, verifyAudit } from '../verification/verification.ts';
import { csvRecord } from './csv.ts';
import { ExportError, ExportFolder } from './export-folder.ts';

const FILES = { records: 'records.jsonl', table: 'records.csv', chain: 'chain.csv' } as const;
/** The format of an export, which its manifest states. */
const EXPORT_FORMAT = 1;
/** The most records that are in memory; each has up to 128 KiB to hash. */
const PAGE = 100;
const SAVE_MS = 1_000;

/** What was asked for: the filter as its flags, by whom and when. */
interface Asked {
  filter: Record<string, string>;
  by: string;
  at: string;
}

/** What is written of a chain, or of the records without one. */
interface WrittenChain {
  chain: string | null;
  /** The index of the first and of the last position in the file of leaves, once there is one. */
  from?: number;
  to?: number;
  /** The index up to which nothing is left to write. */
  done: number;
  /** The index up to which positions are being written, and whether a checkpoint names it. */
  reach: number;
  isSealed: boolean;
  positions: number;
  records: number;
  /** The number of records behind the last checkpoint. */
  unsealed: number;
}

interface ExportState {
  asked: Asked;
  filter: AuditFilter;
  /** The chains that have records of the filter: how many, and the index of the last one. Undefined until it is known. */
  plan?: { chain: string | null; last: string; records: string }[];
  /** What is written of the chains of the plan, in its order; the last one may be incomplete. */
  written: WrittenChain[];
  /** The sort key of the last record without a chain. */
  after: readonly [at: string, id: string];
}

interface ExportInput {
  db: Db;
  /** The keys whose signatures count in the verification. The first one is private, and signs the manifest. */
  keys: readonly [KeyObject, ...KeyObject[]];
  folder: string;
  asked: Asked;
  /** The filter. Its `until` is set, so that a continued export has the same period. */
  filter: AuditFilter;
  /** Interrupts the export, which another run then continues. */
  signal: AbortSignal;
  onProgress(progress: { what: 'exported' | 'verified'; done: number; total: number }): void;
}

/** The manifest of an export, which is signed. */
export type ExportManifest = Awaited<ReturnType<AuditExport['finish']>>;

/**
 * Exports the audit records of a filter, in bounded memory, with what proves them to others: the leaves of all records
 * between the checkpoints around them, and a signed manifest. Continues an interrupted export of the same filter.
 * @throws ExportError when the folder cannot be used, or the signal aborts.
 */
export async function exportAudit(input: ExportInput): Promise<ExportManifest> {
  using folder = new ExportFolder<ExportState>(input.folder, Object.values(FILES));
  const auditExport = new AuditExport(input, folder);
  await input.db.transaction(() => auditExport.write());
  return await auditExport.finish();
}

class AuditExport {
  readonly #input: ExportInput;
  readonly #folder: ExportFolder<ExportState>;
  readonly #state: ExportState;
  readonly #sealed: SealedAudit;
  #savedAt = performance.now();

  constructor(input: ExportInput, folder: ExportFolder<ExportState>) {
    const { asked, filter, keys } = input;
    this.#input = input;
    this.#folder = folder;
    this.#state = folder.saved ?? {
      ...{ asked, filter, written: [], after: ['-infinity', '00000000-0000-0000-0000-000000000000'] },
    };
    const saved = JSON.stringify(this.#state.asked.filter);
    if (saved !== JSON.stringify(asked.filter))
      throw new ExportError(`${input.folder} has an interrupted export of ${saved}: repeat that, or give a new folder`);
    this.#sealed = new SealedAudit(this.#unscoped(), keys, new FindingList());
  }

  /** Writes the records and the leaves, in a transaction that sees the database as it is at one moment. */
  async write(): Promise<void> {
    await this.#unscoped().raw((sql) => sql`set transaction isolation level repeatable read, read only`);
    await this.#sealed.read();
    const { written } = this.#state;
    for (const [number, { chain, last }] of (await this.#plan()).entries()) {
      if (number < written.length - 1) continue;
      const none = { done: -1, reach: -1, isSealed: true, positions: 0, records: 0, unsealed: 0 };
      written[number] ??= { chain, ...none };
      if (chain === null) await this.#writeUnchained(written[number]);
      else await this.#writeChain(chain, Number(last), written[number]);
    }
    this.#folder.save(this.#state);
  }

  /** Verifies the period, and writes the manifest, which ends the export. */
  async finish() {
    const { db, keys, onProgress } = this.#input;
    const { asked, filter, written } = this.#state;
    const { records, chains, seals, unsigned, unchained, findingCount } = await verifyAudit({
      ...{ db, keys, from: filter.since, to: filter.until },
      onProgress: (progress) => {
        this.#stopIfAborted();
        onProgress({ what: 'verified', ...progress });
      },
    });
    const manifest = {
      ...{ format: EXPORT_FORMAT, filter: asked.filter, asked_by: asked.by, asked_at: asked.at },
      period: { from: filter.since ?? null, to: filter.until },
      ...{ records: sum(written, 'records'), positions: sum(written, 'positions'), unsealed: sum(written, 'unsealed') },
      unchained: sum(
        written.filter(({ chain }) => chain === null),
        'records',
      ),
      chains: written.flatMap(({ chain, from, to, positions, records: count }) =>
        chain === null ? [] : [{ chain, from, to, positions, records: count }],
      ),
      verification: { findings: findingCount, records, chains, seals, unsigned, unchained },
      files: await this.#folder.digests(),
      ...{ completed_at: new Date().toISOString(), key: keyId(keys[0]) },
    };
    const text = `${JSON.stringify(manifest, null, 2)}\n`;
    const signature = sign(null, Buffer.from(text), keys[0]);
    this.#folder.finish({ 'manifest.sig': signature, 'manifest.json': text });
    return manifest;
  }

  async #plan() {
    if (!this.#state.plan) {
      this.#state.plan = await this.#unscoped().raw(
        (sql) => sql<{ chain: string | null; last: string; records: string }>`
          select chain_id as chain, coalesce(max(chain_index), -1) as last, count(*) as records from audit_records
          where ${this.#matches()} group by chain_id order by chain_id nulls last`,
      );
      this.#folder.append(FILES.table, csvRecord(['chain', 'index', ...RECORD_COLUMNS]));
      this.#folder.append(FILES.chain, csvRecord(['chain', 'index', 'leaf', 'previous']));
    }
    return this.#state.plan;
  }

  /**
   * Writes the positions of a chain between the two checkpoints around each record of the filter, or from the last
   * checkpoint to the last record.
   */
  async #writeChain(chain: string, last: number, written: WrittenChain): Promise<void> {
    const heads = this.#sealed.headsOf(chain);
    let head = (await heads.next()).value;
    let before = -1;
    await this.#writeReach(written);
    for (
      let next = await this.#nextMatch(chain, written.done);
      next !== undefined;
      next = await this.#nextMatch(chain, written.done)
    ) {
      for (; head && head.index < next; head = (await heads.next()).value) before = Math.max(before, head.index);
      written.done = Math.max(before, written.done);
      Object.assign(written, { reach: head?.index ?? last, isSealed: head !== undefined });
      await this.#writeReach(written);
    }
  }

  /** Returns the index of the next record of the filter in a chain; undefined if there is none. */
  async #nextMatch(chain: string, after: number): Promise<number | undefined> {
    const [next] = await this.#unscoped().raw(
      (sql) => sql<{ index: string }>`
        select chain_index as index from audit_records
        where chain_id = ${chain} and chain_index > ${after} and ${this.#matches()} order by chain_index limit 1`,
    );
    return next && Number(next.index);
  }

  async #writeReach(written: WrittenChain): Promise<void> {
    const { chain, reach } = written;
    while (written.done < reach) {
      const rows = await this.#rows(
        (sql) => sql`chain_id = ${chain} and chain_index between ${written.done + 1} and ${reach} order by chain_index`,
      );
      this.#write(rows, written);
      written.done = rows.length < PAGE ? reach : Number(rows.at(-1)?.chain_index);
      this.#saveInTime();
    }
  }

  async #writeUnchained(written: WrittenChain): Promise<void> {
    for (let size = PAGE; size === PAGE; ) {
      const [at, id] = this.#state.after;
      const rows = await this.#rows(
        (sql) => sql`chain_id is null and (at, id) > (${at}, ${id}) and ${this.#matches()} order by at, id`,
      );
      this.#write(rows, written);
      const last = rows.at(-1);
      if (last) this.#state.after = [last.at, last.id];
      size = rows.length;
      this.#saveInTime();
    }
  }

  #rows(which: (sql: SqlTag) => ReturnType<SqlTag>) {
    return this.#unscoped().raw(
      (sql) => sql<ChainedRow & { matches: boolean | null }>`
        select ${sql.raw(CHAINED_COLUMNS)}, ${this.#matches()} as matches from audit_records
        where not ${sql.raw(IS_LONG)} and ${which(sql)} limit ${PAGE}`,
    );
  }

  #write(rows: readonly (ChainedRow & { matches: boolean | null })[], written: WrittenChain): void {
    let [records, table, leaves] = ['', '', ''];
    for (const { matches, ...row } of rows) {
      const index = written.chain === null ? null : Number(row.chain_index);
      if (index !== null) {
        const leaf = this.#sealed.redacted.get(`${written.chain} ${index}`)?.leaf ?? contentLeaf(row);
        leaves += csvRecord([written.chain, index, leaf, index - 1 === written.to ? '' : row.previous_hash]);
        written.from ??= index;
        written.to = index;
        written.positions += 1;
      }
      if (!matches) continue;
      const { salts, digests, ...record } = exactRecord(row);
      const columns = RECORD_COLUMNS.map((name) => [name, record[name]] as const);
      records += `${JSON.stringify({ chain: written.chain, index, ...Object.fromEntries(columns), salts, digests })}\n`;
      table += csvRecord([written.chain, index, ...columns.map(([, value]) => value)]);
      written.records += 1;
      if (!written.isSealed) written.unsealed += 1;
    }
    this.#folder.append(FILES.records, records);
    this.#folder.append(FILES.table, table);
    this.#folder.append(FILES.chain, leaves);
  }

  #saveInTime(): void {
    const { plan = [], written } = this.#state;
    this.#input.onProgress({ what: 'exported', done: sum(written, 'records'), total: sum(plan, 'records') });
    if (performance.now() - this.#savedAt < SAVE_MS && !this.#input.signal.aborted) return;
    this.#folder.save(this.#state);
    this.#savedAt = performance.now();
    this.#stopIfAborted();
  }

  #stopIfAborted(): void {
    const { signal, folder } = this.#input;
    if (signal.aborted) throw new ExportError(`interrupted: repeat the command to continue the export in ${folder}`);
  }

  #matches() {
    const eb = expressionBuilder<Tables, 'audit_records'>();
    return eb.and(auditConditions(eb, this.#state.filter));
  }

  #unscoped() {
    return this.#input.db.unscoped('operators export records of all nodes');
  }
}

function sum<Member extends string>(rows: readonly Record<Member, number | string>[], member: Member): number {
  return rows.reduce((total, row) => total + Number(row[member]), 0);
}
