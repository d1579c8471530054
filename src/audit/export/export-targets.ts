import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  createReadStream,
  existsSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Selectable } from 'kysely';
import { FileLock, makeFolder, writeWhole } from '../../lib/files.ts';
import type { Db, DbAndClock } from '../../platform/database/database.ts';
import type { Tables } from '../../tables/tables.ts';

const PROGRESS = 'progress.json';
const LOCK = 'lock';

/** Thrown when an export cannot be written to its folder; the message says why, and what to do. */
export class ExportError extends Error {
  override name = 'ExportError';
}

/**
 * Where an export is written. What is appended counts once it is saved, together with the state of the export: another run
 * begins there.
 */
export interface ExportTarget<State> {
  /** The name of the target in messages. */
  readonly path: string;
  /** The state that an interrupted run has saved; undefined for a new export. */
  readonly saved: State | undefined;
  append(name: string, text: string): void;
  save(state: State): void | Promise<void>;
  /** Yields the bytes of a file, as far as they are saved. */
  read(name: string): AsyncIterable<Uint8Array>;
  /** Writes the last files of the export, which cannot be continued any more. `findings` are those of the verification. */
  finish(files: Record<string, string | Buffer>, findings: number): void | Promise<void>;
}

/** The folder of an export. Only one process at a time can open it. */
export class ExportFolder<State> implements ExportTarget<State>, Disposable {
  readonly path: string;
  readonly saved: State | undefined;
  readonly #lock: FileLock;
  readonly #files = new Map<string, number>();

  /** @throws ExportError for a folder that another run uses or that has other files; the system's errors. */
  constructor(path: string, names: readonly string[]) {
    this.path = path;
    makeFolder(path, 0o700);
    const isContinued = existsSync(join(path, PROGRESS));
    if (!isContinued && readdirSync(path).some((name) => name !== LOCK))
      throw new ExportError(`${path} has files, and is not an interrupted export: give a new folder`);
    const lock = FileLock.create(join(path, LOCK));
    if (!lock) throw new ExportError(`another run writes to ${path}: wait for its end, or give another folder`);
    this.#lock = lock;
    const { sizes, state }: { sizes: Record<string, number>; state?: State } = isContinued
      ? JSON.parse(readFileSync(join(path, PROGRESS), 'utf8'))
      : { sizes: {} };
    this.saved = state;
    // Before there is any other file, so that a folder with files can be told from one of somebody else.
    if (!isContinued) writeWhole(join(path, PROGRESS), JSON.stringify({ sizes }));
    for (const name of names) {
      const fd = openSync(join(path, name), 'a', 0o600);
      this.#files.set(name, fd);
      ftruncateSync(fd, sizes[name] ?? 0);
    }
  }

  append(name: string, text: string): void {
    appendFileSync(this.#files.get(name) ?? join(this.path, name), text);
  }

  /** Makes the disk write what was appended, and saves the state that belongs to it. */
  save(state: State): void {
    for (const fd of this.#files.values()) fdatasyncSync(fd);
    const sizes = Object.fromEntries(this.#files.entries().map(([name, fd]) => [name, fstatSync(fd).size]));
    writeWhole(join(this.path, PROGRESS), JSON.stringify({ sizes, state }));
  }

  read(name: string): AsyncIterable<Uint8Array> {
    return createReadStream(join(this.path, name));
  }

  finish(files: Record<string, string | Buffer>): void {
    for (const [name, content] of Object.entries(files)) writeWhole(join(this.path, name), content);
    rmSync(join(this.path, PROGRESS));
  }

  [Symbol.dispose](): void {
    for (const fd of this.#files.values()) closeSync(fd);
    this.#lock.remove();
  }
}

/** An export of a tenant, as it is stored. */
export type AuditExportRow = Selectable<Tables['audit_exports']>;

/** The most that the files of an export may take, in bytes. */
const MAX_BYTES = 1024 ** 3;
const CHUNK_BYTES = 1024 ** 2;
/** For how long the files are kept, in ms. */
const KEPT_MS = 24 * 3_600_000;

/** The columns of an export that change while it is written. */
type ExportChanges = Partial<Omit<AuditExportRow, 'id' | 'node_id'>>;

/** Thrown when an export has another state meanwhile, or another process continues it. */
export class LostExportError extends Error {
  override name = 'LostExportError';
}

/** The files of an export in the database, where any process continues and serves them. */
export class StoredExport<State extends object> implements ExportTarget<State> {
  readonly path: string;
  readonly saved: State | undefined;
  /** How many of the records are written. */
  progress: ExportChanges = {};
  readonly #deps;
  readonly #appended = new Map<string, Buffer[]>();

  constructor({ db, nowMs }: DbAndClock, row: AuditExportRow) {
    this.#deps = { db, nowMs, row };
    this.path = row.id;
    this.saved = (row.state as State | null) ?? undefined;
  }

  append(name: string, text: string | Buffer): void {
    this.#appended.getOrInsertComputed(name, () => []).push(Buffer.from(text));
  }

  /**
   * @throws ExportError when the files get too long.
   * @throws LostExportError
   */
  async save(state: State | null, changes: ExportChanges = {}): Promise<void> {
    const files = Array.from(this.#appended, ([file, parts]) => ({ file, bytes: Buffer.concat(parts) }));
    this.#appended.clear();
    const more = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
    await this.#deps.db.transaction(async () => {
      const { bytes } = await this.update({ ...this.progress, ...changes, state }, more);
      if (bytes > MAX_BYTES)
        throw new ExportError('it would take more than 1 GiB: choose a shorter period, or ask the operator for it');
      for (const { file, bytes } of files)
        for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
          await this.#add(file, bytes.subarray(at, at + CHUNK_BYTES));
    });
  }

  read(name: string): AsyncIterable<Uint8Array> {
    return storedFile(this.#deps.db, this.#deps.row, name);
  }

  finish(files: Record<string, string | Buffer>, findings: number): Promise<void> {
    for (const [name, content] of Object.entries(files)) this.append(name, content);
    const nowMs = this.#deps.nowMs();
    return this.save(null, {
      ...{ status: 'ready', problems: findings, download_key: randomUUID() },
      finished_at: new Date(nowMs).toISOString(),
      expires_at: new Date(nowMs + KEPT_MS).toISOString(),
    });
  }

  /** Changes the export, unless another process has it by now. @throws LostExportError */
  async update(changes: ExportChanges, moreBytes = 0): Promise<AuditExportRow> {
    const { id, node_id: nodeId, lease_owner: owner } = this.#deps.row;
    const [row] = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .updateTable('audit_exports')
        .set({ ...changes })
        .set('bytes', (eb) => eb('bytes', '+', moreBytes))
        .where('id', '=', id)
        .where('status', '=', 'running')
        .where('lease_owner', '=', owner)
        .returningAll(),
    );
    if (!row) throw new LostExportError();
    return row;
  }

  async #add(file: string, bytes: Buffer): Promise<void> {
    const { id, node_id: nodeId } = this.#deps.row;
    await this.#deps.db.forNode(nodeId).run((k) =>
      k.insertInto('audit_export_chunks').values((eb) => ({
        ...{ export_id: id, file, bytes },
        seq: eb
          .selectFrom('audit_export_chunks')
          .select((of) => of(of.fn.coalesce(of.fn.max('seq'), of.lit(-1)), '+', 1).as('next'))
          .where('export_id', '=', id),
      })),
    );
  }
}

/** Yields the chunks of a file of an export. */
export async function* storedFile(
  db: Db,
  { id, node_id: nodeId }: Pick<AuditExportRow, 'id' | 'node_id'>,
  file: string,
): AsyncGenerator<Uint8Array> {
  for (let after = -1; ; ) {
    const [chunk] = await db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('audit_export_chunks')
          .select(['seq', 'bytes'])
          .where('export_id', '=', id)
          .where('file', '=', file)
          .where('seq', '>', after)
          .orderBy('seq')
          .limit(1),
      );
    if (!chunk) return;
    yield chunk.bytes;
    after = chunk.seq;
  }
}
