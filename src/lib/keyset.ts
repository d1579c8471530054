import { createHmac, timingSafeEqual } from 'node:crypto';

/** Rows of a page where the caller names no number, and the most it may name. */
export const DEFAULT_PAGE_SIZE = 20;
export const MAX_PAGE_SIZE = 100;

/** Where a row stands in its list: a key that sorts, such as PostgreSQL's text of a time to the microsecond, then the id. */
export interface PageKey {
  at: string;
  id: string;
}

/** A page between two keys, neither of which is in it: the first `size` rows, or, backward, the last ones. */
export interface PageRequest {
  size: number;
  backward: boolean;
  after: PageKey | undefined;
  before: PageKey | undefined;
}

/** A page as its query reads it. */
export interface PageRead {
  /** One row more than the page has, by which it is known whether there are others. */
  limit: number;
  backward: boolean;
  after: PageKey | undefined;
  before: PageKey | undefined;
}

/** Returns a page as its query reads it. */
export function pageRead({ size, backward, after, before }: PageRequest): PageRead {
  return { limit: size + 1, backward, after, before };
}

/** Rows in the order of the list; `hasMore` says whether the reading direction goes on behind them. */
export interface Page<Row> {
  rows: Row[];
  hasMore: boolean;
}

/** Returns the page in up to `size + 1` rows, which were read in the direction of the request. */
export function pageOf<Row>(read: readonly Row[], { size, backward }: PageRequest): Page<Row> {
  const rows = read.slice(0, size);
  return { rows: backward ? rows.reverse() : rows, hasMore: read.length > size };
}

/** Returns the page of each owner in the rows of all, which were read in the direction of the request. */
export function pagesBy<Row, Owner>(
  read: readonly Row[],
  ownerOf: (row: Row) => Owner,
  request: PageRequest,
): Map<Owner, Page<Row>> {
  const pages = new Map<Owner, Page<Row>>();
  for (const [owner, rows] of Map.groupBy(read, ownerOf)) pages.set(owner, pageOf(rows, request));
  return pages;
}

/** Returns the request for a list in the opposite order: what comes after a row there comes before it here. */
export function newestFirst({ size, backward, after, before }: PageRequest): PageRequest {
  return { size, backward: !backward, after: before, before: after };
}

/** Where a cursor is valid: in one list of one tenant. */
export interface CursorScope {
  connection: string;
  nodeId: string;
}

const MAC_BYTES = 8;
const MAX_CURSOR_LENGTH = 1_024;

/** Makes cursors and reads them. A signature keeps a caller from passing one that it was not given, or of another list or tenant. */
export class PageCursors {
  readonly #key: Uint8Array;

  /** Processes with the same key read each other's cursors. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Returns an opaque text that `decode` reads in the same scope. */
  encode(scope: CursorScope, { at, id }: PageKey): string {
    const place = Buffer.from(`${at}|${id}`, 'utf8');
    return Buffer.concat([this.#mac(scope, place), place]).toString('base64url');
  }

  /** Returns the key in a cursor; undefined where it is forged, malformed, or of another list or tenant. */
  decode(scope: CursorScope, cursor: string): PageKey | undefined {
    if (cursor.length > MAX_CURSOR_LENGTH) return undefined;
    const bytes = Buffer.from(cursor, 'base64url');
    if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== cursor) return undefined;
    const place = bytes.subarray(MAC_BYTES);
    if (!timingSafeEqual(this.#mac(scope, place), bytes.subarray(0, MAC_BYTES))) return undefined;
    const text = place.toString('utf8');
    const split = text.indexOf('|');
    return { at: text.slice(0, split), id: text.slice(split + 1) };
  }

  #mac({ connection, nodeId }: CursorScope, place: Uint8Array): Buffer {
    const hmac = createHmac('sha256', this.#key).update(`${connection}\0${nodeId}\0`).update(place);
    return hmac.digest().subarray(0, MAC_BYTES);
  }
}
