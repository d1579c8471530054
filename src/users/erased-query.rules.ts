import { readable } from './erased-text.rules.ts';

const SHORTEST_PIECE = 3;

/** Whether the query of a URL has one of the identifiers (in lower case), however it is encoded. */
export function tellsInQuery(query: string, identifiers: readonly string[]): boolean {
  const text = readable(decoded(query.replaceAll('+', ' '))).replaceAll('\\"', '"');
  return identifiers.some((identifier) => text.includes(identifier));
}

/** What of an identifier stands in a query whichever way it is encoded: its longest run of letters that never are. */
export function piecesOf(identifier: string): string[] {
  const longest = (identifier.match(/[a-z0-9]+/g) ?? []).reduce((a, b) => (b.length > a.length ? b : a), '');
  return [longest.length >= SHORTEST_PIECE ? longest : encodeURIComponent(identifier).toLowerCase()];
}

/** Escapes that are none stay as they are. */
function decoded(query: string): string {
  return query.replace(/(?:%[0-9a-f]{2})+/gi, (escaped) => {
    try {
      return decodeURIComponent(escaped);
    } catch {
      return escaped;
    }
  });
}
