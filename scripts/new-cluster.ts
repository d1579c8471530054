import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { constants, zstdCompressSync } from 'node:zlib';
import { openDatabase, SCHEMA_MIGRATIONS } from '../src/platform/database/open-database.ts';
import { migrate } from '../src/platform/database/schema-migrations.ts';
import { SEGMENT_NAME } from '../src/platform/embedded/cluster.ts';

/** What a new cluster is made of: another one of these needs another cluster. */
export interface ClusterOrigin {
  pglite: string;
  migrations: Record<string, string>;
}

/** Returns the PGlite and the migrations that a new cluster would have now, each with the SHA-256 of its text. */
export function clusterOrigin(): ClusterOrigin {
  const manifest = new URL('../package.json', import.meta.resolve('@electric-sql/pglite'));
  const paths = globSync(join(SCHEMA_MIGRATIONS, 'migration-*.ts')).sort();
  const hash = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');
  return {
    pglite: JSON.parse(readFileSync(manifest, 'utf8')).version,
    migrations: Object.fromEntries(paths.map((path) => [basename(path, '.ts'), hash(path)])),
  };
}

/** Finds what the three databases of a cluster have in common, 8 MB apart. */
const SMALL = {
  [constants.ZSTD_c_compressionLevel]: 19,
  [constants.ZSTD_c_enableLongDistanceMatching]: 1,
  [constants.ZSTD_c_windowLog]: 25,
};

/** Makes a cluster with the current schema, and gives its files in one compressed archive. */
export async function newClusterArchive(): Promise<Buffer> {
  const dir = await mkdtemp(join(tmpdir(), 'portcullis-cluster-'));
  try {
    await makeCluster(dir);
    return zstdCompressSync(tarOf(dir), { params: SMALL });
  } finally {
    await rm(dir, { recursive: true });
  }
}

async function makeCluster(dir: string): Promise<void> {
  await using database = await openDatabase({ dataDir: dir });
  await migrate(database);
  // Resets the log, so that the segment that a start reads is almost empty.
  const door = database.db.unscoped('the files of a cluster are global');
  await door.raw((sql) => sql`vacuum`);
  await door.raw((sql) => sql`select pg_switch_wal()`);
  await door.raw((sql) => sql`checkpoint`);
}

const BLOCK = 512;

/** Gives the folders and files below a folder in a tar archive; of the write-ahead log only the first segment. */
function tarOf(dir: string): Buffer {
  const names = globSync('**', { cwd: dir })
    .filter((name) => name !== '.' && name !== '')
    .sort();
  const [, ...laterSegments] = names.filter((name) => SEGMENT_NAME.test(name));
  const kept = names.filter((name) => !laterSegments.includes(name));
  return Buffer.concat([...kept.flatMap((name) => entryOf(dir, name)), Buffer.alloc(2 * BLOCK)]);
}

function entryOf(dir: string, name: string): Buffer[] {
  const path = join(dir, name);
  const isFolder = statSync(path).isDirectory();
  const bytes = isFolder ? Buffer.alloc(0) : readFileSync(path);
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0');
  if (header.write(isFolder ? `${name}/` : name, 0, 'latin1') > 99)
    throw new Error(`${name} is too long for the archive`);
  header.write(octal(isFolder ? 0o700 : 0o600, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(bytes.length, 11), 124);
  header.write(octal(0, 11), 136);
  header.write(isFolder ? '5' : '0', 156);
  header.write('ustar\u000000', 257);
  header.fill(' ', 148, 156);
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\u0000`,
    148,
  );
  return [header, bytes, Buffer.alloc(-bytes.length & (BLOCK - 1))];
}

/** Reads the description of the committed cluster in `schema/cluster.json`; undefined if there is none. */
export function readOrigin(path: string): unknown {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}
