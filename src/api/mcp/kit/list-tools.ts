import { z } from 'zod';
import { textInput, wholeNumberInput } from '../../../lib/input.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../../../lib/keyset.ts';
import type { PagedList } from '../../../platform/database/keyset-list.ts';
import type { FeatureServices } from '../../shared/services.ts';
import { invalidArguments, type ToolCall } from './tool.ts';

/**
 * The maximum length of a page, in characters of its JSON. A result contains the page twice, and models cannot read
 * more.
 */
const MAX_PAGE_LENGTH = 1024 * 1024;

/** The arguments that every list tool has. */
export const pageArguments = {
  limit: wholeNumberInput(1, MAX_PAGE_SIZE)
    .optional()
    .meta({ description: `Rows per page; ${DEFAULT_PAGE_SIZE} by default.` }),
  cursor: textInput().optional().meta({ description: 'next_cursor of the previous page; omit it for the first page.' }),
  include_total: z
    .boolean('must be a boolean')
    .optional()
    .meta({ description: 'Whether to count total; omit it unless you need the number.' }),
};

/** The page that a caller asks for; the first one by default. */
export interface PageArguments {
  limit?: number | undefined;
  cursor?: string | undefined;
  include_total?: boolean | undefined;
}

/** Returns the output schema of a list tool: a page of rows with the given schema. */
export function pageOutput<Row extends z.ZodType>(row: Row) {
  return z.strictObject({
    data: z.array(row),
    next_cursor: z.string().nullable().meta({ description: 'The cursor of the next page; null on the last one.' }),
    total: z.int().optional().meta({ description: 'The number of rows on all pages; only with include_total.' }),
  });
}

interface Listing<Filter, Row, View> {
  /** The name of the tool; its cursors are valid for no other tool. */
  tool: string;
  list(services: FeatureServices): PagedList<Row, Filter>;
  filter: NoInfer<Filter>;
  viewOf(row: NoInfer<Row>): View;
}

/**
 * Reads a page of a list, from its beginning or after a cursor.
 * @throws ToolError for a cursor that is not of this list and tenant.
 */
export async function listPage<Filter, Row, View>(
  { limit: size = DEFAULT_PAGE_SIZE, cursor, include_total: isCounted = false }: PageArguments,
  { services, caller: { nodeId } }: ToolCall,
  { tool, list: listOf, filter, viewOf }: Listing<Filter, Row, View>,
) {
  const { cursors } = services;
  const scope = { connection: `mcp ${tool}`, nodeId };
  const after = cursor === undefined ? undefined : cursors.decode(scope, cursor);
  if (cursor !== undefined && after === undefined) {
    throw invalidArguments([{ path: 'cursor', message: `must be a next_cursor of ${tool}` }]);
  }
  const request = { size, backward: false, after, before: undefined };
  const list = listOf(services);
  const { rows, hasMore } = await list.page(nodeId, filter, request);
  const data = fitting(rows.map(viewOf));
  const last = rows[data.length - 1];
  const isLast = last === undefined || !(hasMore || data.length < rows.length);
  return {
    data,
    next_cursor: isLast ? null : cursors.encode(scope, list.keyOf(last)),
    ...(isCounted ? { total: await list.count(nodeId, filter) } : {}),
  };
}

/** Returns the first views, as many as fit into a page, but at least one. */
function fitting<View>(views: View[]): View[] {
  let length = 0;
  const end = views.findIndex((view, index) => {
    length += JSON.stringify(view).length;
    return index > 0 && length > MAX_PAGE_LENGTH;
  });
  return end < 0 ? views : views.slice(0, end);
}
