import type {
  Compilable,
  Expression,
  ExpressionBuilder,
  ReferenceExpression,
  SelectQueryBuilder,
  SqlBool,
  StringReference,
} from 'kysely';
import type { FormedQuery } from '../../lib/fast/prepared-query.ts';
import { isUuid } from '../../lib/input.ts';
import { newestFirst, type Page, type PageKey, type PageRequest, pageOf, pageRead } from '../../lib/keyset.ts';
import type { Db, ScopedKysely, ScopedTables } from './database.ts';

/** Returns the `like` pattern for texts that contain `part`, with its `\`, `%` and `_` escaped. */
export function containing(part: string): string {
  return `%${startingWith(part)}`;
}

/** Returns the `like` pattern for texts that start with `part`. */
export function startingWith(part: string): string {
  return `${part.replaceAll(/[\\%_]/g, '\\$&')}%`;
}

/**
 * Returns the condition that a column has one of the values. They are a single array parameter, so that the statement's
 * text does not depend on their number.
 */
export function isOneOf<DB, TB extends keyof DB>(
  eb: ExpressionBuilder<DB, TB>,
  column: ReferenceExpression<DB, TB>,
  values: readonly string[],
): Expression<SqlBool> {
  return eb(column, '=', eb.fn.any(eb.val(values)) as never);
}

/**
 * Restricts a query to the rows of a request, and sorts it in the direction in which the page is read. `at` and `id` name the
 * columns of the sort key; `id` is left out where `at` alone is unique.
 */
export function keysetPage<DB, TB extends keyof DB, Row>(
  query: SelectQueryBuilder<DB, TB, Row>,
  { after, before, backward, size }: PageRequest,
  [at, id]: readonly [at: StringReference<DB, TB>, id?: StringReference<DB, TB> | undefined],
): SelectQueryBuilder<DB, TB, Row> {
  const direction = backward ? 'desc' : 'asc';
  // The casts are needed because the types of a generic table's columns are unknown here.
  const beyond = (operator: '>' | '<', key: PageKey) => (q: typeof query) =>
    q.where((eb) =>
      id === undefined
        ? eb(at, operator, key.at as never)
        : eb(eb.refTuple(at, id), operator, eb.tuple(key.at, key.id) as never),
    );
  return query
    .$call(after === undefined ? (q) => q : beyond('>', after))
    .$call(before === undefined ? (q) => q : beyond('<', before))
    .orderBy(at, direction)
    .$call((q) => (id === undefined ? q : q.orderBy(id, direction)))
    .limit(size);
}

/** Builds the query for all rows that a list can have, with every column that is read. */
type Rows<DB, TB extends keyof DB, Row> = (k: ScopedKysely) => SelectQueryBuilder<DB, TB, Row>;

/** The type used for the rows of any list, since only the list's own declaration knows their columns. */
interface AnyRow {
  column: string;
}

type Listed = SelectQueryBuilder<ScopedTables & { listed: AnyRow }, 'listed', object>;

function listedRows<DB, TB extends keyof DB, Row>(k: ScopedKysely, rows: Rows<DB, TB, Row>): Listed {
  const query: unknown = k.selectFrom(rows(k).as('listed'));
  return query as Listed;
}

/** Returns the name of a column, qualified by the table alias `of` and typed as the column of `AnyRow`. */
function columnOf<Of extends string>(of: Of, name: string): `${Of}.column` {
  return `${of}.${name}` as `${Of}.column`;
}

interface ListSpec<DB, TB extends keyof DB, Row, Given, Filter, Shown> {
  rows: Rows<DB, TB, Row>;
  /** Returns the values of a filter that are passed to `where`; if absent, the filter itself is passed. */
  valuesOf?(filter: Filter): Given;
  /**
   * Returns the conditions of a filter, all of which a row must meet. It cannot compute with the values, which are
   * placeholders while the query is compiled.
   */
  where?(eb: ExpressionBuilder<ScopedTables & { listed: Row }, 'listed'>, values: Given): Expression<SqlBool>[];
  /** Whether only its values tell how many rows match a filter: PostgreSQL then plans the query for them. */
  isSkewed?(values: Given): boolean;
  /** Whether the rows that match a filter are read and then sorted, and not looked for in the order of the list. */
  isSorted?(values: Given): boolean;
  /** The columns of the sort key: a time, or another text that sorts, and then the id. */
  order: readonly [at: keyof Row & keyof NoInfer<Shown> & string, id: keyof Row & keyof NoInfer<Shown> & string];
  /**
   * Returns the column in whose order the rows of a filter are counted up to a limit, for an index that has those that
   * match side by side; undefined for the order of the list.
   */
  countOrder?(values: Given): (keyof Row & string) | undefined;
  isNewestFirst?: boolean;
  /** Whether any text can be an id; otherwise ids are UUIDs. */
  hasTextIds?: boolean;
  /** Returns what readers get for a row, with its sort key; if absent, the row itself. */
  show?(row: Row): Shown;
  /** Called with the rows that are returned. */
  onRows?(rows: readonly Row[]): void;
}

/** A reader of a tenant's rows page by page; a page costs the same anywhere in the list. */
export interface PagedList<Row, Filter> {
  /** Reads a page of the tenant's rows that match the filter. */
  page(nodeId: string, filter: Filter, request: PageRequest): Promise<Page<Row>>;
  /** Counts the tenant's rows that match the filter. */
  count(nodeId: string, filter: Filter): Promise<number>;
  /** Returns the sort key of a row, for its cursor. */
  keyOf(row: Row): PageKey;
}

/** A reader of a tenant's rows, by id or page by page. */
export interface KeysetList<Row, Filter> extends PagedList<Row, Filter> {
  /** Counts the tenant's rows that match the filter, and stops at `most`. */
  countUpTo(nodeId: string, filter: Filter, most: number): Promise<number>;
  /** Reads the rows with these ids, in no particular order; ids that the tenant does not have are left out. */
  byIds(nodeId: string, ids: readonly string[]): Promise<Row[]>;
  /** Reads the row with this id. Returns undefined if the tenant has no such row or the text is not a valid id. */
  find(nodeId: string, id: string): Promise<Row | undefined>;
}

/**
 * Makes a class that reads a list, from the list's declaration. Its queries are compiled once for each form of a
 * filter: `where` sees which members are set, booleans and nulls, and gets a placeholder for every other value.
 */
export function keysetList<
  DB,
  TB extends keyof DB,
  Row,
  Given extends object = object,
  Filter extends object = Given,
  Shown = Row,
>(spec: ListSpec<DB, TB, Row, Given, Filter, Shown>): new (db: Db) => KeysetList<Shown, Filter> {
  const { rows, where, isSkewed = () => false, isNewestFirst = false, hasTextIds = false, onRows } = spec;
  const at = columnOf('listed', spec.order[0]);
  const id = columnOf('listed', spec.order[1]);
  const filtered = (k: ScopedKysely, values: Given): Listed => {
    const matching = listedRows(k, rows).where((eb) => eb.and(where?.(eb as never, values) ?? []));
    // PostgreSQL plans a subquery with an offset by itself, without the order and the limit of the page.
    return spec.isSorted?.(values) ? listedRows(k, () => matching.selectAll().offset(0)) : matching;
  };
  const valuesOf = spec.valuesOf ?? ((filter: object) => filter as Given);
  const keyOf = keyBy<Shown>(spec.order);
  const shown = (read: Row[]): Shown[] => {
    onRows?.(read);
    const { show } = spec;
    return show ? read.map((row) => show(row)) : (read as unknown[] as Shown[]);
  };

  return class implements KeysetList<Shown, Filter> {
    readonly #page: FormedQuery<Row, { values: Given; page: PageRequest }>;
    readonly #count: FormedQuery<{ total: string }, Given>;
    readonly #countUpTo: FormedQuery<{ total: string }, { values: Given; page: PageRequest }>;
    readonly #byIds: FormedQuery<Row, { ids: readonly string[] }>;

    constructor(db: Db) {
      this.#page = db.prepareForms(
        (k, { values, page }) => rowsOf<Row>(keysetPage(filtered(k, values), page, [at, id])),
        ({ values }) => isSkewed(values),
      );
      this.#count = db.prepareForms(
        (k, values) => filtered(k, values).select((eb) => eb.fn.countAll<string>().as('total')),
        isSkewed,
      );
      this.#countUpTo = db.prepareForms(
        (k, { values, page }) =>
          k
            .selectFrom(
              keysetPage(filtered(k, values), page, [columnOf('listed', spec.countOrder?.(values) ?? spec.order[0])])
                .select((eb) => eb.lit(1).as('one'))
                .as('counted'),
            )
            .select((eb) => eb.fn.countAll<string>().as('total')),
        ({ values }) => isSkewed(values),
      );
      this.#byIds = db.prepareForms((k, { ids }) =>
        rowsOf<Row>(listedRows(k, rows).where((eb) => isOneOf(eb, id, ids))),
      );
    }

    async page(nodeId: string, filter: Filter, request: PageRequest): Promise<Page<Shown>> {
      const read = pageRead(isNewestFirst ? newestFirst(request) : request);
      const page = pageOf(await this.#page.run(nodeId, { values: valuesOf(filter), page: read }), request);
      return { rows: shown(page.rows), hasMore: page.hasMore };
    }

    async count(nodeId: string, filter: Filter): Promise<number> {
      const [counted] = await this.#count.run(nodeId, valuesOf(filter));
      return Number(counted?.total ?? 0);
    }

    async countUpTo(nodeId: string, filter: Filter, most: number): Promise<number> {
      const page = { size: most, backward: false, after: undefined, before: undefined };
      const [counted] = await this.#countUpTo.run(nodeId, { values: valuesOf(filter), page });
      return Number(counted?.total ?? 0);
    }

    keyOf(row: Shown): PageKey {
      return keyOf(row);
    }

    async byIds(nodeId: string, ids: readonly string[]): Promise<Shown[]> {
      return shown(await this.#byIds.run(nodeId, { ids }));
    }

    async find(nodeId: string, id: string): Promise<Shown | undefined> {
      if (!hasTextIds && !isUuid(id)) return undefined;
      return (await this.byIds(nodeId, [id]))[0];
    }
  };
}

/** Returns the function that reads a row's sort key, whose id is empty in a list that is ordered by one column. */
function keyBy<Row>([at, id]: readonly (keyof Row)[]): (row: Row) => PageKey {
  return (row) => ({ at: String(at && row[at]), id: id === undefined ? '' : String(row[id]) });
}

function rowsOf<Row>(query: Pick<Listed, 'selectAll'>): Compilable<Row> {
  const rows: unknown = query.selectAll();
  return rows as Compilable<Row>;
}

interface NestedSpec<DB, TB extends keyof DB, Row, Shown> {
  /** The type of the ids of the rows that the lists belong to (the owners). */
  ownerIds: 'uuid' | 'text';
  rows: Rows<DB, TB, Row>;
  /** The column in which a row of the list has its owner's id. */
  owner: keyof Row & string;
  /** The columns of the sort key; the second, the row's id, is needed if the first is not unique within a list. */
  order: readonly (keyof Row & keyof NoInfer<Shown> & string)[];
  isNewestFirst?: boolean;
  /** Returns what readers get for a row, with its sort key; if absent, the row itself. */
  show?(row: Row): Shown;
  /** Called with the rows that are returned. */
  onRows?(rows: readonly Row[]): void;
}

/** A reader of lists that belong to other rows of a tenant (the owners), for many owners at once. */
export interface NestedList<Row> {
  /** Reads the same page of each owner's list in one statement; an owner whose page is empty is not in the map. */
  pages(nodeId: string, ownerIds: readonly string[], request: PageRequest): Promise<Map<string, Page<Row>>>;
  /** Counts the rows of each owner's list in one statement; an owner without rows is not in the map. */
  counts(nodeId: string, ownerIds: readonly string[]): Promise<Map<string, number>>;
  /** Returns the sort key of a row, for its cursor. */
  keyOf(row: Row): PageKey;
}

/** The page of an owner without rows. */
export const NO_ROWS: Page<never> = { rows: [], hasMore: false };

/** Returns the list of a single owner, whose id is the filter. */
export function ofOneOwner<Row>(lists: NestedList<Row>): PagedList<Row, string> {
  return {
    page: async (nodeId, ownerId, request) => (await lists.pages(nodeId, [ownerId], request)).get(ownerId) ?? NO_ROWS,
    count: async (nodeId, ownerId) => (await lists.counts(nodeId, [ownerId])).get(ownerId) ?? 0,
    keyOf: lists.keyOf,
  };
}

/** Makes the reader of a nested list, from the list's declaration. */
export function nestedList<DB, TB extends keyof DB, Row, Shown = Row>(
  db: Db,
  { ownerIds: idType, rows, owner, order, isNewestFirst = false, show, onRows }: NestedSpec<DB, TB, Row, Shown>,
): NestedList<Shown> {
  const orderOf = <Of extends string>(of: Of) => order.map((name) => columnOf(of, name)) as [`${Of}.column`];
  const pages = db.prepareForms((k, { ownerIds, page }: { ownerIds: string; page: PageRequest }) => {
    const direction = page.backward ? 'desc' : 'asc';
    const own = listedRows(k, rows)
      .where((eb) => {
        const ownerId = eb.ref('owner.value' as never);
        return eb(columnOf('listed', owner), '=', (idType === 'uuid' ? eb.cast(ownerId, 'uuid') : ownerId) as never);
      })
      .selectAll();
    return k
      .selectFrom((eb) =>
        eb.fn<{ value: string }>('json_array_elements_text', [eb.cast<string>(eb.val(ownerIds), 'json')]).as('owner'),
      )
      .innerJoinLateral(keysetPage(own, page, orderOf('listed')).as('row'), (join) => join.onTrue())
      .selectAll('row')
      .$call((query) => orderOf('row').reduce((ordered, column) => ordered.orderBy(column, direction), query));
  });
  const counts = db.prepareForms((k, { ownerIds }: { ownerIds: readonly string[] }) => {
    const ownerId = columnOf('listed', owner);
    return listedRows(k, rows)
      .select([`${ownerId} as owner`, (eb) => eb.fn.countAll<string>().as('total')])
      .where((eb) => isOneOf(eb, ownerId, ownerIds))
      .groupBy(ownerId);
  });
  return {
    keyOf: keyBy<Shown>(order),
    async pages(nodeId, ownerIds, request) {
      const page = pageRead(isNewestFirst ? newestFirst(request) : request);
      const read = await pages.run(nodeId, { ownerIds: JSON.stringify(ownerIds), page });
      const pagesByOwner = new Map<string, Page<Shown>>();
      for (const [ownerId, ownerRows] of Map.groupBy(read as Row[], (row) => String(row[owner]))) {
        const ownerPage = pageOf(ownerRows, request);
        const shown = show ? ownerPage.rows.map((row) => show(row)) : (ownerPage.rows as unknown[] as Shown[]);
        pagesByOwner.set(ownerId, { rows: shown, hasMore: ownerPage.hasMore });
        onRows?.(ownerPage.rows);
      }
      return pagesByOwner;
    },
    async counts(nodeId, ownerIds) {
      const counted = await counts.run(nodeId, { ownerIds });
      return new Map(counted.map((row) => [row.owner, Number(row.total)]));
    },
  };
}
