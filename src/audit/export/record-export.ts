import { createHash, type KeyObject, sign } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expressionBuilder } from 'kysely';
import type { Db, SqlTag } from '../../platform/database/database.ts';
import type { Tables } from '../../tables/tables.ts';
import { type AuditFilter, auditConditions } from '../audit-filter.ts';
import { RECORD_COLUMNS } from '../audit-record.ts';
import { keyId } from '../seals.ts';
import { CHAINED_COLUMNS, type ChainedRow, contentLeaf, exactRecord } from '../verification/chained.ts';
import { FindingList, SealedAudit } from '../verification/sealed.ts';
import { IS_LONG, verifyAudit } from '../verification/verification.ts';
import { csvRecord } from './csv.ts';
import { ExportError, ExportFolder, type ExportTarget } from './export-targets.ts';

/** The files with records and leaves. */
export const FILES = { records: 'records.jsonl', table: 'records.csv', chain: 'chain.csv' } as const;
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
  /** The position of the last seal that names no position behind that. */
  seal: number;
  /** The index up to which positions are being written, and whether a checkpoint names it. */
  reach: number;
  isSealed: boolean;
  positions: number;
  records: number;
  /** The number of records behind the last checkpoint. */
  unsealed: number;
}

export interface ExportState {
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
  asked: Asked;
  /** The filter. Its `until` is set, so that a continued export has the same period. */
  filter: AuditFilter;
  /** Interrupts the export, which another run then continues. */
  signal: AbortSignal;
  /**
   * How long a transaction of the export may take, in ms, after which it saves; by default all records are read in one.
   * The verification always has one.
   */
  partMs?: number;
  onProgress(progress: { what: 'exported' | 'verified'; done: number; total: number }): void;
}

/** The manifest of an export, which is signed. */
export type ExportManifest = Awaited<ReturnType<AuditExport['finish']>>;

/**
 * Exports the audit records of a filter, in bounded memory, with what proves them to others: the leaves of all records
 * between the checkpoints around them, and a signed manifest. Continues an interrupted export of the same filter.
 * @throws ExportError when the folder cannot be used, or the signal aborts.
 */
export async function exportAudit(input: ExportInput & { folder: string }): Promise<ExportManifest> {
  using folder = new ExportFolder<ExportState>(input.folder, Object.values(FILES));
  const saved = JSON.stringify(folder.saved?.asked.filter ?? input.asked.filter);
  if (saved !== JSON.stringify(input.asked.filter))
    throw new ExportError(`${input.folder} has an interrupted export of ${saved}: repeat that, or give a new folder`);
  return await exportTo(folder, input);
}

/** Exports like `exportAudit`, or continues, in any target. */
export async function exportTo(target: ExportTarget<ExportState>, input: ExportInput): Promise<ExportManifest> {
  const auditExport = new AuditExport(input, target);
  while (!(await input.db.transaction(() => auditExport.write()))) {
    await auditExport.save();
    await nextTurn();
  }
  await auditExport.save();
  return auditExport.finish();
}

/** Thrown to end a transaction of an export, which continues in another. */
const PART_END = new Error('the part has ended');

class AuditExport {
  readonly #input: ExportInput;
  readonly #target: ExportTarget<ExportState>;
  readonly #state: ExportState;
  readonly #sealed: SealedAudit;
  #savedTick = performance.now();

  constructor(input: ExportInput, target: ExportTarget<ExportState>) {
    const { asked, filter, keys } = input;
    this.#input = input;
    this.#target = target;
    this.#state = target.saved ?? {
      ...{ asked, filter, written: [], after: ['-infinity', '00000000-0000-0000-0000-000000000000'] },
    };
    this.#sealed = new SealedAudit(this.#unscoped(), keys, new FindingList());
  }

  /**
   * Writes records and leaves, in a transaction that sees the database as it is at one moment. Returns whether none are
   * left. The state must be saved afterwards.
   */
  async write(): Promise<boolean> {
    await this.#unscoped().raw((sql) => sql`set transaction isolation level repeatable read, read only`);
    if (this.#sealed.count === 0) await this.#sealed.read();
    try {
      await this.#writePart();
    } catch (error) {
      if (error === PART_END) return false;
      throw error;
    }
    return true;
  }

  async save(): Promise<void> {
    await this.#target.save(this.#state);
    this.#savedTick = performance.now();
    this.#stopIfAborted();
  }

  async #writePart(): Promise<void> {
    const { written } = this.#state;
    for (const [number, { chain, last }] of (await this.#plan()).entries()) {
      if (number < written.length - 1) continue;
      const none = { done: -1, seal: 0, reach: -1, isSealed: true, positions: 0, records: 0, unsealed: 0 };
      written[number] ??= { chain, ...none };
      if (chain === null) await this.#writeUnchained(written[number]);
      else await this.#writeChain(chain, Number(last), written[number]);
    }
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
      files: await this.#digests(),
      ...{ completed_at: new Date().toISOString(), key: keyId(keys[0]) },
    };
    const text = `${JSON.stringify(manifest, null, 2)}\n`;
    const signature = sign(null, Buffer.from(text), keys[0]);
    await this.#target.finish({ 'manifest.sig': signature, 'manifest.json': text }, findingCount);
    return manifest;
  }

  /** Returns the size of each file in bytes, and its SHA-256 in hexadecimal digits. */
  async #digests(): Promise<Record<string, { bytes: number; sha256: string }>> {
    const digests: Record<string, { bytes: number; sha256: string }> = {};
    for (const name of Object.values(FILES)) {
      const digest = createHash('sha256');
      let bytes = 0;
      for await (const part of this.#target.read(name)) {
        digest.update(part);
        bytes += part.length;
      }
      digests[name] = { bytes, sha256: digest.digest('hex') };
    }
    return digests;
  }

  async #plan() {
    if (!this.#state.plan) {
      this.#state.plan = await this.#unscoped().raw(
        (sql) => sql<{ chain: string | null; last: string; records: string }>`
          select chain_id as chain, coalesce(max(chain_index), -1) as last, count(*) as records from audit_records
          where ${this.#matches()} group by chain_id order by chain_id nulls last`,
      );
      this.#target.append(FILES.table, csvRecord(['chain', 'index', ...RECORD_COLUMNS]));
      this.#target.append(FILES.chain, csvRecord(['chain', 'index', 'leaf', 'previous']));
      this.#report();
    }
    return this.#state.plan;
  }

  /**
   * Writes the positions of a chain between the two checkpoints around each record of the filter, or from the last
   * checkpoint to the last record.
   */
  async #writeChain(chain: string, last: number, written: WrittenChain): Promise<void> {
    await this.#writeReach(written);
    const heads = this.#sealed.headsOf(chain, written.seal);
    let head = (await heads.next()).value;
    let before = -1;
    for (
      let next = await this.#nextMatch(chain, written.done, last);
      next !== undefined;
      next = await this.#nextMatch(chain, written.done, last)
    ) {
      for (; head && head.index < next; head = (await heads.next()).value) {
        before = Math.max(before, head.index);
        written.seal = head.position;
      }
      written.done = Math.max(before, written.done);
      Object.assign(written, { reach: head?.index ?? last, isSealed: head !== undefined });
      await this.#writeReach(written);
    }
  }

  /**
   * Returns the index of the next record of the filter in a chain; undefined if there is none. Records that arrived after
   * the export was planned are not part of it.
   */
  async #nextMatch(chain: string, after: number, last: number): Promise<number | undefined> {
    const [next] = await this.#unscoped().raw(
      (sql) => sql<{ index: string }>`
        select chain_index as index from audit_records
        where chain_id = ${chain} and chain_index between ${after + 1} and ${last} and ${this.#matches()}
        order by chain_index limit 1`,
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
      await this.#saveInTime();
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
      await this.#saveInTime();
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
    this.#target.append(FILES.records, records);
    this.#target.append(FILES.table, table);
    this.#target.append(FILES.chain, leaves);
  }

  async #saveInTime(): Promise<void> {
    const { partMs, signal } = this.#input;
    this.#report();
    if (performance.now() - this.#savedTick < (partMs ?? SAVE_MS) && !signal.aborted) return;
    if (partMs !== undefined) throw PART_END;
    await this.save();
  }

  #report(): void {
    const { plan = [], written } = this.#state;
    this.#input.onProgress({ what: 'exported', done: sum(written, 'records'), total: sum(plan, 'records') });
  }

  #stopIfAborted(): void {
    if (!this.#input.signal.aborted) return;
    throw new ExportError(`interrupted: repeat the command to continue the export in ${this.#target.path}`);
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
