import fc from 'fast-check';
import type { ExpressionBuilder, ExpressionWrapper, JoinBuilder, Kysely, SelectQueryBuilder, SqlBool } from 'kysely';

type AnyTables = Record<string, Record<string, string>>;
type Untyped = Kysely<AnyTables>;
type Select = SelectQueryBuilder<AnyTables, string, Record<string, string>>;
type Eb = ExpressionBuilder<AnyTables, string>;

/** The UUID columns of what a query can read from; a query itself gives `c0` and `c1`. */
const COLUMNS: Record<string, readonly string[]> = {
  accounts: ['id'],
  users: ['id'],
  assets: ['id', 'network_id'],
  wallets: ['id', 'account_id', 'chain_id'],
  wallet_networks: ['wallet_id', 'network_id'],
  networks: ['id', 'chain_id'],
};
const OWN_COLUMNS = ['c0', 'c1'];

/** Where a query reads from: a table, a subquery, or the query before it in a common table. */
type Source = { table: string } | { query: RandomQuery };
type Pick = readonly [source: number, column: number];
type Condition =
  | { kind: 'compare'; op: '=' | '<>' | '<'; left: Pick; right: Pick }
  | { kind: 'null'; pick: Pick }
  | { kind: 'not'; of: Condition }
  | { kind: 'and' | 'or'; of: readonly Condition[] }
  | { kind: 'exists' | 'in'; pick: Pick; query: RandomQuery };

export interface RandomQuery {
  from: readonly Source[];
  joins: readonly { type: 'inner' | 'left' | 'cross'; source: Source; on: Condition }[];
  where: readonly Condition[];
  picks: readonly [Pick, Pick];
  union: { op: 'union' | 'except' | 'intersect'; query: RandomQuery } | null;
  /** Whether the query stands in a common table of which it is read. */
  isCommon: boolean;
}

// Queries nest, and what they read is multiplied: a little depth is much.
const depth = { depthIdentifier: 'query', maxDepth: 3, depthSize: 'small', withCrossShrink: true } as const;
const pick = fc.tuple(fc.nat(7), fc.nat(7));

const { query, condition } = fc.letrec<{
  query: RandomQuery;
  source: Source;
  condition: Condition;
}>((tie) => ({
  query: fc.record({
    from: fc.array(tie('source'), { minLength: 1, maxLength: 2 }),
    joins: fc.array(
      fc.record({ type: fc.constantFrom('inner', 'left', 'cross'), source: tie('source'), on: tie('condition') }),
      { maxLength: 2, depthIdentifier: 'query' },
    ),
    where: fc.array(tie('condition'), { maxLength: 1 }),
    picks: fc.tuple(pick, pick),
    union: fc.option(fc.record({ op: fc.constantFrom('union', 'except', 'intersect'), query: tie('query') }), {
      freq: 3,
      depthIdentifier: 'query',
      maxDepth: 2,
      depthSize: 'small',
    }),
    isCommon: fc.boolean(),
  }),
  source: fc.oneof(
    depth,
    fc.record({ table: fc.constantFrom(...Object.keys(COLUMNS)) }),
    fc.record({ query: tie('query') }),
  ),
  condition: fc.oneof(
    depth,
    fc.record({ kind: fc.constant('compare'), op: fc.constantFrom('=', '<>', '<>', '<'), left: pick, right: pick }),
    fc.record({ kind: fc.constant('null'), pick }),
    fc.record({ kind: fc.constant('not'), of: tie('condition') }),
    fc.record({ kind: fc.constantFrom('and', 'or'), of: fc.array(tie('condition'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ kind: fc.constantFrom('exists', 'in'), pick, query: tie('query') }),
  ),
}));

/** How many rows each table has in the sight of a query that sees both nodes. */
const ROWS: Record<string, number> = { accounts: 6, users: 4, assets: 4, wallets: 6, wallet_networks: 4, networks: 3 };
/** The most rows that a query may go through: what joins multiply can be more than fits into memory. */
const MOST_ROWS = 1_000_000;

/** How many rows a query goes through at most, those of the queries in its conditions for each of its own. */
function rowsOf({ from, joins, where, union }: RandomQuery): number {
  const sources = [...from, ...joins.map(({ source }) => source)];
  const conditions = [...where, ...joins.map(({ on }) => on)];
  const own = sources
    .map((source) => ('table' in source ? (ROWS[source.table] ?? 0) : rowsOf(source.query)))
    .reduce((all, rows) => all * rows, 1);
  return own * (1 + rowsOfAll(conditions)) + (union ? rowsOf(union.query) : 0);
}

function rowsOfAll(conditions: readonly Condition[]): number {
  return conditions.reduce((sum, each) => sum + rowsOfOne(each), 0);
}

function rowsOfOne(condition: Condition): number {
  if ('query' in condition) return rowsOf(condition.query);
  if (!('of' in condition)) return 0;
  return rowsOfAll(condition.kind === 'not' ? [condition.of] : condition.of);
}

export const randomQuery = query.filter((each) => rowsOf(each) <= MOST_ROWS);
export const randomCondition = condition.filter((each) => rowsOfOne(each) <= MOST_ROWS);

interface Scope {
  alias: string;
  columns: readonly string[];
}

/** Writes a random query down with Kysely's builders. */
export class QueryWriter {
  readonly #k: Untyped;
  #aliases = 0;

  constructor(k: Untyped) {
    this.#k = k;
  }

  select(query: RandomQuery, outer: readonly Scope[] = []): Select {
    // A common table cannot see the query around it.
    if (query.isCommon) {
      const name = this.#alias();
      const inner = this.#plain(query, []);
      return this.#k
        .with(name, () => inner)
        .selectFrom(name)
        .select(OWN_COLUMNS) as Select;
    }
    return this.#plain(query, outer);
  }

  condition(eb: Eb, condition: Condition, scopes: readonly Scope[]): ExpressionWrapper<AnyTables, string, SqlBool> {
    switch (condition.kind) {
      case 'compare':
        return eb(nameOf(condition.left, scopes), condition.op, eb.ref(nameOf(condition.right, scopes)));
      case 'null':
        return eb(nameOf(condition.pick, scopes), 'is', null);
      case 'not':
        return eb.not(this.condition(eb, condition.of, scopes));
      case 'and':
      case 'or':
        return eb[condition.kind](condition.of.map((of) => this.condition(eb, of, scopes)));
      case 'exists':
        return eb.exists(this.select(condition.query, scopes));
      case 'in': {
        const alias = this.#alias();
        const rows = this.#k.selectFrom(this.select(condition.query, scopes).as(alias)).select(`${alias}.c0`);
        return eb(nameOf(condition.pick, scopes), 'in', rows);
      }
      default:
        return condition satisfies never;
    }
  }

  scope(table: string): Scope & { name: string } {
    const alias = this.#alias();
    return { alias, name: `${table} as ${alias}`, columns: COLUMNS[table] ?? [] };
  }

  #plain(query: RandomQuery, outer: readonly Scope[]): Select {
    const froms = query.from.map((source) => this.#source(source));
    let built = this.#k.selectFrom(froms.map(({ expression }) => expression)) as unknown as Select;
    const own = froms.map(({ scope }) => scope);
    for (const { type, source, on } of query.joins) {
      const joined = this.#source(source);
      own.push(joined.scope);
      // A join sees the last of `from` and what was joined before it.
      const seen = own.slice(froms.length - 1);
      built = this.#joined(built, type, joined.expression as 'any', (eb) => this.condition(eb, on, seen));
    }
    for (const condition of query.where) {
      built = built.where((eb) => this.condition(eb, condition, [...own, ...outer]));
    }
    const selected = built.select(query.picks.map((at, index) => `${nameOf(at, own)} as c${index}`)) as Select;
    return query.union ? selected[query.union.op](this.#plain(query.union.query, [])) : selected;
  }

  #joined(
    query: Select,
    type: 'inner' | 'left' | 'cross',
    source: string,
    on: (eb: Eb) => ExpressionWrapper<AnyTables, string, SqlBool>,
  ): Select {
    if (type === 'cross') return query.crossJoin(source) as unknown as Select;
    const join = type === 'inner' ? query.innerJoin : query.leftJoin;
    return join.call(query, source, (builder: JoinBuilder<AnyTables, string>) => builder.on(on)) as unknown as Select;
  }

  #source(source: Source) {
    if ('table' in source) {
      const scope = this.scope(source.table);
      return { scope, expression: scope.name };
    }
    const alias = this.#alias();
    return { scope: { alias, columns: OWN_COLUMNS }, expression: this.select(source.query).as(alias) };
  }

  #alias(): string {
    this.#aliases += 1;
    return `t${this.#aliases}`;
  }
}

function nameOf([source, column]: Pick, scopes: readonly Scope[]): string {
  const scope = scopes[source % scopes.length];
  return `${scope?.alias}.${scope?.columns[column % scope.columns.length]}`;
}
