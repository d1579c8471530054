import { createPublicKey, hash, type KeyObject, sign } from 'node:crypto';
import { z } from 'zod';
import { isUuid } from '../lib/input.ts';
import { parsedOrNone } from '../lib/json.ts';
import type { Db } from '../platform/database/database.ts';
import { outsideRequest } from '../platform/held-memory.ts';
import { type AuditChain, CHAIN_FORMAT, type ChainHead, isChainedLine, NO_HASH, placeOf } from './audit-record.ts';

const chain = z.guid();
const index = z.int();
const hexHash = z.string();
const time = z.iso.datetime().regex(/^[1-9]/);
/** The records of a chain with these indices, both inclusive. */
const range = z.object({ chain, from: index, to: index });

export type ChainRange = z.output<typeof range>;

/**
 * What a seal states. `index` and `hash` belong to the last record of a chain that is in the database, -1 and
 * `NO_HASH` where there is none.
 */
const anyStatement = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('opened'), chain, format: z.literal(CHAIN_FORMAT) }),
  // The spool has had records up to the index `spooled`.
  z.object({ kind: z.literal('checkpoint'), chain, index, hash: hexHash, spooled: index }),
  z.object({ kind: z.literal('closed'), chain, index, hash: hexHash }),
  // Records that are not in the database, and why. One that was refused can come later, with this hash.
  range.extend({ kind: z.literal('gap'), reason: z.enum(['lost', 'refused']), hash: hexHash.optional() }),
  // A user is erased, and with it parts of the records that have noted it.
  z.object({ kind: z.literal('erasure'), user: z.guid() }),
  // Records from which the owner of the tables removed what callers wrote: their leaves, and those of what is left.
  z.object({
    kind: z.literal('redaction'),
    ...{
      redaction: z.guid(),
      by: z.string(),
      reason: z.string(),
      filter: z.record(z.string(), z.string()),
      count: index,
    },
    records: z.array(z.object({ chain, index, leaf: hexHash, remaining: hexHash })),
  }),
  // Records before a time that are older than the retention. `unchained` counts those without a chain.
  z.object({ kind: z.literal('dropped'), before: time, ranges: z.array(range), unchained: index }),
]);

export type Statement = z.output<typeof anyStatement>;

/**
 * The body of a seal: the signed JSON. Anyone with write access to the database may have forged it. `position` counts
 * seals from 1 on, without gaps; `previous` is the hash of the seal before, or `NO_HASH`; `key` is the id of the key
 * that has signed it, or null.
 */
export const sealBody = z.intersection(
  z.object({ position: index, previous: hexHash, at: time, key: z.string().nullable() }),
  anyStatement,
);

export type SealBody = z.output<typeof sealBody>;

/** A seal as it is stored, and as a line of a sink has it. The signature is in hexadecimal digits. */
export interface Seal {
  body: string;
  signature: string | null;
}

/** Returns the hash of a seal, to which the next one refers. */
export function sealHash({ body, signature }: Seal): string {
  return hash('sha256', `${body}\n${signature ?? ''}`);
}

/** Returns the id of a key: the first 16 hexadecimal digits of SHA-256 of its public part (SPKI in DER). */
export function keyId(key: KeyObject): string {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return hash('sha256', publicKey.export({ type: 'spki', format: 'der' })).slice(0, 16);
}

/** The key of the PostgreSQL advisory lock that lets only one process at a time add a seal. */
const LOCK = 4_273_005;
/** The most seals that wait until they can be copied outside the database. */
const MAX_UNCOPIED = 10_000;

/** Adds seals: signed statements about the chains of audit records, each with the hash of the one before. */
export class AuditSeals {
  readonly #deps;
  readonly #uncopied: Seal[] = [];

  constructor(deps: {
    db: Db;
    nowMs(): number;
    /** Returns the Ed25519 key that signs; undefined if seals are not signed. */
    key(): KeyObject | undefined;
    /** Stores a seal outside the database. */
    sink?: ((seal: Seal) => Promise<void>) | undefined;
    /** Called with the error of the sink. */
    onError(error: unknown): void;
  }) {
    this.#deps = deps;
  }

  /**
   * Adds a seal to the database, and then to the sink, with those that the sink has not taken before. `write` calls the
   * function of the database that stores it, given the row as JSON, together with what else is part of it: all of that
   * happens or nothing does. A statement that depends on rows is a function, called while no other process can seal; it
   * states nothing by undefined. Returns the seal.
   */
  async add(
    statement: Statement | (() => Promise<Statement | undefined>),
    write = (seal: string) => this.#store(seal),
  ): Promise<Seal | undefined> {
    const { db, sink } = this.#deps;
    const seal = await outsideRequest(() => db.transaction(() => this.#add(statement, write)));
    if (seal && sink) await this.#copy(seal, sink);
    return seal;
  }

  /** Copies a seal outside the database, after those that wait. */
  async #copy(seal: Seal, sink: (seal: Seal) => Promise<void>): Promise<void> {
    this.#uncopied.push(seal);
    if (this.#uncopied.length > MAX_UNCOPIED) this.#uncopied.shift();
    for (let next = this.#uncopied.shift(); next; next = this.#uncopied.shift()) {
      try {
        await sink(next);
      } catch (error) {
        this.#uncopied.unshift(next);
        this.#deps.onError(error);
        return;
      }
    }
  }

  async #add(
    statementOrFactory: Parameters<AuditSeals['add']>[0],
    write: (seal: string) => Promise<void>,
  ): Promise<Seal | undefined> {
    const unscoped = this.#unscoped();
    await unscoped.raw((sql) => sql`select pg_advisory_xact_lock(${LOCK})`);
    const statement = typeof statementOrFactory === 'function' ? await statementOrFactory() : statementOrFactory;
    if (statement === undefined) return undefined;
    const [last] = await unscoped.raw(
      (sql) => sql<Seal & { position: string }>`
        select position, body, encode(signature, 'hex') as signature from audit_seals order by position desc limit 1`,
    );
    const position = Number(last?.position ?? 0) + 1;
    const key = this.#deps.key();
    const at = new Date(this.#deps.nowMs()).toISOString();
    const previous = last ? sealHash(last) : NO_HASH;
    const content: SealBody = { position, previous, at, key: key ? keyId(key) : null, ...statement };
    const body = JSON.stringify(content);
    const signature = key ? sign(null, Buffer.from(body), key).toString('hex') : null;
    const chain_id = 'chain' in statement ? statement.chain : null;
    const row = { position, chain_id, kind: statement.kind, body, signature: signature && `\\x${signature}` };
    await write(JSON.stringify(row));
    return { body, signature };
  }

  async #store(seal: string): Promise<void> {
    await this.#unscoped().raw((sql) => sql`select audit_seal(${seal}::json)`);
  }

  #unscoped() {
    return this.#deps.db.unscoped('audit chains span all nodes');
  }
}

/**
 * Returns the runs in lines of one process, records without a gap, from the first index to the last one, which has the
 * hash: of lines without a gap, as nearly all are, only the ends are read.
 */
function runsOf(lines: readonly Buffer[]): ({ chain: string; from: number } & ChainHead)[] {
  const [first, last] = [lines[0], lines.at(-1)];
  if (!first || !last || !isChainedLine(first)) return [];
  const { index: from } = placeOf(first);
  const end = placeOf(last);
  return end.index - from === lines.length - 1
    ? [{ ...end, from }]
    : lines.map(placeOf).map((position) => ({ ...position, from: position.index }));
}

/**
 * Seals the chains whose records this process writes to the database: its own, and those that dead processes left in
 * the spool. Each is opened before its first record and closed after its last one, its missing records are sealed as a
 * gap.
 */
export class ChainKeeper {
  readonly #deps;
  /** The last record in the database of each chain that is being written. */
  readonly #heads = new Map<string, ChainHead>();
  #sealedIndex = -1;

  constructor(deps: {
    db: Db;
    seals: AuditSeals;
    /** The chain of this process. */
    own: AuditChain;
  }) {
    this.#deps = deps;
  }

  /**
   * Writes a batch of spooled lines by `insert`, which calls `onGap` with each that the database refuses before it
   * inserts any behind it. A gap is sealed before any later record is in the database.
   */
  async write(
    lines: readonly Buffer[],
    insert: (onGap: (line: Buffer) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const heads = new Map<string, ChainHead>();
    for (const { chain, from, index, hash } of runsOf(lines)) {
      if (!this.#heads.has(chain)) this.#heads.set(chain, await this.#open(chain));
      const { index: last } = heads.get(chain) ?? this.#heads.get(chain) ?? { index: from - 1 };
      if (from > last + 1) await this.#seal({ kind: 'gap', chain, from: last + 1, to: from - 1, reason: 'lost' });
      if (index > last) heads.set(chain, { index, hash });
    }
    await insert(async (line) => {
      if (!isChainedLine(line)) return;
      const { chain, index, hash } = placeOf(line);
      await this.#seal({ kind: 'gap', chain, from: index, to: index, reason: 'refused', hash });
    });
    for (const [chain, head] of heads) this.#heads.set(chain, head);
  }

  /** Adds a checkpoint of the own chain, if it has records in the database since the last one. */
  async checkpoint(): Promise<void> {
    const { own } = this.#deps;
    const head = this.#heads.get(own.id);
    if (head === undefined || head.index === this.#sealedIndex) return;
    await this.#seal({ kind: 'checkpoint', chain: own.id, ...head, spooled: own.head.index });
    this.#sealedIndex = head.index;
  }

  /**
   * Closes a chain, all of whose records that the spool still has are in the database. Records that were in the spool
   * of a machine that has lost them are sealed as a gap.
   */
  async close(chain: string): Promise<void> {
    // A process of a release without chains has another kind of name.
    if (!isUuid(chain)) return;
    const sealed = await this.#sealsOf(chain);
    if (sealed.length === 0 || sealed.at(-1)?.kind === 'closed') return;
    const head = this.#heads.get(chain) ?? (await this.#headOf(chain));
    const spooled = Math.max(...sealed.map(({ body }) => spooledIn(body)));
    if (spooled > head.index)
      await this.#seal({ kind: 'gap', chain, from: head.index + 1, to: spooled, reason: 'lost' });
    await this.#seal({ kind: 'closed', chain, ...head });
    this.#heads.delete(chain);
  }

  #seal(statement: Parameters<AuditSeals['add']>[0]): Promise<unknown> {
    return this.#deps.seals.add(statement);
  }

  async #open(chain: string): Promise<ChainHead> {
    if ((await this.#sealsOf(chain)).length === 0) await this.#seal({ kind: 'opened', chain, format: CHAIN_FORMAT });
    return this.#headOf(chain);
  }

  async #headOf(chain: string): Promise<ChainHead> {
    const [last] = await outsideRequest(() =>
      this.#unscoped().raw(
        (sql) => sql<{ index: string; hash: string }>`
          select chain_index as index, encode(hash, 'hex') as hash from audit_records
          where chain_id = ${chain} and chain_index between 0 and ${Number.MAX_SAFE_INTEGER} and length(hash) = 32
          order by chain_index desc limit 1`,
      ),
    );
    return last ? { index: Number(last.index), hash: last.hash } : { index: -1, hash: NO_HASH };
  }

  /** Returns the last checkpoint and the last seal of a chain, as far as there are these. */
  #sealsOf(chain: string): Promise<{ kind: string; body: string }[]> {
    return outsideRequest(() =>
      this.#unscoped().raw(
        (sql) => sql<{ kind: string; body: string }>`
          select kind, body from audit_seals where position in (
            select max(position) from audit_seals where chain_id = ${chain}
            union select max(position) from audit_seals where chain_id = ${chain} and kind = 'checkpoint')
          order by position`,
      ),
    );
  }

  #unscoped() {
    return this.#deps.db.unscoped('audit chains span all nodes');
  }
}

/**
 * Returns what a seal says of the spool; -1 if nothing. Anyone with write access to the database may have forged the
 * seal.
 */
function spooledIn(body: string): number {
  const spooled = parsedOrNone(() => JSON.parse(body).spooled);
  return Number.isSafeInteger(spooled) ? spooled : -1;
}
