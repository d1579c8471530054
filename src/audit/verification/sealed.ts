import { type KeyObject, verify } from 'node:crypto';
import { parsedOrNone } from '../../lib/json.ts';
import type { SqlTag, UnscopedDatabase } from '../../platform/database/database.ts';
import { NO_HASH } from '../audit-record.ts';
import { type ChainRange, keyId, type Seal, type SealBody, sealBody, sealHash } from '../seals.ts';

/** A problem of the audit: its kind, and a sentence that names the first record or seal concerned and says what was found. */
export interface Finding {
  kind: 'changed' | 'missing' | 'twice' | 'out of place' | 'cut off' | 'forged' | 'unchained' | 'erased' | 'not kept';
  message: string;
}

const MOST_FINDINGS = 20;

/** Collects findings; `count` counts those that are too many to keep, too. */
export class FindingList {
  readonly listed: Finding[] = [];
  count = 0;

  add(kind: Finding['kind'], message: string): void {
    this.count += 1;
    if (this.listed.length < MOST_FINDINGS) this.listed.push({ kind, message });
  }
}

/** A seal as it is read from the database. */
interface SealRow extends Seal {
  position: string;
  chain_id: string | null;
  kind: string;
}

/** What seals state of a chain. */
export interface SealedChain {
  /** The index of the last record that a seal names. */
  last: number;
  /** Records that cannot be in the database: they are lost, dropped, or behind the end. */
  gone: Omit<ChainRange, 'chain'>[];
  /** The hash of each record that was refused, which can be in the database all the same. */
  refusedHashes: Map<number, string | undefined>;
  /** Times, in ms, before which no record behind the index `spooled` was in the spool, in their order. */
  marks: { atMs: number; spooled: number }[];
}

/** What a checkpoint or the end of a chain states of a record: its index and its hash. */
export interface SealedHead {
  position: number;
  index: number;
  hash: string;
}

/** A redaction: when it began, by whom and why, the filter, and how many records it has redacted. */
export interface SealedRedaction {
  at: string;
  by: string;
  reason: string;
  filter: Record<string, string>;
  records: number;
}

const PAGE = 1_000;
/** The least time between two marks, so that few are kept. */
const MARK_MS = 3_600_000;
/** Half of the shortest retention, in ms. */
const HALF_DAY_MS = 12 * 3_600_000;

/**
 * The seals of the database. Each is verified: its number, its form, its signature, and the hash of the one before.
 * What one states counts unless it is found to be forged or changed.
 */
export class SealedAudit {
  readonly chains = new Map<string, SealedChain>();
  /** The ids of users that seals say to be erased. */
  readonly erasedUsers = new Set<string>();
  /** The leaf of each redacted record, and the one of what is left of it, by chain and index. */
  readonly redacted = new Map<string, { leaf: string; remaining: string }>();
  /** What seals say of each redaction, by its id. */
  readonly redactions = new Map<string, SealedRedaction>();
  /** The time of the first seal of a chain; undefined if there is none. */
  firstAt: string | undefined;
  count = 0;
  /** The number of seals from before the first key, which protect nothing. */
  unsigned = 0;
  readonly #db;
  readonly #findings: FindingList;
  readonly #keys: ReadonlyMap<string, KeyObject>;
  readonly #unknownKeys = new Set<string | null>();
  /** The positions of seals that count for nothing. */
  readonly #ignored = new Set<number>();

  constructor(db: UnscopedDatabase, keys: readonly KeyObject[], findings: FindingList) {
    this.#db = db;
    this.#findings = findings;
    this.#keys = new Map(keys.map((key) => [keyId(key), key]));
  }

  /** Verifies every seal, and notes what they state. */
  async read(): Promise<void> {
    let last: SealRow | undefined;
    for (let page = await this.#page('-9223372036854775808'); page.length > 0; page = await this.#page(last.position)) {
      for (const row of page) {
        this.#readOne(row, last);
        last = row;
      }
      if (last === undefined) return;
    }
  }

  #readOne(row: SealRow, last: SealRow | undefined): void {
    this.count += 1;
    const position = Number(row.position);
    const before = Number(last?.position ?? 0);
    const body = bodyOf(row);
    if (position < 1) this.#findings.add('forged', `seal ${position} is forged: services number seals from 1`);
    else if (position !== Math.max(before, 0) + 1) {
      this.#findings.add('missing', `seal ${Math.max(before, 0) + 1} is missing: it was deleted from the database`);
    } else if (body && body.previous !== (last && before > 0 ? sealHash(last) : NO_HASH)) {
      this.#findings.add(
        'changed',
        `seal ${position} does not contain the hash of the seal before it: one of the two was altered`,
      );
    }
    if (!body)
      this.#findings.add(
        'changed',
        `seal ${row.position} was altered: its body is malformed or does not match its columns`,
      );
    else if (position > 0 && (this.#keys.size === 0 || this.#isHeld(row, body))) this.#note(body);
    else this.#ignored.add(position);
  }

  /**
   * Compares seals that were kept elsewhere, each a line of JSON, with the seals of the database: it must have them,
   * and no others between the first and the last of them.
   */
  async compare(lines: AsyncIterable<string>): Promise<void> {
    let number = 0;
    let batch: (Seal & { position: number; line: number })[] = [];
    const runs: { from: number; to: number }[] = [];
    for await (const line of lines) {
      number += 1;
      if (line === '') continue;
      const seal = sealIn(line);
      if (seal === undefined) {
        this.#findings.add('changed', `line ${number} of the checkpoint file is not a valid seal`);
        continue;
      }
      batch.push({ ...seal, line: number });
      const run = runs.at(-1);
      if (run?.to === seal.position - 1) run.to = seal.position;
      else runs.push({ from: seal.position, to: seal.position });
      if (batch.length === PAGE) batch = await this.#compareBatch(batch);
    }
    await this.#compareBatch(batch);
    let next: number | undefined;
    for (const { from, to } of runs.sort((a, b) => a.from - b.from)) {
      if (next !== undefined && from > next) await this.#expectNone(next, from - 1);
      next = Math.max(next ?? 0, to + 1);
    }
  }

  async #expectNone(from: number, to: number): Promise<void> {
    const [row] = await this.#read((sql) => sql`position between ${from} and ${to}`);
    if (row)
      this.#findings.add(
        'not kept',
        `seal ${row.position} is in the database but not in the checkpoint file: it was added by hand, or not copied`,
      );
  }

  async #compareBatch(batch: readonly (Seal & { position: number; line: number })[]): Promise<never[]> {
    const positions = batch.map(({ position }) => position);
    const rows = await this.#read((sql) => sql`position = any(${positions}::bigint[])`);
    const stored = new Map(rows.map((row) => [Number(row.position), row]));
    for (const { position, line, body, signature } of batch) {
      const row = stored.get(position);
      const checkpointLine = `line ${line} of the checkpoint file`;
      if (row === undefined) {
        this.#findings.add(
          'cut off',
          `seal ${position} is in ${checkpointLine} but not in the database: it was deleted`,
        );
      } else if (row.body !== body || row.signature !== signature) {
        this.#findings.add(
          'changed',
          `seal ${position} in the database differs from ${checkpointLine}: one of them was altered`,
        );
      }
    }
    return [];
  }

  /**
   * Yields what checkpoints and the end of a chain state of its records, in the order of their indices, from the seal
   * behind the position `from` on.
   */
  async *headsOf(chain: string, from = 0): AsyncGenerator<SealedHead, undefined> {
    for (let after = from; ; ) {
      const rows = await this.#read(
        (sql) => sql`chain_id = ${chain} and kind in ('checkpoint', 'closed') and position > ${after}`,
      );
      for (const row of rows) {
        after = Number(row.position);
        const body = this.#ignored.has(after) ? undefined : bodyOf(row);
        if (body?.kind === 'checkpoint' || body?.kind === 'closed') yield body;
      }
      if (rows.length < PAGE) return undefined;
    }
  }

  #page(after: string): Promise<SealRow[]> {
    return this.#read((sql) => sql`position > ${after}::bigint`);
  }

  /** Reads the seals that meet a condition, a page of them at most, in their order. */
  #read(condition: (sql: SqlTag) => ReturnType<SqlTag>): Promise<SealRow[]> {
    return this.#db.raw(
      (sql) => sql<SealRow>`
        select position, chain_id, kind, body, encode(signature, 'hex') as signature from audit_seals
        where ${condition(sql)} order by position limit ${PAGE}`,
    );
  }

  /**
   * Checks the signature of a seal. A seal of a key that is not known here proves nothing, even if a service has added
   * one behind it since: services do not look at what they follow on. Those from before the first key have none.
   */
  #isHeld({ body, signature }: Seal, { key, position }: SealBody): boolean {
    const known = this.#keys.get(key ?? '');
    const isHeld = known && verify(null, Buffer.from(body), known, Buffer.from(signature ?? '', 'hex'));
    if (isHeld) return true;
    if (key === null && this.unsigned === position - 1) {
      this.unsigned = position;
      return true;
    }
    if (!known && this.#unknownKeys.has(key)) return false;
    if (!known) this.#unknownKeys.add(key);
    const unsigned =
      key === null
        ? 'has no signature, although earlier seals have one: it was altered or forged'
        : `was signed by an unknown key, ${key}: it is forged, unless this key was yours`;
    this.#findings.add(
      'forged',
      `seal ${position} ${known ? 'has an invalid signature: it was altered or forged' : unsigned}`,
    );
    return false;
  }

  #note(body: SealBody): void {
    if (body.kind === 'opened') {
      this.firstAt ??= body.at;
      // The id of a chain has the start of its process.
      const startedMs = body.chain[14] === '7' ? Number.parseInt(body.chain.replace('-', '').slice(0, 12), 16) : 0;
      const marks = [{ atMs: startedMs, spooled: -1 }];
      if (!this.chains.has(body.chain))
        this.chains.set(body.chain, { last: -1, gone: [], refusedHashes: new Map(), marks });
    }
    if (body.kind === 'erasure') this.erasedUsers.add(body.user);
    if (body.kind === 'redaction') this.#noteRedaction(body);
    if (body.kind === 'dropped') for (const range of body.ranges) this.#noteDropped(body, range);
    const chain = 'chain' in body ? this.chains.get(body.chain) : undefined;
    if (!chain) return;
    // A record that a seal has found in the database cannot have been lost: it was deleted before another sealed a
    // gap.
    const after = (from: number, to: number) => chain.gone.push({ from: Math.max(from, chain.last + 1), to });
    if (body.kind === 'closed') after(body.index + 1, Number.MAX_SAFE_INTEGER);
    if (body.kind === 'gap' && body.reason === 'lost') after(body.from, body.to);
    if ('index' in body) chain.last = Math.max(chain.last, body.index);
    if (body.kind === 'gap' && body.reason === 'refused') chain.refusedHashes.set(body.from, body.hash);
    const atMs = Date.parse(body.at);
    if (body.kind === 'checkpoint' && atMs - (chain.marks.at(-1)?.atMs ?? 0) >= MARK_MS) {
      chain.marks.push({ atMs, spooled: body.spooled });
    }
  }

  #noteRedaction({
    redaction,
    at,
    by,
    reason,
    filter,
    count,
    records,
  }: Extract<SealBody, { kind: 'redaction' }>): void {
    const noted = this.redactions.get(redaction) ?? { at, by, reason, filter, records: 0 };
    this.redactions.set(redaction, { ...noted, records: noted.records + count });
    for (const { chain, index, ...leaves } of records) this.redacted.set(`${chain} ${index}`, leaves);
  }

  /**
   * Notes records as dropped, unless seals say that they are too young. A record is spooled when its request ends: the
   * record of a long stream may be written in the first half of the retention, and no later.
   */
  #noteDropped(
    { position, at, before }: Extract<SealBody, { kind: 'dropped' }>,
    { chain: id, from, to }: ChainRange,
  ): void {
    const chain = this.chains.get(id);
    if (!chain) return;
    const atMs = Date.parse(at);
    const limitMs = Math.min((Date.parse(before) + atMs) / 2, atMs - HALF_DAY_MS);
    const mark = chain.marks.findLast(({ spooled }) => spooled < to);
    if (mark && mark.atMs > limitMs) {
      const since = new Date(mark.atMs).toISOString();
      this.#findings.add(
        'forged',
        `seal ${position} drops record ${to} of chain ${id}, but earlier seals show that it was written after ${since}`,
      );
    } else chain.gone.push({ from, to });
  }
}

/** Returns the body of a seal; undefined if it is malformed or does not match its row. */
function bodyOf(row: SealRow): SealBody | undefined {
  const body = bodyIn(row.body);
  const chain = body && 'chain' in body ? body.chain : null;
  const isOwn = body?.position === Number(row.position) && body.kind === row.kind && chain === row.chain_id;
  return isOwn ? body : undefined;
}

function bodyIn(text: string): SealBody | undefined {
  return parsedOrNone(() => sealBody.parse(JSON.parse(text)));
}

function sealIn(line: string): (Seal & { position: number }) | undefined {
  const seal = parsedOrNone((): Seal => JSON.parse(line));
  const position = seal && bodyIn(seal.body)?.position;
  return seal && position !== undefined && Number.isSafeInteger(position) ? { ...seal, position } : undefined;
}
