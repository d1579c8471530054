import { enableCompileCache } from 'node:module';

/** Run as a process of its own: creates an embedded cluster in the folder of its argument and migrates it. */
enableCompileCache();
const [, , dir] = process.argv;
if (dir === undefined) throw new Error('usage: create-cluster DIR');
// The other end of the pipe closes with the process that asked: nobody then wants the cluster.
process.stdin.resume().once('end', () => process.exit(1));
const [{ openDatabase }, { migrate }] = await Promise.all([
  import('../database/database.ts'),
  import('../database/schema-migrations.ts'),
]);
await using database = await openDatabase({ dataDir: dir });
await migrate(database);
process.stdin.destroy();
