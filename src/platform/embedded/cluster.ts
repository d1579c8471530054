import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { glob, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import { crc32c } from '../../lib/crc32c.ts';
import { embeddedClusterDir, notWhole, PARTS } from '../config/secrets.ts';
import { StartError } from '../errors.ts';

/** The major version of PostgreSQL that PGlite contains. */
const MAJOR = 18;

/**
 * The length of PostgreSQL 18's `global/pg_control` and the offsets of its fields, in bytes
 * (src/include/catalog/pg_control.h).
 */
const CONTROL = { bytes: 8192, redo: 40, timeline: 48, segmentBytes: 228, crc: 292 };

/**
 * The offsets of fields in the first page of a segment of the write-ahead log, and the length of the page's long
 * header, in bytes (src/include/access/xlog_internal.h of PostgreSQL 18).
 */
const SEGMENT = { address: 8, system: 24, headerBytes: 40 };
/** Matches the path of a segment of the write-ahead log within a cluster. */
export const SEGMENT_NAME = /^pg_wal\/[0-9A-F]{24}$/;

/**
 * Returns the system identifier of the embedded cluster, which its control file and every segment of its write-ahead
 * log have. Checks the files that must be intact before PostgreSQL may open the cluster, since it would create a new
 * one over some kinds of damage. `known` is the identifier in the rest of `DATA_DIR`, which decides which file is
 * reported as foreign.
 * @throws StartError that names a file that is missing, damaged or of another installation.
 */
export function clusterIdentity(dataDir: string, known: string | undefined): string {
  const version = readPart(dataDir, 'PG_VERSION');
  if (version.toString() !== `${MAJOR}\n`) throw damaged(dataDir, 'PG_VERSION');
  const control = readPart(dataDir, 'global/pg_control');
  if (control.length !== CONTROL.bytes || control.readUInt32LE(CONTROL.crc) !== crc32c(control, 0, CONTROL.crc)) {
    throw damaged(dataDir, 'global/pg_control');
  }
  const identity = `${control.readBigUInt64LE(0)}`;
  const segmentBytes = control.readUInt32LE(CONTROL.segmentBytes);
  const redo = redoSegment(control, segmentBytes);
  for (const name of new Set([redo, ...segments(dataDir)])) {
    const path = partPath(dataDir, name);
    const header = readHeader(path);
    const system = statSync(path).size === segmentBytes ? `${header.readBigUInt64LE(SEGMENT.system)}` : undefined;
    // Segments are created ahead of their use, filled with zeros.
    const isUnused = system === '0' && name !== redo && header.every((byte) => byte === 0);
    if (system === undefined || (system === '0' && !isUnused)) throw damaged(dataDir, name);
    if (isUnused || system === identity) continue;
    const foreign = known === system ? 'global/pg_control' : name;
    throw notWhole(dataDir, `${PARTS.cluster}/${foreign} belongs to another installation`);
  }
  return identity;
}

/** Returns the name of the log segment that PostgreSQL reads first at its start. */
function redoSegment(control: Buffer, segmentBytes: number): string {
  const timeline = control.readUInt32LE(CONTROL.timeline);
  const number = control.readBigUInt64LE(CONTROL.redo) / BigInt(segmentBytes);
  const perLog = 2n ** 32n / BigInt(segmentBytes);
  const words = [BigInt(timeline), number / perLog, number % perLog];
  return `pg_wal/${words.map((word) => word.toString(16).toUpperCase().padStart(8, '0')).join('')}`;
}

function segments(dataDir: string): string[] {
  const folder = join(embeddedClusterDir(dataDir), 'pg_wal');
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.map((name) => `pg_wal/${name}`).filter((name) => SEGMENT_NAME.test(name));
}

function readPart(dataDir: string, name: string): Buffer {
  return readFileSync(partPath(dataDir, name));
}

function partPath(dataDir: string, name: string): string {
  const path = join(embeddedClusterDir(dataDir), name);
  if (!existsSync(path)) throw notWhole(dataDir, `${PARTS.cluster}/${name} is missing`);
  return path;
}

/** Reads the header of a segment, without its 16 MiB. */
function readHeader(path: string): Buffer {
  const header = Buffer.alloc(SEGMENT.headerBytes);
  const file = openSync(path, 'r');
  try {
    readSync(file, header);
  } finally {
    closeSync(file);
  }
  return header;
}

function damaged(dataDir: string, name: string): Error {
  return notWhole(dataDir, `${PARTS.cluster}/${name} is damaged`);
}

/**
 * The path of the files of a new cluster, in one archive: PostgreSQL's and the schema's, without rows
 * and no secret. `npm run -s cluster` makes it.
 */
export const NEW_CLUSTER = resolve(import.meta.dirname, '../../../schema/cluster.tar.zst');

/**
 * Creates the embedded database if there is none. It is written into a temporary folder, so that a kill leaves nothing
 * half made.
 * @throws StartError if it cannot be written.
 */
export async function ensureCluster(dataDir: string): Promise<void> {
  const cluster = embeddedClusterDir(dataDir);
  if (existsSync(cluster)) return;
  for await (const leftover of glob('postgres.unfinished-*', { cwd: dataDir })) {
    // A folder that cannot be removed yet does no harm: a later start removes it.
    await rm(join(dataDir, leftover), { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
  }
  const unfinished = await mkdtemp(`${cluster}.unfinished-`);
  try {
    writeCluster(unfinished, await promisify(zstdDecompress)(await readFile(NEW_CLUSTER)));
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw new StartError(`could not create the embedded database: ${error instanceof Error ? error.message : error}`);
  }
  await rename(unfinished, cluster);
}

/** Writes the files of a new cluster into a folder, and gives them a new system identifier. */
function writeCluster(dir: string, archive: Buffer): void {
  const identifier = randomBytes(8);
  for (const { name, bytes } of entriesOf(archive)) {
    if (name === 'global/pg_control') {
      identifier.copy(bytes, 0);
      bytes.writeUInt32LE(crc32c(bytes, 0, CONTROL.crc), CONTROL.crc);
    }
    if (SEGMENT_NAME.test(name)) identifier.copy(bytes, SEGMENT.system);
    if (name.endsWith('/')) mkdirSync(join(dir, name), { recursive: true, mode: 0o700 });
    else writeFileSync(join(dir, name), bytes, { mode: 0o600 });
  }
}

/**
 * The length of a block of a tar archive, and the offsets of a name and a size in its headers, in bytes (POSIX ustar).
 */
const TAR = { block: 512, name: 0, size: 124 };

/** Yields the entries of a tar archive: files, and folders, whose names end with a slash. */
function* entriesOf(archive: Buffer): Generator<{ name: string; bytes: Buffer }> {
  for (let at = 0; archive[at]; ) {
    const text = (offset: number) => archive.toString('latin1', at + offset, archive.indexOf(0, at + offset));
    const size = Number.parseInt(text(TAR.size), 8);
    at += TAR.block;
    yield { name: text(TAR.name - TAR.block), bytes: archive.subarray(at, at + size) };
    at += Math.ceil(size / TAR.block) * TAR.block;
  }
}
