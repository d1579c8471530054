import { Gauge, type Metric } from 'prom-client';
import { BoundHistogram, type Durations } from './bound-histogram.ts';
import { sqlState } from './sql-state.ts';
import type { TurnsByNode } from './turns-by-node.ts';

interface TimedClient {
  query(text: unknown, ...rest: unknown[]): unknown;
}

/** A pool of connections that tells how many there are. */
export interface CountedPool {
  readonly totalCount: number;
  readonly idleCount: number;
  on(event: 'connect', listener: (client: TimedClient) => void): unknown;
}

const OPERATIONS: ReadonlySet<string> = new Set([
  ...['select', 'insert', 'update', 'delete', 'with'],
  ...['begin', 'commit', 'rollback', 'savepoint', 'release'],
]);
const LONGEST = 9;

/** What an operator sees of the connections to PostgreSQL and of what is asked over them. */
export class DatabaseMetrics {
  readonly metrics: readonly Metric[];
  readonly #statements = new BoundHistogram({
    name: 'db_client_operation_duration_seconds',
    help: 'How long PostgreSQL took to answer statements, by their first word and SQLSTATE of their error.',
    labelNames: ['db_operation_name', 'error_type'],
  });
  readonly #answered = new Map<string, Durations>();
  #pool: CountedPool | undefined;

  /** `max` is how many connections there may be, `turns` what stands before them. */
  constructor(max: number, turns: Pick<TurnsByNode, 'waiting'>) {
    this.metrics = [
      this.#statements,
      this.#gauge({
        // `db_client_connection_count` in the conventions: that ending is taken by histograms.
        name: 'db_client_connections',
        help: 'Connections to PostgreSQL, by whether they are in use.',
        labelNames: ['db_client_connection_state'],
        collect: (gauge, { totalCount, idleCount }) => {
          gauge.set({ db_client_connection_state: 'idle' }, idleCount);
          gauge.set({ db_client_connection_state: 'used' }, totalCount - idleCount);
        },
      }),
      this.#gauge({
        name: 'db_client_connection_max',
        help: 'The most connections to PostgreSQL that there may be.',
        collect: (gauge) => gauge.set(max),
      }),
      this.#gauge({
        name: 'db_client_connection_pending_requests',
        help: 'Statements and transactions that wait for a connection to PostgreSQL.',
        collect: (gauge) => gauge.set(turns.waiting()),
      }),
    ];
  }

  /** Counts what goes over a pool from now on. */
  watch(pool: CountedPool): void {
    this.#pool = pool;
    pool.on('connect', (client) => this.#time(client));
  }

  #gauge<Label extends string>({
    collect,
    labelNames = [],
    ...options
  }: {
    name: string;
    help: string;
    labelNames?: Label[];
    collect(gauge: Gauge<Label>, pool: CountedPool): void;
  }): Gauge<Label> {
    const poolOf = () => this.#pool;
    return new Gauge<Label>({
      ...options,
      labelNames,
      registers: [],
      collect() {
        const pool = poolOf();
        // Before the first statement there is none.
        collect(this, pool ?? { totalCount: 0, idleCount: 0, on: () => undefined });
      },
    });
  }

  #time(client: TimedClient): void {
    const query = client.query.bind(client);
    client.query = (text, ...rest) => {
      const startedTick = performance.now();
      const done = (error?: unknown) => this.#observe(text, error, (performance.now() - startedTick) / 1_000);
      const last = rest.at(-1);
      if (typeof last === 'function') {
        const told = (error: unknown, ...others: unknown[]) => {
          done(error);
          last(error, ...others);
        };
        return query(text, ...rest.slice(0, -1), told);
      }
      const result = query(text, ...rest);
      if (result instanceof Promise) result.then(() => done(), done);
      return result;
    };
  }

  #observe(statement: unknown, error: unknown, seconds: number): void {
    const operation = operationOf(statement);
    const errorType = error ? (sqlState(error) ?? 'connection') : '';
    if (errorType === '') {
      let series = this.#answered.get(operation);
      if (!series) {
        series = this.#statements.bind({ db_operation_name: operation, error_type: '' });
        this.#answered.set(operation, series);
      }
      series.observe(seconds);
    } else this.#statements.bind({ db_operation_name: operation, error_type: errorType }).observe(seconds);
  }
}

/** The first word of a statement, of those that are known. */
function operationOf(statement: unknown): string {
  const text = typeof statement === 'object' && statement !== null && 'text' in statement ? statement.text : statement;
  if (typeof text !== 'string') return 'other';
  const [word = ''] = text
    .trimStart()
    .slice(0, LONGEST)
    .toLowerCase()
    .split(/[^a-z]/, 1);
  return OPERATIONS.has(word) ? word : 'other';
}
