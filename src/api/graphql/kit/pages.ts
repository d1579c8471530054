import type { GraphQLResolveInfo } from 'graphql';
import { isUuid } from '../../../lib/input.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, type Page, type PageKey, type PageRequest } from '../../../lib/keyset.ts';
import { type NestedList, NO_ROWS, type PagedList } from '../../../platform/database/keyset-list.ts';
import type { FeatureServices } from '../../shared/services.ts';
import { withoutNulls } from './camel-input.ts';
import { type GraphqlContext, loaderPerField, loaderPerOperation } from './graphql-context.ts';
import { badInputError } from './graphql-errors.ts';

/** The arguments that every connection has. */
interface ConnectionArgs {
  first?: number | null | undefined;
  last?: number | null | undefined;
  after?: string | null | undefined;
  before?: string | null | undefined;
}

/**
 * Returns the page that a connection's arguments request.
 * @throws GraphQLError BAD_USER_INPUT for `first` with `last`, a size out of range, or a cursor that is not of this
 * list.
 */
function pageRequest(args: ConnectionArgs, { services, principal }: GraphqlContext, connection: string): PageRequest {
  const { first = null, last = null } = args;
  const backward = last !== null;
  if (backward && first !== null) throw badInputError([{ path: ['first'], message: 'must not be combined with last' }]);
  const size = last ?? first ?? DEFAULT_PAGE_SIZE;
  if (size < 0 || size > MAX_PAGE_SIZE) {
    throw badInputError([{ path: [backward ? 'last' : 'first'], message: `must be 0 to ${MAX_PAGE_SIZE}` }]);
  }
  const scope = { connection, nodeId: principal.nodeId };
  function keyOf(name: 'after' | 'before'): PageKey | undefined {
    const cursor = args[name] ?? undefined;
    const key = cursor === undefined ? undefined : services.cursors.decode(scope, cursor);
    if (cursor !== undefined && !key) throw badInputError([{ path: [name], message: 'is not a cursor of this list' }]);
    return key;
  }
  return { size, backward, after: keyOf('after'), before: keyOf('before') };
}

interface FilteredArgs<Filter> extends ConnectionArgs {
  filter?: { [Name in keyof Filter]?: Filter[Name] | null } | null | undefined;
}

/**
 * Returns the resolver of a connection. `name` identifies the list in its cursors. `filterOf` returns the filter of the
 * list; by default that is the argument `filter`, if there is one.
 */
export function connectionResolver<Filter, Row, Args extends ConnectionArgs = FilteredArgs<Filter>>(
  name: string,
  listOf: (services: FeatureServices) => PagedList<Row, Filter>,
  filterOf: (args: Args, info: GraphQLResolveInfo) => Filter = ({ filter }: FilteredArgs<Filter>) =>
    withoutNulls<object>(filter) as Filter,
) {
  return async (_root: unknown, args: Args, context: GraphqlContext, info: GraphQLResolveInfo) => {
    const { services, principal } = context;
    const request = pageRequest(args, context, name);
    const filter = filterOf(args, info);
    const list = listOf(services);
    const page = await list.page(principal.nodeId, filter, request);
    const totalCount = () => list.count(principal.nodeId, filter);
    return new Connection({ name, page, request, context, keyOf: list.keyOf, totalCount });
  };
}

/**
 * Returns the resolver of a connection that belongs to an object, such as the wallets of an account. The pages of all
 * objects at the same place in an operation are read together, and so are all totals of the operation.
 */
export function ownedConnectionResolver<Row>(name: string, listsOf: (services: FeatureServices) => NestedList<Row>) {
  const totals = loaderPerOperation<number>(async (ownerIds, { services, principal }) => {
    const counted = await listsOf(services).counts(principal.nodeId, ownerIds);
    return ownerIds.map((ownerId) => counted.get(ownerId) ?? 0);
  });
  const connections = loaderPerField(async (ownerIds, context, args: ConnectionArgs) => {
    const { services, principal } = context;
    const request = pageRequest(args, context, name);
    const lists = listsOf(services);
    const read = await lists.pages(principal.nodeId, ownerIds, request);
    return ownerIds.map((ownerId) => {
      const page = read.get(ownerId) ?? NO_ROWS;
      return new Connection({
        name,
        page,
        request,
        context,
        keyOf: lists.keyOf,
        totalCount: () => totals(context).load(ownerId),
      });
    });
  });
  return ({ id }: { id: string }, args: ConnectionArgs, context: GraphqlContext, info: GraphQLResolveInfo) =>
    connections(args, context, info).load(id);
}

interface ConnectionOptions<Row> {
  /** Identifies the list in its cursors. */
  name: string;
  page: Page<Row>;
  request: PageRequest;
  context: GraphqlContext;
  keyOf: (row: Row) => PageKey;
  totalCount: () => Promise<number>;
}

// These are classes because a result has hundreds of them, and getters on object literals take several times the
// memory.

/** A page as a connection: cursors are signed, and rows counted, only when they are requested. */
class Connection<Row> {
  readonly edges: readonly Edge<Row>[];
  readonly #options: ConnectionOptions<Row>;
  #total: Promise<number> | undefined;

  constructor(options: ConnectionOptions<Row>) {
    this.#options = options;
    this.edges = options.page.rows.map((row) => new Edge(row, options));
  }

  /** Counts the rows over all pages, once for all fields that show the number. */
  totalCount(): Promise<number> {
    this.#total ??= this.#options.totalCount();
    return this.#total;
  }

  get pageInfo() {
    return this;
  }

  get hasNextPage(): boolean {
    const { page, request } = this.#options;
    return request.backward ? request.before !== undefined : page.hasMore;
  }

  get hasPreviousPage(): boolean {
    const { page, request } = this.#options;
    return request.backward ? page.hasMore : request.after !== undefined;
  }

  get startCursor(): string | null {
    return this.edges[0]?.cursor ?? null;
  }

  get endCursor(): string | null {
    return this.edges.at(-1)?.cursor ?? null;
  }
}

class Edge<Row> {
  readonly node: Row;
  readonly #options: ConnectionOptions<Row>;

  constructor(row: Row, options: ConnectionOptions<Row>) {
    this.node = row;
    this.#options = options;
  }

  get cursor(): string {
    const { name, context, keyOf } = this.#options;
    const scope = { connection: name, nodeId: context.principal.nodeId };
    return context.services.cursors.encode(scope, keyOf(this.node));
  }
}

/**
 * Returns the resolver of one row by its UUID; it gives null for an id that is malformed, unknown or of another tenant.
 */
export function rowResolver<Row>(
  find: (services: FeatureServices, nodeId: string, id: string) => Promise<Row | undefined>,
) {
  return async (_root: unknown, { id }: { id: string }, { services, principal }: GraphqlContext) =>
    isUuid(id) ? ((await find(services, principal.nodeId, id.toLowerCase())) ?? null) : null;
}
