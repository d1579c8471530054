import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { runCommand } from '../services/commands.ts';
import { freshDatabase } from '../services/isolation.ts';
import { withPostgres } from '../services/pg-client.ts';
import { DUMP, FIXTURES, KNOWN, type Known } from './known.ts';

/** What a release left behind, in a copy that a later version may change. */
export interface ReleaseData extends AsyncDisposable {
  known: Known;
  dataDir: string;
  /** The database that belongs to it, restored; undefined where it is in the folder. */
  databaseUrl: string | undefined;
}

/** Unpacks a fixture, and restores its database on the provisioned PostgreSQL where it has a dump. */
export async function releaseData(name: 'embedded' | 'server'): Promise<ReleaseData> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-upgrade-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const archive = join(folder, 'fixture.tar');
  await writeFile(archive, zstdDecompressSync(await readFile(join(FIXTURES, `${name}.tar.zst`))));
  await runCommand('tar', ['-xf', archive, '-C', folder]);
  const known: Known = JSON.parse(await readFile(join(folder, KNOWN), 'utf8'));
  let databaseUrl: string | undefined;
  if (name === 'server') {
    const database = stack.use(await freshDatabase());
    const dump = await readFile(join(folder, DUMP), 'utf8');
    await withPostgres(database.url, (client) => client.query(dump));
    databaseUrl = database.url;
  }
  const held = stack.move();
  return { known, dataDir: join(folder, 'data'), databaseUrl, [Symbol.asyncDispose]: () => held.disposeAsync() };
}
