interface PoolClient {
  query(text: unknown, ...rest: unknown[]): unknown;
}

/** A pool that tells of each connection it has made. */
export interface TimeLimitedPool {
  on(event: 'connect', listener: (client: PoolClient) => void): unknown;
}

/**
 * Ends statements and transactions' statements that are `isWaitedFor` after `timeoutMs` (SQLSTATE 57014); all others have
 * what the server gives them. It is a setting of the session, changed before a statement or a transaction that needs the
 * other one.
 */
export function limitStatements(
  pool: TimeLimitedPool,
  { timeoutMs, isWaitedFor }: { timeoutMs: number; isWaitedFor(statement: unknown): boolean },
): void {
  pool.on('connect', (client) => {
    const query = client.query.bind(client);
    let isLimited = false;
    let isInTransaction = false;
    client.query = (statement, ...rest) => {
      const isSet = isInTransaction || isWaitedFor(statement) === isLimited;
      if (statement === 'begin') isInTransaction = true;
      else if (statement === 'commit' || statement === 'rollback') isInTransaction = false;
      const run = () => query(statement, ...rest);
      if (isSet) return run();
      isLimited = !isLimited;
      // Where the connection has ended, what comes behind it fails by itself.
      return Promise.resolve(query(`set statement_timeout to ${isLimited ? timeoutMs : 'default'}`)).then(run, run);
    };
  });
}
