import { createServer } from 'node:http';
import { PGlite } from '@electric-sql/pglite';

// What any program on PGlite does: it opens a cluster, or makes one, and answers from it.
const [, , dir = '', port = ''] = process.argv;
const database = await PGlite.create(dir);
const server = createServer(async (_req, res) => {
  const { rows } = await database.query('select count(*) from pg_class');
  res.end(JSON.stringify(rows));
});
server.listen(Number(port), '127.0.0.1');
process.once('SIGTERM', async () => {
  server.close();
  server.closeAllConnections();
  await database.close();
});
