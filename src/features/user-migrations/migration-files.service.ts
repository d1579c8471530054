import type { Selectable } from 'kysely';
import { noteUsers } from '../../audit/noted-users.ts';
import { isUuid } from '../../lib/input.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { runCooperatively } from '../../lib/yielding.ts';
import type { Db } from '../../platform/database/database.ts';
import { keysetList, type NestedList, nestedList } from '../../platform/database/keyset-list.ts';
import { orNotFound, Refusal } from '../../platform/errors.ts';
import { heldMemory } from '../../platform/held-memory.ts';
import type { Tables } from '../../tables/tables.ts';
import { type ByteRange, CsvRecords, columnsOf, MAX_RECORD_BYTES, requireLineEnds } from './csv.rules.ts';
import { SHORTENED } from './migration-outcome.rules.ts';
import {
  FILE_CHUNK_BYTES,
  type Lease,
  MAX_WAITING_CHUNKS,
  MigrationStore,
  type MigrationTableRow,
} from './migrations.store.ts';
import type { MigrationCaller } from './user-migrations.service.ts';

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** The facts about a file that are known once it has been read completely. */
interface FileFacts {
  columns: readonly string[];
  /** The position of the first data row in the file, in bytes. */
  position: number;
  rows: number;
}

/** Reads a file in pieces: finds its columns and counts its data rows. */
class FileReading {
  /** Called with the bytes of the header, whose index is 0, and of each data row. */
  readonly #onRecord: ((range: ByteRange, index: number) => void) | undefined;
  #records: CsvRecords | undefined;
  /** The beginning of the file in Latin-1. */
  #head = '';
  #columns: readonly string[] | undefined;
  #position = 0;
  #rows = 0;

  constructor(onRecord?: (range: ByteRange, index: number) => void) {
    this.#onRecord = onRecord;
  }

  /**
   * Reads the next piece.
   * @throws Refusal `invalid_input` when the header is malformed.
   */
  push(chunk: Buffer): void {
    let part = chunk;
    if (!this.#records) {
      this.#head = chunk.toString('latin1', 0, MAX_RECORD_BYTES);
      const start = chunk.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
      this.#records = new CsvRecords(start);
      part = chunk.subarray(start);
    }
    this.#records.push(part);
    this.#read(this.#records);
  }

  /**
   * Ends the reading and returns the facts.
   * @throws Refusal `invalid_input` when the header is missing or malformed.
   */
  end(): FileFacts {
    this.#records?.end();
    if (this.#records) this.#read(this.#records);
    return { columns: this.#columns ?? columnsOf(undefined, this.#head), position: this.#position, rows: this.#rows };
  }

  #read(records: CsvRecords): void {
    if (!this.#columns) {
      const header = records.nextRecord();
      if (!header) return;
      this.#columns = columnsOf(header, this.#head);
      records.columns = this.#columns;
      this.#position = records.position;
      requireLineEnds(this.#head.slice(this.#position));
      this.#onRecord?.({ start: 0, end: this.#position }, 0);
    }
    while (records.skip()) {
      this.#rows += 1;
      this.#onRecord?.(records.range, this.#rows);
    }
  }
}

/** How much of a file is parsed at once. */
const PIECE_BYTES = 64 * 1024;

/** Splits a stream into chunks of one size; the last one may be shorter. It holds one chunk. */
async function* chunksOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let chunk = Buffer.allocUnsafeSlow(FILE_CHUNK_BYTES);
  let filled = 0;
  for await (const part of source) {
    for (let from = 0; from < part.length; ) {
      const piece = part.subarray(from, from + FILE_CHUNK_BYTES - filled);
      chunk.set(piece, filled);
      filled += piece.length;
      from += piece.length;
      if (filled < FILE_CHUNK_BYTES) continue;
      yield chunk;
      chunk = Buffer.allocUnsafeSlow(FILE_CHUNK_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield chunk.subarray(0, filled);
}

/**
 * Reads the file of a migration again and yields the byte ranges of its header and of the rows with these indexes.
 * @throws Error when the file has another number of rows; Refusal `invalid_input` when it has another header.
 */
export async function* rowRanges(
  source: AsyncIterable<Buffer>,
  { total }: MigrationTableRow,
  rowIndexes: ReadonlySet<number>,
): AsyncGenerator<ByteRange> {
  const ranges: ByteRange[] = [];
  const reading = new FileReading((range, index) => {
    if (index === 0 || rowIndexes.has(index)) ranges.push(range);
  });
  for await (const part of source) {
    reading.push(part);
    yield* ranges.splice(0);
  }
  if (reading.end().rows !== total) throw new Error('the file has changed');
  yield* ranges;
}

/** The progress of a migration: `processed` rows have an outcome, of `total`. */
export interface MigrationProgressRow {
  migration: MigrationTableRow;
  processed: number;
  /** The number of rows; null when it is unknown. */
  total: number | null;
  done: boolean;
}

/**
 * Stores files of users to migrate as jobs, which workers apply in row batches; cancels jobs and reads their progress.
 */
export class MigrationFiles {
  readonly #deps;
  readonly #store: MigrationStore;
  readonly #pages: MigrationPages;

  constructor(deps: {
    db: Db;
    nowMs(): number;
    /** Called when there is a new job. */
    notify(): void;
  }) {
    this.#deps = deps;
    this.#store = new MigrationStore(deps.db);
    this.#pages = new MigrationPages(deps.db);
  }

  /**
   * Stores a CSV file and starts its migration. With a lease, the tenant's other files do not limit its size.
   * @throws Refusal `invalid_input` when the header is malformed; `precondition_failed` when the tenant's waiting files have
   * reached the maximum size.
   * @throws what the source throws. After an error nothing stays stored.
   */
  async start(
    caller: MigrationCaller,
    source: AsyncIterable<Uint8Array>,
    {
      isDryRun = false,
      lease,
      name = null,
    }: {
      /** Whether it is a dry run: users are not created, and each batch of rows is decided for itself. */
      isDryRun?: boolean;
      /** Returns the lease of a process that runs the job itself at first. Without it, any worker runs the job. */
      lease?: () => Lease;
      /** What the file is called. */
      name?: string | null | undefined;
    } = {},
  ): Promise<MigrationTableRow> {
    const atMs = this.#deps.nowMs();
    const id = uuidV7(atMs);
    try {
      const facts = await this.#keep(caller.nodeId, id, source, lease ? Number.POSITIVE_INFINITY : MAX_WAITING_CHUNKS);
      const migration = await this.#store.recordFile({
        ...caller,
        ...facts,
        id,
        atMs,
        isDryRun,
        name,
        lease: lease?.(),
      });
      this.#deps.notify();
      return migration;
    } catch (error) {
      // Chunks that cannot be deleted now are deleted later by `MigrationJobs`.
      await this.#store.dropFile(caller.nodeId, id).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Cancels a running migration. Rows already applied stay; repeating the call changes nothing.
   * @throws Refusal `not_found`; `precondition_failed` when the migration is done or has failed.
   */
  async cancel(nodeId: string, id: string): Promise<MigrationTableRow> {
    return this.#deps.db.transaction(async () => {
      const job = isUuid(id) ? await this.#store.lock(nodeId, id, true) : undefined;
      if (job) return this.#store.finish(job, 'cancelled', this.#deps.nowMs());
      const migration = orNotFound(await this.#pages.find(nodeId, id));
      if (migration.status === 'cancelled') return migration;
      const message = `the migration has already finished: it is ${migration.status}`;
      throw new Refusal('precondition_failed', { message });
    });
  }

  /** Returns the progress of a tenant's migration; undefined when there is none with this id. */
  async progress(nodeId: string, id: string): Promise<MigrationProgressRow | undefined> {
    const migration = await this.#pages.find(nodeId, id);
    if (!migration) return undefined;
    const { success, skipped, failed, total, status } = migration;
    return { migration, processed: success + skipped + failed, total, done: status !== 'running' };
  }

  /** Stores the file in chunks; each is written while the next one is read. */
  async #keep(
    nodeId: string,
    id: string,
    source: AsyncIterable<Uint8Array>,
    maxChunks: number,
  ): Promise<FileFacts & { chunks: number }> {
    const reading = new FileReading();
    let chunks = 0;
    let writing: Promise<void> = Promise.resolve();
    try {
      for await (const chunk of chunksOf(source)) {
        for (let from = 0; from < chunk.length; from += PIECE_BYTES) {
          await runCooperatively(() => reading.push(chunk.subarray(from, from + PIECE_BYTES)), heldMemory());
        }
        await writing;
        const created_at = new Date(this.#deps.nowMs()).toISOString();
        writing = this.#store.addChunk(nodeId, { migration_id: id, seq: chunks, bytes: chunk, created_at }, maxChunks);
        // The promise is awaited before the next chunk; this avoids an unhandled rejection until then.
        writing.catch(() => undefined);
        chunks += 1;
      }
      const facts = reading.end();
      await writing;
      return { ...facts, chunks };
    } catch (error) {
      await writing.catch(() => undefined);
      throw error;
    }
  }
}

/** The stored outcome of one row of a user migration. */
export type MigrationRowRow = Selectable<Tables['migration_rows']>;

/** Reads the user migrations of a tenant by keyset, newest first. */
export class MigrationPages extends keysetList({
  rows: (k) => k.selectFrom('migrations').selectAll(),
  order: ['created_at', 'id'],
  isNewestFirst: true,
}) {
  readonly #db: Db;
  /** The rows of each user migration as a nested list, in their order. */
  readonly rows: NestedList<MigrationRowRow>;
  /** The skipped and failed ones of them. */
  readonly rejectedRows: NestedList<MigrationRowRow>;

  constructor(db: Db) {
    super(db);
    this.#db = db;
    const list = { ownerIds: 'uuid', owner: 'migration_id', order: ['index'], onRows: noteUsersOf } as const;
    this.rows = nestedList(db, { ...list, rows: (k) => k.selectFrom('migration_rows').selectAll() });
    this.rejectedRows = nestedList(db, {
      ...list,
      rows: (k) => k.selectFrom('migration_rows').selectAll().where('status', '<>', 'created'),
    });
  }

  /** Reads the first failed rows of a user migration, in their order; with `shortened` the first that have a warning. */
  async failures(nodeId: string, id: string, limit: number, shortened = false): Promise<MigrationRowRow[]> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('migration_rows')
        .selectAll()
        .where('migration_id', '=', id)
        .where((row) => (shortened ? row('external_id', '~', SHORTENED.source) : row('status', '=', 'failed')))
        .orderBy('index')
        .limit(limit),
    );
    noteUsersOf(rows);
    return rows;
  }
}

function noteUsersOf(rows: readonly MigrationRowRow[]): void {
  noteUsers(rows.flatMap(({ noted_users, user_id }) => noted_users ?? user_id ?? []));
}
