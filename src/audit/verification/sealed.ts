import { type KeyObject, verify } from 'node:crypto';
import { z } from 'zod';
import type { SqlTag, UnscopedDatabase } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';
import { NO_HASH } from '../audit-chain.ts';
import { type ChainRange, keyId, type Seal, type SealBody, sealHash } from '../seals.ts';
import type { Findings } from './findings.ts';

const chain = z.guid();
const index = z.int();
const hash = z.string();
const range = { chain, from: index, to: index };
const columns = z.record(z.string(), z.tuple([z.string(), z.string()]));

/** The body of a seal, which whoever may write to the database can have written. */
const sealBody: z.ZodType<SealBody> = z.intersection(
  z.object({ position: index, previous: hash, at: z.iso.datetime().regex(/^[1-9]/), key: z.string().nullable() }),
  z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('opened'), chain }),
    z.object({ kind: z.literal('checkpoint'), chain, index, hash, spooled: index }),
    z.object({ kind: z.literal('closed'), chain, index, hash }),
    z.object({ kind: z.literal('gap'), ...range, reason: z.enum(['lost', 'refused']), hash: hash.optional() }),
    z.object({
      kind: z.literal('erased'),
      records: z.array(z.object({ chain, index, columns })),
      unchained: index,
    }),
    z.object({ kind: z.literal('dropped'), before: z.string(), ranges: z.array(z.object(range)), unchained: index }),
  ]),
);

type Database = UnscopedDatabase<Tables>;

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
  refused: Map<number, string | undefined>;
}

const PAGE = 1_000;
const CACHED_ERASURES = 64;

/** The seals of the database, once each has been verified: its number, its signature, and the hash of the one before. */
export class SealedAudit {
  readonly chains = new Map<string, SealedChain>();
  /** The time of the first seal; undefined if there is none. */
  firstAt: string | undefined;
  count = 0;
  /** The number of seals from before the first key, which protect nothing. */
  unsigned = 0;
  /** Whether the seals are in order, so that the records can be judged by them. */
  isWhole = false;
  readonly #db: Database;
  readonly #findings: Findings;
  readonly #keys: ReadonlyMap<string, KeyObject>;
  readonly #erasures = new Map<number, SealBody | undefined>();
  readonly #unknownKeys = new Set<string | null>();

  constructor(db: Database, keys: readonly KeyObject[], findings: Findings) {
    this.#db = db;
    this.#findings = findings;
    this.#keys = new Map(keys.map((key) => [keyId(key), key]));
  }

  /** Verifies every seal, and notes what they state. */
  async read(): Promise<void> {
    let previous = NO_HASH;
    const [stray] = await this.#db.raw(
      (sql) => sql<{ position: string }>`select position from audit_seals where position < 1 order by position limit 1`,
    );
    if (stray) this.#findings.add('forged', `seal ${stray.position} is one that no service adds: the first is seal 1`);
    for (let page = await this.#page(0); page.length > 0; page = await this.#page(this.count)) {
      for (const row of page) {
        const body = this.#bodyOf(row, this.count + 1);
        this.count += 1;
        if (body === undefined) return;
        if (body.previous !== previous) {
          this.#findings.add(
            'changed',
            `seal ${this.count - 1} or seal ${this.count}: one does not follow on the other`,
          );
          return;
        }
        previous = sealHash(row);
        if (this.#keys.size > 0) this.#checkSignature(row, body);
        this.#note(body);
        if (body.kind === 'erased') await this.#checkErased(body);
      }
    }
    this.isWhole = true;
  }

  /** Compares seals that were kept elsewhere, each a line of JSON, with those of the database. */
  async compare(lines: AsyncIterable<string>): Promise<void> {
    let number = 0;
    let batch: (Seal & { position: number; line: number })[] = [];
    for await (const line of lines) {
      number += 1;
      if (line === '') continue;
      const seal = sealIn(line);
      if (seal === undefined) this.#findings.add('changed', `line ${number} of the kept seals is no seal`);
      else batch.push({ ...seal, line: number });
      if (batch.length === PAGE) batch = await this.#compareBatch(batch);
    }
    await this.#compareBatch(batch);
  }

  async #compareBatch(batch: readonly (Seal & { position: number; line: number })[]): Promise<never[]> {
    const positions = batch.map(({ position }) => position);
    const stored = new Map((await this.#rows(positions)).map((row) => [Number(row.position), row]));
    for (const { position, line, body, signature } of batch) {
      const row = stored.get(position);
      const seal = `seal ${position}, which line ${line} of the kept seals has,`;
      if (row === undefined) this.#findings.add('cut off', `${seal} is not in the database`);
      else if (row.body !== body || row.signature !== signature) {
        this.#findings.add('changed', `${seal} is another one in the database`);
      }
    }
    return [];
  }

  /** Yields what checkpoints and the end of a chain state of its records, in the order of their indices. */
  async *headsOf(chain: string): AsyncGenerator<{ position: number; index: number; hash: string }> {
    for (let after = 0; ; ) {
      const rows = await this.#read(
        (sql) => sql`chain_id = ${chain} and kind in ('checkpoint', 'closed') and position > ${after}`,
      );
      for (const row of rows) {
        const body = bodyIn(row.body);
        if (body?.kind === 'checkpoint' || body?.kind === 'closed') yield body;
        after = Number(row.position);
      }
      if (rows.length < PAGE) return;
    }
  }

  /** Returns what a seal states of the erased columns of a record; undefined if it states nothing. */
  async erasure(
    position: unknown,
    chain: string,
    index: number,
  ): Promise<Record<string, [string, string]> | undefined> {
    // No other one has been verified.
    if (typeof position !== 'number' || !(Number.isSafeInteger(position) && position > 0 && position <= this.count))
      return undefined;
    if (!this.#erasures.has(position)) {
      if (this.#erasures.size >= CACHED_ERASURES) this.#erasures.clear();
      const [row] = await this.#rows([position]);
      this.#erasures.set(position, row && bodyIn(row.body));
    }
    const body = this.#erasures.get(position);
    if (body?.kind !== 'erased') return undefined;
    return body.records.find((record) => record.chain === chain && record.index === index)?.columns;
  }

  #page(after: number): Promise<SealRow[]> {
    return this.#read((sql) => sql`position > ${after}`);
  }

  #rows(positions: readonly number[]): Promise<SealRow[]> {
    return this.#read((sql) => sql`position = any(${positions}::bigint[])`);
  }

  /** Reads the seals that meet a condition, a page of them at most, in their order. */
  #read(condition: (sql: SqlTag) => ReturnType<SqlTag>): Promise<SealRow[]> {
    return this.#db.raw(
      (sql) => sql<SealRow>`
        select position, chain_id, kind, body, encode(signature, 'hex') as signature from audit_seals
        where ${condition(sql)} order by position limit ${PAGE}`,
    );
  }

  /** Returns the body of a seal; undefined, with a finding, if it is not the one with this number. */
  #bodyOf(row: SealRow, position: number): SealBody | undefined {
    if (Number(row.position) !== position) {
      this.#findings.add('missing', `seal ${position} is missing`);
      return undefined;
    }
    const body = bodyIn(row.body);
    const chain = body && 'chain' in body ? body.chain : null;
    if (body?.position === position && body.kind === row.kind && chain === row.chain_id) return body;
    this.#findings.add('changed', `seal ${position} is changed`);
    return undefined;
  }

  /**
   * Checks the signature of a seal. A seal of a key that is not known here proves nothing, even if a service has added
   * one behind it since: services do not look at what they follow on. Those from before the first key have none.
   */
  #checkSignature({ body, signature }: Seal, { key, position }: SealBody): void {
    const known = this.#keys.get(key ?? '');
    const isHeld = known && verify(null, Buffer.from(body), known, Buffer.from(signature ?? '', 'hex'));
    if (isHeld || (!known && this.#unknownKeys.has(key))) return;
    if (key === null && this.unsigned === position - 1) {
      this.unsigned = position;
      return;
    }
    if (!known) this.#unknownKeys.add(key);
    const unsigned =
      key === null ? 'is not signed, unlike those before it' : `has a key that is not known here, ${key}`;
    this.#findings.add('forged', `seal ${position} ${known ? 'has a wrong signature' : unsigned}`);
  }

  /** Checks that what a seal has erased is not there again. */
  async #checkErased({ position, records }: Extract<SealBody, { kind: 'erased' }>): Promise<void> {
    const [row] = await this.#db.raw(
      (sql) => sql<{ id: string; chain: string; index: number }>`
        select a.id, s.chain, s.index from json_to_recordset(${JSON.stringify(records)}::json) s (chain uuid, index float8)
        join audit_records a on a.chain_id = s.chain and a.chain_index = s.index::bigint
        where not coalesce(a.erased @> to_jsonb(${position}::float8), false) order by s.index limit 1`,
    );
    if (!row) return;
    const name = `record ${row.index} of chain ${row.chain} (${row.id})`;
    this.#findings.add(
      'changed',
      `${name} is changed: seal ${position} has erased a part of it, of which it knows nothing`,
    );
  }

  #note(body: SealBody): void {
    this.firstAt ??= body.at;
    if (body.kind === 'dropped') for (const range of body.ranges) this.#chain(range.chain).gone.push(range);
    if (!('chain' in body)) return;
    const chain = this.#chain(body.chain);
    // What a seal has found in the database no process can have lost: somebody has deleted it before another sealed a gap.
    const after = (from: number, to: number) => chain.gone.push({ from: Math.max(from, chain.last + 1), to });
    if (body.kind === 'closed') after(body.index + 1, Number.MAX_SAFE_INTEGER);
    if (body.kind === 'gap' && body.reason === 'lost') after(body.from, body.to);
    if ('index' in body) chain.last = Math.max(chain.last, body.index);
    if (body.kind === 'gap' && body.reason === 'refused') chain.refused.set(body.from, body.hash);
  }

  #chain(id: string): SealedChain {
    const known = this.chains.get(id) ?? { last: -1, gone: [], refused: new Map() };
    this.chains.set(id, known);
    return known;
  }
}

function bodyIn(text: string): SealBody | undefined {
  try {
    return sealBody.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function sealIn(line: string): (Seal & { position: number }) | undefined {
  try {
    const seal: Seal = JSON.parse(line);
    const position = bodyIn(seal.body)?.position;
    return Number.isSafeInteger(position) && position !== undefined ? { ...seal, position } : undefined;
  } catch {
    return undefined;
  }
}
