import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { glob, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32c } from '../../lib/crc32c.ts';
import { embeddedClusterDir, notWhole, PARTS } from '../config/data-dir.ts';
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
    throw strange(dataDir, known === system ? 'global/pg_control' : name);
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
  return names.filter((name) => /^[0-9A-F]{24}$/.test(name)).map((name) => `pg_wal/${name}`);
}

function readPart(dataDir: string, name: string): Buffer {
  return readFileSync(partPath(dataDir, name));
}

function partPath(dataDir: string, name: string): string {
  const path = join(embeddedClusterDir(dataDir), name);
  if (!existsSync(path)) throw notWhole(dataDir, `${PARTS.cluster}/${name} is gone`);
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

function strange(dataDir: string, name: string): Error {
  return notWhole(dataDir, `${PARTS.cluster}/${name} is of another instance`);
}

const CHILD = join(import.meta.dirname, 'create-cluster.ts');

/**
 * Creates the embedded database if there is none. A child process does so, since initialising it would cost this
 * process some 100 MB for good; it works in a temporary folder, so that a kill leaves nothing half made.
 * @throws StartError if the child fails.
 */
export async function ensureCluster(dataDir: string): Promise<void> {
  const cluster = embeddedClusterDir(dataDir);
  if (existsSync(cluster)) return;
  // Each attempt has a folder of its own: after a kill, the child of the previous start may still write to its folder.
  for await (const left of glob('postgres.unfinished-*', { cwd: dataDir })) {
    // A folder that cannot be removed yet does no harm: a later start removes it.
    await rm(join(dataDir, left), { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
  }
  let unfinished = await makeCluster(cluster);
  // A signal that this process obeys only after its start may have ended the child as well: try once more.
  unfinished ??= await makeCluster(cluster);
  if (unfinished === undefined) throw new StartError('the embedded database could not be made: it was interrupted');
  await rename(unfinished, cluster);
}

/**
 * Makes a cluster in a new folder, by a child process, and returns the folder's path; undefined if SIGINT or SIGTERM
 * ended the child. @throws StartError if the child fails for another reason.
 */
async function makeCluster(cluster: string): Promise<string | undefined> {
  const dir = await mkdtemp(`${cluster}.unfinished-`);
  // A process group of its own keeps Ctrl-C in a terminal from ending the child; until the group exists, the signal
  // still reaches it.
  // The child lives too short for optimised WebAssembly code to pay: a third less CPU.
  const child = spawn(process.execPath, ['--liftoff-only', CHILD, dir], {
    stdio: ['pipe', 'ignore', 'pipe'],
    detached: true,
  });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  const { promise, resolve, reject } = Promise.withResolvers<{ code: number | null; signal: NodeJS.Signals | null }>();
  child.once('error', reject).once('close', (code, signal) => resolve({ code, signal }));
  const { code, signal } = await promise;
  if (code === 0) return dir;
  await rm(dir, { recursive: true, force: true });
  if (signal === 'SIGINT' || signal === 'SIGTERM') return undefined;
  throw new StartError(`the embedded database could not be made: ${complaint.trim() || `exit ${code ?? signal}`}`);
}
