import {
  type CursorScope,
  DEFAULT_PAGE_SIZE,
  MAX_PAGE_SIZE,
  type Page,
  type PageCursors,
  type PageKey,
  type PageRequest,
} from '../lib/keyset.ts';
import type { GraphqlContext } from './context.ts';
import { badInputError } from './errors.ts';

/** The arguments that every connection has. */
export interface ConnectionArgs {
  first?: number | null | undefined;
  last?: number | null | undefined;
  after?: string | null | undefined;
  before?: string | null | undefined;
}

/**
 * The page that a connection's arguments ask for.
 * @throws GraphQLError BAD_USER_INPUT for `first` with `last`, a size out of range, or a cursor that is not of this list.
 */
export function pageRequest(
  args: ConnectionArgs,
  { services, principal }: GraphqlContext,
  connection: string,
): PageRequest {
  const { first, last } = args;
  if (isGiven(first) && isGiven(last)) throw badInputError([{ path: ['first'], message: 'must not stand with last' }]);
  const backward = isGiven(last);
  const size = last ?? first ?? DEFAULT_PAGE_SIZE;
  if (size < 0 || size > MAX_PAGE_SIZE) {
    throw badInputError([{ path: [backward ? 'last' : 'first'], message: `must be 0 to ${MAX_PAGE_SIZE}` }]);
  }
  const scope = { connection, nodeId: principal.nodeId };
  const keyOf = (name: 'after' | 'before') => placeOf(services.cursors, scope, name, args[name]);
  return { size, backward, after: keyOf('after'), before: keyOf('before') };
}

/** A page of an owner that has nothing. */
export const NO_ROWS: Page<never> = { rows: [], hasMore: false };

interface ConnectionOptions<Row, Node> {
  page: Page<Row>;
  request: PageRequest;
  connection: string;
  context: GraphqlContext;
  keyOf: (row: Row) => PageKey;
  nodeOf: (row: Row) => Node;
  totalCount: () => Promise<number>;
}

/** A connection over a page, and what is told of that page; cursors are signed and rows counted only when asked for. */
export function connectionOf<Row, Node>(options: ConnectionOptions<Row, Node>): Connection<Row, Node> {
  return new Connection(options);
}

// Classes: an answer has hundreds of these, and getters of an object of its own take several times the memory.

class Connection<Row, Node> {
  readonly edges: readonly Edge<Row, Node>[];
  readonly totalCount: () => Promise<number>;
  readonly #options: ConnectionOptions<Row, Node>;

  constructor(options: ConnectionOptions<Row, Node>) {
    this.#options = options;
    this.totalCount = options.totalCount;
    this.edges = options.page.rows.map((row) => new Edge(row, options));
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

class Edge<Row, Node> {
  readonly node: Node;
  readonly #row: Row;
  readonly #options: ConnectionOptions<Row, Node>;

  constructor(row: Row, options: ConnectionOptions<Row, Node>) {
    this.node = options.nodeOf(row);
    this.#row = row;
    this.#options = options;
  }

  get cursor(): string {
    const { connection, context, keyOf } = this.#options;
    return context.services.cursors.encode({ connection, nodeId: context.principal.nodeId }, keyOf(this.#row));
  }
}

function placeOf(
  cursors: PageCursors,
  scope: CursorScope,
  name: string,
  cursor: string | null | undefined,
): PageKey | undefined {
  if (!isGiven(cursor)) return undefined;
  const key = cursors.decode(scope, cursor);
  if (key === undefined) throw badInputError([{ path: [name], message: 'is no cursor of this list' }]);
  return key;
}

function isGiven<Value>(value: Value | null | undefined): value is Value {
  return value !== null && value !== undefined;
}
