import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import type { AuditRecord } from '../src/audit/audit-record.ts';
import { AuditChain, unchained } from '../src/audit/audit-record.ts';
import { AuditStore } from '../src/audit/audit-writer.ts';
import { openDatabase } from '../src/platform/database/open-database.ts';
import { type PostgresClient, withPostgres } from '../test/support/services/pg-client.ts';
import { backendCpu, spentBetween } from './graphql/postgres-cpu.ts';
import { print, type Table } from './lib/report.ts';
import { median } from './lib/statistics.ts';
import { deleteTopics, migrateWorld } from './lib/topics.ts';
import { onEachStores, seedWorld } from './lib/world.ts';

const PAIRS = 7;
const BATCH = 50;
const APPLICATION = 'records';

/** What is inserted, and what PostgreSQL should take for each record at most, in microseconds of CPU. */
const KINDS = [
  { title: 'a body of 16 KiB', bodyBytes: 16 * 1024, batches: 40, aim: 250 },
  { title: 'no body', bodyBytes: 0, batches: 200, aim: 25 },
] as const;

const spooled: string[] = [];
const chain = new AuditChain(randomUUID(), { append: (...lines) => spooled.push(...lines) });

function chainedLine(record: AuditRecord): string {
  chain.append(unchained(record));
  return spooled.pop() ?? '';
}

const WAYS = { copied: chainedLine, parsed: (record: AuditRecord) => JSON.stringify(record) };

/**
 * Measures the CPU that PostgreSQL takes to store an audit record: copied as it is spooled, and parsed as JSON, which is
 * the way of a batch that may be a repetition.
 */
export async function measureRecords(pairs = PAIRS): Promise<Table> {
  const rows: string[][] = [];
  await onEachStores(['servers'], async (world) => {
    await seedWorld(world);
    await migrateWorld(world);
    const url = new URL(world.servers.DATABASE_URL ?? '');
    await withPostgres(url.href, async (client) => {
      url.searchParams.set('application_name', APPLICATION);
      await using database = await openDatabase({ url: url.href });
      const store = new AuditStore(database.db);
      for (const kind of KINDS) rows.push(await rowOf(kind, { client, store, pairs }));
    });
    await deleteTopics(world);
  });
  return {
    head: ['audit record, batches of 50', 'copied, µs', 'aim, µs', 'as JSON, µs', 'ratio', 'of the pairs'],
    rows,
  };
}

interface Measuring {
  client: PostgresClient;
  store: AuditStore;
  pairs: number;
}

async function rowOf({ title, bodyBytes, batches, aim }: (typeof KINDS)[number], measuring: Measuring) {
  const { client, pairs } = measuring;
  const lines = (encode: (record: AuditRecord) => string) =>
    Array.from({ length: batches }, () =>
      Array.from({ length: BATCH }, () => Buffer.from(encode(recordOf(bodyBytes)))),
    );
  const copied: number[] = [];
  const parsed: number[] = [];
  for (let pair = 0; pair <= pairs; pair += 1) {
    copied.push(await spentUs(lines(WAYS.copied), measuring));
    parsed.push(await spentUs(lines(WAYS.parsed), measuring));
  }
  // The first pair warms up.
  const ratios = copied.map((us, index) => us / (parsed[index] ?? Number.NaN)).slice(1);
  const [compression] = (await client.query(COMPRESSION)).rows;
  return [
    `${title}, ${compression?.attcompression === 'l' ? 'LZ4' : 'pglz'}`,
    ...[median(copied.slice(1)), aim, median(parsed.slice(1))].map((us) => us.toFixed(0)),
    median(ratios).toFixed(2),
    `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
  ];
}

const COMPRESSION = `select attcompression from pg_attribute
  where attrelid = 'audit_records'::regclass and attname = 'response_body'`;

async function spentUs(batches: readonly Buffer[][], { client, store }: Measuring): Promise<number> {
  await client.query('truncate audit_records');
  const before = await backendCpu(client, APPLICATION);
  for (const batch of batches) await store.insertAll(batch);
  return (spentBetween(before, await backendCpu(client, APPLICATION)) * 1000) / (batches.length * BATCH);
}

function recordOf(bodyBytes: number): AuditRecord {
  const at = new Date().toISOString();
  const user = () => ({ id: randomUUID(), email: `${randomUUID()}@example.com`, status: 'ACTIVE', created_at: at });
  const body = bodyBytes > 0 ? JSON.stringify({ data: Array.from({ length: bodyBytes / 128 }, user) }) : null;
  const head = { host: '127.0.0.1:4000', accept: '*/*', authorization: '***', 'x-correlation-id': randomUUID() };
  return {
    ...{ at, id: randomUUID(), node_id: NODE_ID, correlation_id: randomUUID(), method: 'GET', path: '/v1/accounts' },
    ...{ query: 'page=1&limit=10', status_code: 200, elapsed: 1.234_567, headers: head, remote_address: '127.0.0.1' },
    ...{ real_ip: '127.0.0.1', request_body: null, request_bytes: 0, response_body: body?.slice(0, bodyBytes) ?? null },
    ...{ response_bytes: bodyBytes, is_api: true, aborted: false },
    ...{ subject: NODE_ID, client_id: NODE_ID, operation: '/v1/accounts', noted_users: null },
  };
}

const NODE_ID = randomUUID();

if (import.meta.main) {
  const { values } = parseArgs({ options: { pairs: { type: 'string', default: `${PAIRS}` } } });
  print(await measureRecords(Number(values.pairs)));
}
