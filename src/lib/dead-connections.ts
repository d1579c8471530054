interface PoolClient {
  query(text: unknown, ...rest: unknown[]): unknown;
  end(): Promise<void>;
}

/** A pool that tells of each connection it has made. */
export interface ConnectingPool {
  on(event: 'connect', listener: (client: PoolClient) => void): unknown;
}

/**
 * A session that has died is rolled back by PostgreSQL itself. The query builder keeps a connection whose `rollback`
 * fails, and soon the pool would be empty: here it succeeds, and the connection is ended, which the pool then replaces.
 */
export function settleRollbacks(pool: ConnectingPool): void {
  pool.on('connect', (client) => {
    const query = client.query.bind(client);
    client.query = (text, ...rest) => {
      const result = query(text, ...rest);
      if (text !== 'rollback' || !(result instanceof Promise)) return result;
      return result.catch(() => {
        client.end().catch(() => undefined);
        return { command: 'ROLLBACK', rowCount: null, oid: 0, rows: [], fields: [] };
      });
    };
  });
}
