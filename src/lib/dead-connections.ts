interface PoolClient {
  query(text: unknown, ...rest: unknown[]): unknown;
  end(): Promise<void>;
  release(error: unknown): void;
}

/** A pool that tells of each connection it has made. */
export interface ConnectingPool {
  on(event: 'connect', listener: (client: PoolClient) => void): unknown;
}

/**
 * Gives back what the query builder keeps: it releases a connection neither when its `begin` nor when its `rollback`
 * fails, and a pool that has met a few dead servers would be empty for good. A connection whose `begin` fails leaves
 * the pool, and the error is thrown on. A session that has died is rolled back by PostgreSQL itself, so that such a
 * `rollback` succeeds here, and its connection is ended, which the pool then replaces.
 */
export function releaseDeadConnections(pool: ConnectingPool): void {
  pool.on('connect', (client) => {
    const query = client.query.bind(client);
    client.query = (text, ...rest) => {
      const result = query(text, ...rest);
      if (!(result instanceof Promise)) return result;
      if (text === 'begin') {
        return result.catch((error) => {
          client.release(error);
          throw error;
        });
      }
      if (text === 'rollback') {
        return result.catch(() => {
          client.end().catch(() => undefined);
          return { command: 'ROLLBACK', rowCount: null, oid: 0, rows: [], fields: [] };
        });
      }
      return result;
    };
  });
}
