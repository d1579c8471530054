import { openDatabase } from '../database.ts';
import { migrate } from '../migrate.ts';

/** Run as a process of its own: creates an embedded cluster in the folder of its argument and migrates it. */
const [, , dir] = process.argv;
if (dir === undefined) throw new Error('usage: create-cluster DIR');
await using database = await openDatabase({ dataDir: dir });
await migrate(database);
