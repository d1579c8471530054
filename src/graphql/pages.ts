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

interface ConnectionOptions<Row, Node> {
  page: Page<Row>;
  request: PageRequest;
  connection: string;
  context: GraphqlContext;
  keyOf: (row: Row) => PageKey;
  nodeOf: (row: Row) => Node;
  totalCount: () => Promise<number>;
}

/** A connection over a page; cursors are signed and rows counted only when asked for. */
export function connectionOf<Row, Node>(options: ConnectionOptions<Row, Node>) {
  const { page, request, connection, context, keyOf, nodeOf, totalCount } = options;
  const scope = { connection, nodeId: context.principal.nodeId };
  const cursorOf = (row: Row) => context.services.cursors.encode(scope, keyOf(row));
  const { rows, hasMore } = page;
  const [start, end] = [rows[0], rows.at(-1)];
  return {
    edges: rows.map((row) => new Edge(row, nodeOf(row), cursorOf)),
    pageInfo: {
      hasNextPage: request.backward ? request.before !== undefined : hasMore,
      hasPreviousPage: request.backward ? hasMore : request.after !== undefined,
      get startCursor() {
        return start === undefined ? null : cursorOf(start);
      },
      get endCursor() {
        return end === undefined ? null : cursorOf(end);
      },
    },
    totalCount,
  };
}

/** A class, for a getter in an object of its own for each row would take several times the memory. */
class Edge<Row, Node> {
  readonly node: Node;
  readonly #row: Row;
  readonly #cursorOf: (row: Row) => string;

  constructor(row: Row, node: Node, cursorOf: (row: Row) => string) {
    this.node = node;
    this.#row = row;
    this.#cursorOf = cursorOf;
  }

  get cursor(): string {
    return this.#cursorOf(this.#row);
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
