import { randomUUID } from 'node:crypto';
import { createWriteStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { withPostgres } from '../../test/support/services/pg-client.ts';
import { tell } from '../lib/report.ts';
import { seedWorld, type World } from '../lib/world.ts';
import { type Counts, importByCopy } from './copy.ts';
import { importByProduct } from './product-import.ts';

export interface Effort {
  rows: number;
  pairs: number;
}

/** Milliseconds of both sides, and the most memory of the product's process. */
export interface Pair {
  productMs: number;
  sqlMs: number;
  residentMb: number;
}

/** One row of a hundred is of an email that another has, one of a hundred was sent its KYC token. */
const EVERY = 100;

/** Imports the same file into a new node each time, by the product and by COPY, one after the other. */
export async function compareImports(world: World, { rows, pairs }: Effort): Promise<Pair[]> {
  await seedWorld(world);
  const url = world.servers.DATABASE_URL ?? '';
  const file = await writeFile(world, rows);
  const measured: Pair[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    const product = await importByProduct(world, file, await newNode(url));
    const sql = await importByCopy(url, file, await newNode(url));
    assertSame(product.counts, sql.counts, rows);
    tell(`${product.ms.toFixed(0)} ms and ${sql.ms.toFixed(0)} ms`);
    measured.push({ productMs: product.ms, sqlMs: sql.ms, residentMb: product.residentMb });
    await settle(url);
  }
  return measured;
}

/** A file of users, of which some are of an email that an earlier one has. */
export async function writeFile({ dataDir }: World, rows: number): Promise<string> {
  const path = join(dataDir, 'users.csv');
  const stream = createWriteStream(path);
  stream.write('wallet_address,email,external_id,name,surname,kyc_sent\n');
  for (let row = 1; row <= rows; row += 1) {
    const of = row % EVERY === 0 ? row - 1 : row;
    const line = `0x${row.toString(16).padStart(40, '0')},User${of}@example.com,ext-${row},Given ${row},Family ${row},${row % EVERY === 1}\n`;
    if (!stream.write(line)) await new Promise((resolve) => stream.once('drain', resolve));
  }
  stream.end();
  await finished(stream);
  tell(`a file of ${(readFileSync(path).length / 1e6).toFixed(1)} MB`);
  return path;
}

/** A node that has nobody. */
export async function newNode(url: string): Promise<string> {
  const id = randomUUID();
  await withPostgres(url, (client) => client.query(`insert into nodes (id, name) values ('${id}', 'Node')`));
  return id;
}

async function settle(url: string): Promise<void> {
  await withPostgres(url, async (client) => {
    await client.query('truncate outbox');
    await client.query('vacuum analyze users, migration_rows, migration_files');
    await client.query('checkpoint');
  });
}

function assertSame(product: Counts, sql: Counts, rows: number): void {
  const told = JSON.stringify([product, sql]);
  if (product.success + product.skipped !== rows || JSON.stringify(product) !== JSON.stringify(sql)) {
    throw new Error(`the two do not come to the same: ${told}`);
  }
}
