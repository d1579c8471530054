import { chmod, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { cached } from './cache.ts';
import { findOnPath, runCommand } from './commands.ts';
import { maven } from './maven.ts';

const ARTIFACT = 'com.github.codemonstur:embedded-redis:1.4.3';

/** Statically linked, so it runs where the first choice finds no OpenSSL 3. */
const FALLBACK: Partial<Record<string, string>> = { 'linux-amd64': 'linux-386' };

/** The path of a `redis-server`: the one of the PATH, else the one for this system out of a Maven artifact, cached. */
export async function redisBinary(): Promise<string> {
  return findOnPath('redis-server') ?? cached('redis-server-embedded-1.4.3', fetchBinary);
}

async function fetchBinary(folder: string): Promise<string> {
  const includes = '-Dmdep.unpack.includes=redis-server-*';
  const args = [`-Dartifact=${ARTIFACT}`, includes, `-DoutputDirectory=${folder}`];
  await maven({ what: 'Redis, since no redis-server is on the PATH,', goal: 'unpack', args, folder });
  const system = `${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`;
  const files = await readdir(folder);
  let reason = 'the artifact has no program for it';
  for (const suffix of [system, FALLBACK[system] ?? '']) {
    const file = files.find((name) => suffix !== '' && name.endsWith(`-${suffix}`));
    if (file === undefined) continue;
    const path = join(folder, file);
    await chmod(path, 0o755);
    try {
      await runCommand(path, ['--version']);
      await rename(path, join(folder, 'redis-server'));
      return join(folder, 'redis-server');
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error);
    }
  }
  throw new Error(`${ARTIFACT} does not serve ${system}: ${reason}`);
}
