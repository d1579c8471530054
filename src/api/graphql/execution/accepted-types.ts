import type { IncomingMessage } from 'node:http';

/** The media types of a result, in the order in which they are preferred if a client accepts them alike. */
export const SSE = 'text/event-stream';
export const JSON_TYPE = 'application/json';
export const GRAPHQL_TYPE = 'application/graphql-response+json';

/** How many ranges of a header, and parts of a range, are read. Browsers send about eight; what follows is ignored. */
const MAX_PARTS = 64;

/** Splits an Accept header into its ranges, each with its parameters. */
export function rangesOf(accept: string): readonly string[][] {
  return accept
    .split(',', MAX_PARTS)
    .map((range) => range.split(';', MAX_PARTS).map((part) => part.trim().toLowerCase()));
}

/**
 * Returns the most specific of the ranges that match a media type (RFC 9110 section 12.5.1), with its place in the header;
 * undefined if none does. Its weight is 0 if the client does not accept the type.
 */
export function acceptedRange(
  ranges: readonly string[][],
  type: string,
): { weight: number; position: number; isNamed: boolean } | undefined {
  for (const name of [type, type.replace(/\/.*/, '/*'), '*/*']) {
    const position = ranges.findIndex(([range]) => range === name);
    const weight = ranges[position]?.find((part) => part.startsWith('q='))?.slice(2) ?? 1;
    if (position >= 0) return { weight: Number(weight) || 0, position, isNamed: name === type };
  }
  return undefined;
}

/** Returns what an Accept header accepts for the result of an operation; an absent or empty one accepts anything. */
export function acceptedTypes(accept = '') {
  const ranges = rangesOf(accept.trim() === '' ? '*/*' : accept);
  const weightOf = (type: string) => acceptedRange(ranges, type)?.weight ?? 0;
  const types = [JSON_TYPE, GRAPHQL_TYPE] as const;
  const best = Math.max(...types.map(weightOf));
  const [first] = types
    .filter((type) => weightOf(type) === best && best > 0)
    .flatMap((type) => ({ type, ...acceptedRange(ranges, type) }))
    .sort((a, b) => Number(b.isNamed) - Number(a.isNamed) || (a.position ?? 0) - (b.position ?? 0));
  const isNamed = first?.isNamed || (first !== undefined && first.type !== JSON_TYPE);
  return {
    /** The JSON type that the client names; undefined if it names none, and accepts or gets `application/json`. */
    json: isNamed ? first?.type : undefined,
    /** Whether it accepts an event stream. */
    takesStream: weightOf(SSE) > 0,
    /** Whether it prefers an event stream to JSON. */
    prefersStream: weightOf(SSE) > best,
    /** Whether it rejects each type. A client that names only types of other kinds gets JSON. */
    isNone: best === 0 && weightOf(SSE) === 0 && types.some((type) => acceptedRange(ranges, type) !== undefined),
  };
}

const FORM_TYPE = /^multipart\/form-data\s*(?:;|$)/i;

/** Checks whether a request carries a multipart form, as uploads do. */
export function bringsForm({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  return method === 'POST' && FORM_TYPE.test(headers['content-type'] ?? '');
}
