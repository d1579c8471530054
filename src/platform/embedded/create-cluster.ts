import { enableCompileCache } from 'node:module';

/**
 * Runs as a process of its own: creates an embedded cluster in the folder given as argument, with the current schema.
 */
enableCompileCache();
const [, , dir] = process.argv;
if (dir === undefined) throw new Error('usage: create-cluster DIR');
// The pipe closes when the parent process ends, and the cluster is then no longer needed.
process.stdin.resume().once('end', () => process.exit(1));
const [{ openDatabase }, { migrate }] = await Promise.all([
  import('../database/database.ts'),
  import('../database/schema-migrations.ts'),
]);
await using database = await openDatabase({ dataDir: dir });
await migrate(database);
process.stdin.destroy();
