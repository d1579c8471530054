import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { startRelease } from './release-instance.ts';
import { type Crowd, traffic } from './release-traffic.ts';

/**
 * Runs the product of a source tree on `DATA_DIR` (and `DATABASE_URL`), asks it for everything, and dies as a killed process does, so that
 * what is left is what such a death leaves. Arguments: the tree, its version, the file for what it was told.
 */
async function main([tree = '', release = '', knownPath = '']: readonly string[]): Promise<void> {
  const { DATA_DIR = '', DATABASE_URL } = process.env;
  const variables = {
    DATA_DIR,
    PUBLIC_URL: 'https://gate.example',
    ...(DATABASE_URL === undefined ? {} : { DATABASE_URL }),
  };
  const instance = await startRelease(tree, variables);
  const known = await traffic(instance, release, DATABASE_URL === undefined ? alone : crowdOn(tree, DATABASE_URL));
  writeFileSync(knownPath, `${JSON.stringify(known, null, 1)}\n`);
  process.kill(process.pid, 'SIGKILL');
}

/** The embedded database has one connection. */
const alone: Crowd = (_nodeId, act) => act();

/** Another connection holds the lock under which a node's accounts are counted. */
function crowdOn(tree: string, url: string): Crowd {
  return async (nodeId, act) => {
    const { Client } = createRequire(join(tree, 'package.json'))('pg');
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query('begin');
    await client.query('select pg_advisory_xact_lock(72050011, hashtext($1))', [nodeId]);
    await act();
    await client.query('rollback');
    await client.end();
  };
}

await main(process.argv.slice(2));
