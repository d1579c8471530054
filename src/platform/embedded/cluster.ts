import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { glob, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32c } from '../../lib/crc32c.ts';
import { embeddedClusterDir, notWhole, PARTS } from '../config/data-dir.ts';
import { StartError } from '../errors.ts';

/** The release of PostgreSQL that PGlite is. */
const MAJOR = 18;

/** Where things stand in `global/pg_control` (src/include/catalog/pg_control.h of that release). */
const CONTROL = { bytes: 8192, redo: 40, timeline: 48, segmentBytes: 228, crc: 292 };

/** Where they stand in the long header of a segment's first page (src/include/access/xlog_internal.h). */
const SEGMENT = { address: 8, system: 24, headerBytes: 40 };

/**
 * The system identifier of the embedded cluster, which its control file and each segment of its log have. What must be
 * whole before PostgreSQL may open it is looked at: it would make a new cluster over some of the damage. `known` is the
 * identifier that the rest of the folder has, by which it is known which part is of another instance.
 * @throws StartError that names the file that is gone, damaged, or of another instance.
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
    const segment = readPart(dataDir, name);
    const system = segment.length === segmentBytes ? `${segment.readBigUInt64LE(SEGMENT.system)}` : undefined;
    // Segments are made ahead of their use, out of zeros.
    const isUnused =
      system === '0' && name !== redo && segment.subarray(0, SEGMENT.headerBytes).every((byte) => byte === 0);
    if (system === undefined || (system === '0' && !isUnused)) throw damaged(dataDir, name);
    if (isUnused || system === identity) continue;
    throw strange(dataDir, known === system ? 'global/pg_control' : name);
  }
  return identity;
}

/** The segment that a start of the cluster reads first. */
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
  const path = join(embeddedClusterDir(dataDir), name);
  if (!existsSync(path)) throw notWhole(dataDir, `${PARTS.cluster}/${name} is gone`);
  return readFileSync(path);
}

function damaged(dataDir: string, name: string): Error {
  return notWhole(dataDir, `${PARTS.cluster}/${name} is damaged`);
}

function strange(dataDir: string, name: string): Error {
  return notWhole(dataDir, `${PARTS.cluster}/${name} is of another instance`);
}

const CHILD = join(import.meta.dirname, 'create-cluster.ts');

/**
 * Makes the embedded database where there is none yet. A child process does it, since initialising in this one would
 * keep some 100 MB for good; it works beside the final place, so that a kill leaves nothing half made.
 */
export async function ensureCluster(dataDir: string): Promise<void> {
  const cluster = embeddedClusterDir(dataDir);
  if (existsSync(cluster)) return;
  // A folder of its own each time: after a kill the child of the previous start may still be writing to another one.
  for await (const left of glob('postgres.unfinished-*', { cwd: dataDir })) {
    // It is in nobody's way: one that cannot be removed yet is removed by a later start.
    await rm(join(dataDir, left), { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
  }
  let unfinished = await makeCluster(cluster);
  // What ends this process once it has started may have been sent to the child as well; it is then made once more.
  unfinished ??= await makeCluster(cluster);
  if (unfinished === undefined) throw new StartError('the embedded database could not be made: it was interrupted');
  await rename(unfinished, cluster);
}

/** Gives the folder that a child has made the cluster in; undefined where SIGINT or SIGTERM ended the child. */
async function makeCluster(cluster: string): Promise<string | undefined> {
  const dir = await mkdtemp(`${cluster}.unfinished-`);
  // In a group of its own: Ctrl-C in a terminal is for the process that decides what it ends. Until it has one, it gets it too.
  const child = spawn(process.execPath, [CHILD, dir], { stdio: ['pipe', 'ignore', 'pipe'], detached: true });
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
