import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { UnscopedDatabase } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';
import { NO_HASH } from '../audit-chain.ts';
import { type ChainRange, keyId, type Seal, type SealBody, sealHash } from '../seals.ts';
import type { Findings } from './findings.ts';

type Database = UnscopedDatabase<Tables>;

/** A seal as it is read from the database. */
interface SealRow extends Seal {
  position: string;
  chain_id: string | null;
  kind: string;
}

/** What seals state of a chain. */
interface SealedChain {
  /** The index of the last record that a seal names. */
  last: number;
  isClosed: boolean;
  /** Records that need not be in the database. */
  absent: ChainRange[];
}

const PAGE = 1_000;
const CACHED_ERASURES = 64;

/** The seals of the database, once each has been verified: its number, its signature, and the hash of the one before. */
export class SealedAudit {
  readonly chains = new Map<string, SealedChain>();
  /** The time of the first seal; undefined if there is none. */
  firstAt: string | undefined;
  count = 0;
  /** Whether the seals are in order, so that the records can be judged by them. */
  isWhole = false;
  readonly #db: Database;
  readonly #findings: Findings;
  readonly #keys: ReadonlyMap<string, KeyObject>;
  readonly #erasures = new Map<number, SealBody | undefined>();

  constructor(db: Database, keys: readonly KeyObject[], findings: Findings) {
    this.#db = db;
    this.#findings = findings;
    this.#keys = new Map(keys.map((key) => [keyId(key), createPublicKey(key)]));
  }

  /** Verifies every seal, and notes what they state. */
  async read(): Promise<void> {
    let previous = NO_HASH;
    let firstUnknown: number | undefined;
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
        const isKnown = this.#isSigned(row, body);
        if (isKnown === false) this.#findings.add('forged', `seal ${this.count} has a wrong signature`);
        firstUnknown = isKnown === undefined ? (firstUnknown ?? this.count) : undefined;
        this.#note(body);
      }
    }
    this.isWhole = true;
    if (firstUnknown === undefined || this.#keys.size === 0) return;
    this.#findings.add('forged', `the last seals, from ${firstUnknown} on, are not signed by a key that is known here`);
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
      const rows = await this.#db.raw(
        (sql) => sql<SealRow>`
          select position, chain_id, kind, body, encode(signature, 'hex') as signature from audit_seals
          where chain_id = ${chain} and kind in ('checkpoint', 'closed') and position > ${after}
          order by position limit ${PAGE}`,
      );
      for (const row of rows) {
        const body: SealBody = JSON.parse(row.body);
        if (body.kind === 'checkpoint' || body.kind === 'closed') yield body;
        after = body.position;
      }
      if (rows.length < PAGE) return;
    }
  }

  /** Returns what a seal states of the erased columns of a record; undefined if it states nothing. */
  async erasure(position: number, chain: string, index: number): Promise<Record<string, [string, string]> | undefined> {
    if (!Number.isSafeInteger(position)) return undefined;
    if (!this.#erasures.has(position)) {
      if (this.#erasures.size >= CACHED_ERASURES) this.#erasures.clear();
      const [row] = await this.#rows([position]);
      this.#erasures.set(position, row && JSON.parse(row.body));
    }
    const body = this.#erasures.get(position);
    if (body?.kind !== 'erased') return undefined;
    return body.records.find((record) => record.chain === chain && record.index === index)?.columns;
  }

  #page(after: number): Promise<SealRow[]> {
    return this.#db.raw(
      (sql) => sql<SealRow>`
        select position, chain_id, kind, body, encode(signature, 'hex') as signature from audit_seals
        where position > ${after} order by position limit ${PAGE}`,
    );
  }

  #rows(positions: readonly number[]): Promise<SealRow[]> {
    return this.#db.raw(
      (sql) => sql<SealRow>`
        select position, chain_id, kind, body, encode(signature, 'hex') as signature from audit_seals
        where position = any(${positions}::bigint[])`,
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

  /** Checks the signature of a seal; returns undefined if its key is not known, or if it has none. */
  #isSigned({ body, signature }: Seal, { key }: SealBody): boolean | undefined {
    const known = this.#keys.get(key ?? '');
    return known && verify(null, Buffer.from(body), known, Buffer.from(signature ?? '', 'hex'));
  }

  #note(body: SealBody): void {
    this.firstAt ??= body.at;
    if (body.kind === 'dropped') for (const range of body.ranges) this.#chain(range.chain).absent.push(range);
    if (!('chain' in body)) return;
    const chain = this.#chain(body.chain);
    if (body.kind === 'gap') chain.absent.push(body);
    if ('index' in body) chain.last = Math.max(chain.last, body.index);
    chain.isClosed = body.kind === 'closed';
  }

  #chain(id: string): SealedChain {
    const known = this.chains.get(id) ?? { last: -1, isClosed: false, absent: [] };
    this.chains.set(id, known);
    return known;
  }
}

function bodyIn(text: string): SealBody | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? (body as SealBody) : undefined;
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
