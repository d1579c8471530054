import { createRequire } from 'node:module';

export interface PostgresClient {
  connect(): Promise<void>;
  query(sql: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
}

interface PostgresModule {
  Client: new (options: { connectionString: string }) => PostgresClient;
}

/** Calls `use` with one connection of the driver that MikroORM brings, and closes it. */
export async function withPostgres<T>(url: string, use: (client: PostgresClient) => Promise<T>): Promise<T> {
  // The driver comes without types.
  const { Client } = createRequire(import.meta.url)('pg') as PostgresModule;
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
