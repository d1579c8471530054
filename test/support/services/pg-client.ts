import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';

export interface PostgresClient {
  connect(): Promise<void>;
  query(sql: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
}

interface PostgresModule {
  Client: new (options: { connectionString: string }) => PostgresClient;
}

/** One connection of the driver that MikroORM brings; disposing closes it. */
export async function connectPostgres(url: string): Promise<PostgresClient & AsyncDisposable> {
  // The driver comes without types.
  const { Client } = createRequire(import.meta.url)('pg') as PostgresModule;
  const client = new Client({ connectionString: url });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

/** Calls `use` with one connection, and closes it. */
export async function withPostgres<T>(url: string, use: (client: PostgresClient) => Promise<T>): Promise<T> {
  await using client = await connectPostgres(url);
  return await use(client);
}

/** The database of a run of the tests that holds a started instance's rows, to be copied. */
export function startedDatabase(runFolder: string): string {
  return `portcullis_started_${createHash('sha256').update(runFolder).digest('hex').slice(0, 16)}`;
}

export async function dropDatabase(url: string, name: string): Promise<void> {
  await withPostgres(url, (client) => client.query(`drop database if exists ${name} with (force)`));
}
