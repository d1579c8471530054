import { createHmac, timingSafeEqual } from 'node:crypto';

/** The number of rows on a page if the caller does not choose one. */
export const DEFAULT_PAGE_SIZE = 20;
/** The highest number of rows on a page that a caller may choose. */
export const MAX_PAGE_SIZE = 100;

/**
 * The sort key of a row in its list: a text that sorts, such as PostgreSQL's text of a time to the microsecond, then
 * the id.
 */
export interface PageKey {
  at: string;
  id: string;
}

/**
 * A request for the first `size` rows of a list between two sort keys, both exclusive; if `backward`, for the last
 * `size` rows.
 */
export interface PageRequest {
  size: number;
  backward: boolean;
  after: PageKey | undefined;
  before: PageKey | undefined;
}

/** Returns the request for the rows that are read for a page: one more than it has, which shows whether there are more. */
export function pageRead(request: PageRequest): PageRequest {
  return { ...request, size: request.size + 1 };
}

/** Returns the first rows, as many as have `max` together, but at least one. */
export function firstWithin<Row>(max: number, rows: Row[], sizeOf: (row: Row) => number): Row[] {
  let size = 0;
  const end = rows.findIndex((row) => {
    size += sizeOf(row);
    return size > max;
  });
  return end < 0 ? rows : rows.slice(0, Math.max(1, end));
}

/**
 * The rows of a page, in the order of the list. `hasMore` is whether there are more rows after them, or before them if
 * the page was read backward.
 */
export interface Page<Row> {
  rows: Row[];
  hasMore: boolean;
}

/** Returns the page that up to `size + 1` rows make, which were read in the direction of the request. */
export function pageOf<Row>(read: readonly Row[], { size, backward }: PageRequest): Page<Row> {
  const rows = read.slice(0, size);
  return { rows: backward ? rows.reverse() : rows, hasMore: read.length > size };
}

/** Converts a request to one for the same list in the opposite order: before and after, first and last are swapped. */
export function newestFirst({ size, backward, after, before }: PageRequest): PageRequest {
  return { size, backward: !backward, after: before, before: after };
}

/** The scope in which a cursor is valid: one list (connection) of one tenant. */
export interface CursorScope {
  connection: string;
  nodeId: string;
}

const MAC_BYTES = 8;
const MAX_CURSOR_LENGTH = 1_024;

/**
 * Encodes and decodes cursors. They are signed, so that a caller cannot use one that it was not given, or that belongs
 * to another list or tenant.
 */
export class PageCursors {
  readonly #key: Uint8Array;

  /** Takes the signing key; processes with the same key can decode each other's cursors. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Returns an opaque cursor that `decode` accepts in the same scope. */
  encode(scope: CursorScope, { at, id }: PageKey): string {
    const sortKey = Buffer.from(`${at}|${id}`, 'utf8');
    return Buffer.concat([this.#mac(scope, sortKey), sortKey]).toString('base64url');
  }

  /** Returns the sort key in a cursor; undefined if the cursor is forged, malformed, or of another list or tenant. */
  decode(scope: CursorScope, cursor: string): PageKey | undefined {
    if (cursor.length > MAX_CURSOR_LENGTH) return undefined;
    const bytes = Buffer.from(cursor, 'base64url');
    if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== cursor) return undefined;
    const sortKey = bytes.subarray(MAC_BYTES);
    if (!timingSafeEqual(this.#mac(scope, sortKey), bytes.subarray(0, MAC_BYTES))) return undefined;
    const text = sortKey.toString('utf8');
    const split = text.indexOf('|');
    return { at: text.slice(0, split), id: text.slice(split + 1) };
  }

  #mac({ connection, nodeId }: CursorScope, sortKey: Uint8Array): Buffer {
    const hmac = createHmac('sha256', this.#key).update(`${connection}\0${nodeId}\0`).update(sortKey);
    return hmac.digest().subarray(0, MAC_BYTES);
  }
}
