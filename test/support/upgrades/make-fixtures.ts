import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constants, zstdCompressSync } from 'node:zlib';
import { runCommand } from '../services/commands.ts';
import { dropDatabase, withPostgres } from '../services/pg-client.ts';
import { DUMP, FIXTURES, KNOWN } from './known.ts';

const RELEASE = { version: '0.1.0', commit: '6003582' };

/**
 * Makes the fixtures anew: `node test/support/upgrades/make-fixtures.ts`, with `DATABASE_URL` of a PostgreSQL that the `pg_dump` of the PATH can read.
 * The code of the release itself runs, in a copy of its source with its own packages.
 */
async function main(): Promise<void> {
  const server = process.env.DATABASE_URL;
  if (server === undefined) throw new Error('DATABASE_URL must name a PostgreSQL of which pg_dump can make a dump');
  const tree = join(tmpdir(), `portcullis-release-${RELEASE.commit}`);
  if (!existsSync(join(tree, 'node_modules'))) await makeTree(tree);
  await mkdir(FIXTURES, { recursive: true });
  await make(tree, 'embedded', undefined);
  const name = `release_${randomBytes(6).toString('hex')}`;
  await withPostgres(server, (client) => client.query(`create database ${name} template template0`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  await make(tree, 'server', url.href);
  await dropDatabase(server, name);
}

async function makeTree(tree: string): Promise<void> {
  await mkdir(tree, { recursive: true });
  const archive = join(tree, 'source.tar');
  await runCommand('git', ['archive', '--output', archive, RELEASE.commit]);
  await runCommand('tar', ['-xf', archive, '-C', tree]);
  await runCommand('npm', ['ci', '--no-audit', '--no-fund'], { cwd: tree });
}

async function make(tree: string, name: string, databaseUrl: string | undefined): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-fixture-'));
  const database = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
  const program = join(import.meta.dirname, 'release-data.ts');
  const args = ['--disable-warning=ExperimentalWarning', program, tree, RELEASE.version, join(folder, KNOWN)];
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, DATA_DIR: join(folder, 'data'), ...database };
  const { signal } = spawnSync(process.execPath, args, { env, stdio: 'inherit' });
  if (signal !== 'SIGKILL') throw new Error('it did not come to its end');
  if (databaseUrl !== undefined) {
    const dump = await runCommand('pg_dump', [
      '--no-owner',
      '--no-privileges',
      '--inserts',
      '--rows-per-insert=100',
      databaseUrl,
    ]);
    await writeFile(join(folder, DUMP), plainSql(dump));
  }
  const archive = join(folder, '..', `${name}-${randomBytes(4).toString('hex')}.tar`);
  await runCommand('tar', [
    '-cf',
    archive,
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '-C',
    folder,
    '.',
  ]);
  const params = {
    [constants.ZSTD_c_compressionLevel]: 19,
    [constants.ZSTD_c_enableLongDistanceMatching]: 1,
    [constants.ZSTD_c_windowLog]: 25,
  };
  await writeFile(join(FIXTURES, `${name}.tar.zst`), zstdCompressSync(await readFile(archive), { params }));
  await rm(archive);
  await rm(folder, { recursive: true });
}

/** A dump as a driver runs it: without the commands of psql, and with nothing that another version of the server does not know. */
function plainSql(dump: string): string {
  return dump
    .split('\n')
    .filter(
      (line) =>
        !/^\\(?:un)?restrict |^SET transaction_timeout|^SELECT pg_catalog\.set_config\('search_path'/.test(line),
    )
    .join('\n');
}

await main();
