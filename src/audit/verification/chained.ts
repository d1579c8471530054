import type { Selectable } from 'kysely';
import type { UnscopedDatabase } from '../../platform/database/database.ts';
import type { Tables } from '../../tables/tables.ts';
import {
  type AuditRecord,
  chainedHash,
  columnDigests,
  ERASABLE_COLUMNS,
  fixedColumnsOf,
  NO_HASH,
  RECORD_COLUMNS,
  recordLeaf,
  SALTS_LENGTH,
} from '../audit-record.ts';
import type { ChainRange } from '../seals.ts';
import type { FindingList, SealedAudit, SealedChain, SealedHead } from './sealed.ts';

/** A record as it is read for its verification, with its hashes and salts in hexadecimal digits. */
export type ChainedRow = Omit<
  Selectable<Tables['audit_records']>,
  'chain_id' | 'chain_index' | 'previous_hash' | 'hash' | 'salts'
> & { chain_id: string; chain_index: string; previous_hash: string; hash: string; salts: string };

/** The columns of a `ChainedRow`, as SQL. */
export const CHAINED_COLUMNS = `${RECORD_COLUMNS.join(', ')}, digests, chain_id, chain_index,
  ${['previous_hash', 'hash', 'salts'].map((column) => `coalesce(encode(${column}, 'hex'), '') as ${column}`).join(', ')}`;

/** Verifies the records of one chain, in the order of their indices. */
export class VerifiedChain {
  readonly #id: string;
  readonly #deps;
  readonly #heads: AsyncGenerator<SealedHead, undefined>;
  #head: SealedHead | undefined;
  #last: { index: number; hash: string; name: string } | undefined;
  readonly #sealed: SealedChain | undefined;
  readonly #absent: Ranges;
  /** The index up to which a seal has held. */
  #heldTo = -1;

  constructor(
    id: string,
    deps: {
      sealed: SealedAudit;
      findings: FindingList;
      db: UnscopedDatabase;
      /** Whether records of other times, which are not read, may belong to the chain. */
      isPartial: boolean;
    },
  ) {
    this.#id = id;
    this.#deps = deps;
    this.#heads = deps.sealed.headsOf(id);
    this.#sealed = deps.sealed.chains.get(id);
    const { gone, refusedHashes } = this.#sealed ?? { gone: [], refusedHashes: new Map<number, string>() };
    this.#absent = new Ranges([...gone, ...refusedHashes.keys().map((index) => ({ from: index, to: index }))]);
  }

  /** Verifies the next record. */
  async add(row: ChainedRow): Promise<void> {
    const { findings, isPartial } = this.#deps;
    const index = Number(row.chain_index);
    const name = `record ${row.chain_index} of chain ${this.#id} (${row.id}, ${exactTime(row.at)})`;
    const last = this.#last;
    if (last?.index === index) {
      findings.add('twice', `${name} has the same index as ${last.name}: one of them was copied or forged`);
      return;
    }
    // Of the records before a period, only the last one can have been deleted from the period.
    const expected = last ? last.index + 1 : isPartial ? Math.max(index - 1, 0) : 0;
    if (index > expected) await this.#reportAbsent(expected, index - 1, `before ${name}`);
    const isNext = index === (last ? last.index + 1 : 0);
    const redacted = this.#deps.sealed.redacted.get(`${this.#id} ${index}`);
    const leaf = contentLeaf(row, this.#digestsOf(row, name, redacted !== undefined));
    const hash = chainedHash(row.previous_hash, redacted?.leaf ?? leaf);
    const isWhole = row.salts.length === (row.digests ? 0 : SALTS_LENGTH) && (redacted?.remaining ?? leaf) === leaf;
    if (hash !== row.hash || !isWhole)
      findings.add('changed', `${name} was altered: its content and its hash do not match`);
    else if (index < 0 || (isNext && row.previous_hash !== (last?.hash ?? NO_HASH))) {
      findings.add(
        'out of place',
        `${name} does not follow ${last?.name ?? 'the start of its chain'}: a record was moved or replaced`,
      );
    } else if (!this.#mayBe(index, hash)) {
      findings.add(
        'forged',
        `${name} should be absent: a seal says that it was deleted, lost or refused, or that its chain ended before it`,
      );
    }
    // The next one is judged by what this one says, so that one change is one finding.
    this.#last = { index, hash: row.hash, name };
    await this.#hold(index, row.hash, name);
  }

  /** Checks whether a record with this hash can be in the database, in spite of what seals say to be absent. */
  #mayBe(index: number, hash: string): boolean {
    const refusedHashes = this.#sealed?.refusedHashes;
    return refusedHashes?.has(index) ? refusedHashes.get(index) === hash : this.#absent.firstNotIn(index) === index;
  }

  /** Ends the chain: whether seals know of records behind the last one. */
  async end(): Promise<void> {
    const { findings, isPartial } = this.#deps;
    const known = this.#sealed;
    if (known === undefined) {
      findings.add(
        'forged',
        `${this.#last?.name} belongs to a chain that no valid seal opened: the chain was forged, or its seals were deleted`,
      );
      return;
    }
    const { index = -1, name = 'its start' } = this.#last ?? {};
    // Of the records after a period, only the first one can have been deleted from the period.
    const last = isPartial ? Math.min(known.last, index + 1) : known.last;
    await this.#reportAbsent(index + 1, last, `after ${name}`, 'cut off');
  }

  /** Compares a record with the seals that name it. */
  async #hold(index: number, hash: string, name: string): Promise<void> {
    for (;;) {
      this.#head ??= (await this.#heads.next()).value;
      if (this.#head === undefined || this.#head.index > index) return;
      const { position, index: sealedIndex, hash: sealedHash } = this.#head;
      if (sealedIndex === index && sealedHash !== hash) {
        const from = this.#heldTo + 1;
        const which = from === index ? name : `one of records ${from} to ${index} of chain ${this.#id}`;
        this.#deps.findings.add(
          'forged',
          `${which} was replaced: the hash of record ${index} is not the one in seal ${position}`,
        );
      }
      this.#heldTo = Math.max(this.#heldTo, sealedIndex);
      this.#head = undefined;
    }
  }

  /**
   * Reports the first of these records that no seal states to be absent, and that is not among the records of other
   * periods.
   */
  async #reportAbsent(from: number, to: number, where: string, kind: 'missing' | 'cut off' = 'missing'): Promise<void> {
    const { findings, db, isPartial } = this.#deps;
    const first = this.#absent.firstNotIn(from);
    if (first > to) return;
    if (isPartial) {
      const [row] = await db.raw(
        (sql) => sql<{ count: string }>`
          select count(*) from audit_records where chain_id = ${this.#id} and chain_index between ${first} and ${to}`,
      );
      if (Number(row?.count) >= to - first + 1) return;
    }
    const [which, is] = first === to ? [`record ${first}`, 'is'] : [`records ${first} to ${to}`, 'are'];
    findings.add(kind, `${which} of chain ${this.#id} ${is} missing ${where}: no seal says why`);
  }

  /** Returns the digests of the columns that an erasure removes. Of an erased record they are what is left. */
  #digestsOf(row: ChainedRow, name: string, isRedacted: boolean): readonly string[] {
    if (row.digests === null) return columnDigests(row, row.salts);
    const { sealed, findings } = this.#deps;
    if (ERASABLE_COLUMNS.some((column) => row[column] !== null)) {
      findings.add('changed', `${name} was altered: it is marked as erased, but has a query or a body`);
    }
    if (!isRedacted && !row.noted_users?.some((id) => sealed.erasedUsers.has(id))) {
      findings.add(
        'erased',
        `${name} has lost its query and bodies, but no seal says that one of its users was erased, or that it was redacted`,
      );
    }
    return row.digests;
  }
}

/** Returns the leaf of a record by its content, and by the digests of the columns that may be removed. */
export function contentLeaf(
  row: ChainedRow,
  digests: readonly string[] = row.digests ?? columnDigests(row, row.salts),
): string {
  return recordLeaf({ chain: row.chain_id, index: Number(row.chain_index) }, fixedColumnsOf(exactRecord(row)), digests);
}

/** Returns a record with the values that its leaf covers. */
export function exactRecord<Row extends Pick<ChainedRow, (typeof RECORD_COLUMNS)[number]>>(
  row: Row,
): Row & AuditRecord {
  return {
    ...row,
    at: exactTime(row.at),
    elapsed: Number(row.elapsed),
    request_bytes: Number(row.request_bytes),
    response_bytes: Number(row.response_bytes),
  };
}

/** Ranges of indices, in which rising ones are looked up. */
class Ranges {
  readonly #ranges: { from: number; to: number }[] = [];
  #place = 0;

  constructor(ranges: readonly Omit<ChainRange, 'chain'>[]) {
    for (const { from, to } of ranges.toSorted((a, b) => a.from - b.from)) {
      const last = this.#ranges.at(-1);
      if (last && from <= last.to + 1) last.to = Math.max(last.to, to);
      else this.#ranges.push({ from, to });
    }
  }

  /**
   * Returns the first index from `from` on that is in none of the ranges. `from` is not less than at the call before.
   */
  firstNotIn(from: number): number {
    let range = this.#ranges[this.#place];
    for (; range && range.to < from; range = this.#ranges[this.#place]) this.#place += 1;
    return range && range.from <= from ? range.to + 1 : from;
  }
}

/**
 * Converts PostgreSQL's text of a time in UTC to ISO 8601 with all its digits, three at least; leaves infinity and
 * years BC.
 */
function exactTime(text: string): string {
  const [, day, time, fraction = ''] = /^(\S+) (\d\d:\d\d:\d\d)(?:\.(\d+))?\+00$/.exec(text) ?? [];
  return day === undefined ? text : `${day}T${time}.${fraction.padEnd(3, '0')}Z`;
}
