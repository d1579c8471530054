import { createHash } from 'node:crypto';
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
import { FileLock } from '../../lib/file-lock.ts';
import { makeFolder, writeWhole } from '../../lib/files.ts';

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
  /** Returns the size of each file in bytes, and its SHA-256 in hexadecimal digits. */
  digests(): Promise<Record<string, { bytes: number; sha256: string }>>;
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

  async digests(): Promise<Record<string, { bytes: number; sha256: string }>> {
    const digests: Record<string, { bytes: number; sha256: string }> = {};
    for (const [name, fd] of this.#files) {
      const digest = createHash('sha256');
      for await (const part of createReadStream(join(this.path, name))) digest.update(part);
      digests[name] = { bytes: fstatSync(fd).size, sha256: digest.digest('hex') };
    }
    return digests;
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
