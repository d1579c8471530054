import { z } from 'zod';
import { textInput, wholeNumberInput } from '../lib/input.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, type Page, type PageKey, type PageRequest } from '../lib/keyset.ts';
import type { ToolCall } from './tool.ts';
import { invalidArguments } from './tool-error.ts';

/** In characters of JSON: an answer has each of them twice, and a model reads no more. */
const MAX_PAGE_LENGTH = 1024 * 1024;

/** The arguments that every list has. */
export const pageArguments = {
  limit: wholeNumberInput(1, MAX_PAGE_SIZE)
    .optional()
    .meta({ description: `The most that a page has; ${DEFAULT_PAGE_SIZE} by default.` }),
  cursor: textInput()
    .optional()
    .meta({ description: 'next_cursor of the page before, as it is; leave it out for the first page.' }),
  include_total: z
    .boolean('must be a boolean')
    .optional()
    .meta({ description: 'Whether total is counted as well; leave it out unless somebody asks how many there are.' }),
};

interface PageArguments {
  limit?: number | undefined;
  cursor?: string | undefined;
  include_total?: boolean | undefined;
}

/** What a list gives: a page of rows of this kind. */
export function pageOutput<Row extends z.ZodType>(row: Row) {
  return z.strictObject({
    data: z.array(row),
    next_cursor: z.string().nullable().meta({ description: 'For the next page; null: this is the last one.' }),
    total: z.int().optional().meta({ description: 'Over all pages; only with include_total.' }),
  });
}

interface Listing<Row, View> {
  /** Names the list: a cursor is good for no other one. */
  list: string;
  read(request: PageRequest): Promise<Page<Row> | undefined>;
  keyOf(row: NoInfer<Row>): PageKey;
  viewOf(row: NoInfer<Row>): View;
  count(): Promise<number>;
}

/**
 * Reads a page by keyset, in the order of the list.
 * @throws ToolError for a cursor that is not of this list and node.
 */
export async function listPage<Row, View>(
  { limit = DEFAULT_PAGE_SIZE, cursor, include_total: isCounted = false }: PageArguments,
  { services: { cursors }, caller }: ToolCall,
  { list, read, keyOf, viewOf, count }: Listing<Row, View>,
) {
  const scope = { connection: `mcp ${list}`, nodeId: caller.nodeId };
  const after = cursor === undefined ? undefined : cursors.decode(scope, cursor);
  if (cursor !== undefined && after === undefined) {
    throw invalidArguments([{ path: 'cursor', message: `must be a next_cursor that ${list} has given` }]);
  }
  const page = await read({ size: limit, backward: false, after, before: undefined });
  const { rows, hasMore } = page ?? { rows: [], hasMore: false };
  const data = fitting(rows.map(viewOf));
  const last = rows[data.length - 1];
  return {
    data,
    next_cursor:
      last !== undefined && (hasMore || data.length < rows.length) ? cursors.encode(scope, keyOf(last)) : null,
    ...(isCounted ? { total: await count() } : {}),
  };
}

/** As many of the first views as a page has room for, and one at least. */
function fitting<View>(views: View[]): View[] {
  let length = 0;
  const end = views.findIndex((view, index) => {
    length += JSON.stringify(view).length;
    return index > 0 && length > MAX_PAGE_LENGTH;
  });
  return end < 0 ? views : views.slice(0, end);
}
