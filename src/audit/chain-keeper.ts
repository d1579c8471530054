import { isUuid } from '../lib/input.ts';
import { parsedOrNone } from '../lib/json.ts';
import type { Db } from '../platform/database/database.ts';
import { outsideRequest } from '../platform/waiting-request.ts';
import { type AuditChain, CHAIN_FORMAT, type ChainHead, NO_HASH, placeOf } from './audit-chain.ts';
import { isChainedLine } from './audit-record.ts';
import type { AuditSeals } from './seals.ts';

/** Records of a chain without a gap, from the first index to the last one, which has this hash. */
type Run = { chain: string; from: number } & ChainHead;

/** Returns the runs in lines of one process: of those without a gap, as nearly all are, only the ends are read. */
function runsOf(lines: readonly Buffer[]): Run[] {
  const [first, last] = [lines[0], lines.at(-1)];
  if (!first || !last || !isChainedLine(first)) return [];
  const { index: from } = placeOf(first);
  const end = placeOf(last);
  if (end.index - from === lines.length - 1) return [{ ...end, from }];
  return lines.map(placeOf).map((position) => ({ ...position, from: position.index }));
}

const CHECKPOINT_MS = 60_000;

/**
 * Seals the chains whose records this process writes to the database: its own, and those that dead processes left in
 * the spool. Each is opened before its first record and closed after its last one, its missing records are sealed as a
 * gap, and the own one gets a checkpoint each minute.
 */
export class ChainKeeper {
  readonly #deps;
  /** The last record in the database of each chain that is being written. */
  readonly #heads = new Map<string, ChainHead>();
  #sealedIndex = -1;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: {
    db: Db;
    seals: AuditSeals;
    /** The chain of this process. */
    own: AuditChain;
    /** Called with the error of a checkpoint. */
    onError(error: unknown): void;
  }) {
    this.#deps = deps;
  }

  /** Starts to add a checkpoint each minute. */
  start(): void {
    this.#timer = setInterval(() => {
      this.checkpoint().catch((error: unknown) => this.#deps.onError(error));
    }, CHECKPOINT_MS).unref();
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

  /** Ends the checkpoints. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #seal(statement: Parameters<AuditSeals['add']>[0]): Promise<void> {
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
