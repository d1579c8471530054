import DataLoader from 'dataloader';
import type { Page, PageKey, PageRequest } from '../lib/keyset.ts';
import type { GraphqlContext } from './context.ts';
import { type ConnectionArgs, connectionOf, NO_ROWS, pageRequest } from './pages.ts';
import { perOperation } from './per-operation.ts';
import { perPlace } from './per-place.ts';

interface NestedPagesOptions<Row> {
  /** The list's name in its cursors. */
  connection: string;
  /** The pages of these owners; an owner that has nothing may be absent. */
  read: (context: GraphqlContext, ownerIds: readonly string[], request: PageRequest) => Promise<Map<string, Page<Row>>>;
  /** How many rows these owners have in all; one that has none may be absent. */
  count: (context: GraphqlContext, ownerIds: readonly string[]) => Promise<Map<string, number>>;
  keyOf: (row: Row) => PageKey;
}

/** The connections of a field that many objects of an answer have: one read for all of one place, one count for an operation. */
export function nestedPages<Row>({ connection, read, count, keyOf }: NestedPagesOptions<Row>) {
  const totals = perOperation(
    (context) =>
      new DataLoader<string, number>(async (ownerIds) => {
        const counted = await count(context, ownerIds);
        return ownerIds.map((ownerId) => counted.get(ownerId) ?? 0);
      }),
  );
  const totalOf = (ownerId: string, context: GraphqlContext) => totals(context).load(ownerId);
  const resolve = perPlace(async (ownerIds, context, args: ConnectionArgs) => {
    const request = pageRequest(args, context, connection);
    const pages = await read(context, ownerIds, request);
    return ownerIds.map((ownerId) =>
      connectionOf({
        page: pages.get(ownerId) ?? NO_ROWS,
        request,
        connection,
        context,
        keyOf,
        nodeOf: (row) => row,
        totalCount: () => totalOf(ownerId, context),
      }),
    );
  });
  return { resolve, totalOf };
}
