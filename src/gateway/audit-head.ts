import { maskQuery } from '../audit/mask-form.ts';
import { maskHeaders } from '../audit/mask-headers.ts';
import { maskTokens } from '../audit/mask-keys.ts';
import { maskPart, maskSpelled } from '../audit/mask-part.ts';
import { storable } from './audit-bodies.ts';

/** What a record keeps of a path, and of a query: a head may have 160 KiB. */
const MAX_TARGET_PART_BYTES = 8 * 1024;

/** What a record shows of a request's target. */
interface RecordedTarget {
  path: string;
  query: string | null;
}

/** What a record shows of a request's head: the same for each of its operations. */
export interface RecordedHead extends RecordedTarget {
  headers: ReturnType<typeof maskHeaders>;
}

/** Masks a target. `maskOwn` knows the form of its query better than its path tells. */
export function recordedTarget(target: string, maskOwn?: (query: string) => string): RecordedTarget {
  const mark = target.indexOf('?');
  const whole = mark < 0 ? target : target.slice(0, mark);
  const path = maskPart(whole, MAX_TARGET_PART_BYTES, maskSpelled);
  if (mark < 0) return { path: storable(path), query: null };
  // Of a path that was cut it cannot be told whether it was this one.
  const pathOfQuery = whole.length > MAX_TARGET_PART_BYTES ? '/graphql' : whole;
  const maskText = (text: string) => (maskOwn ? maskTokens(maskOwn(text)) : maskSpelled(maskQuery(text, pathOfQuery)));
  const query = maskPart(target.slice(mark + 1), MAX_TARGET_PART_BYTES, maskText);
  return { path: storable(path), query: storable(query) };
}

/** Masks a head. */
export function recordedHead(
  target: string,
  headers: NodeJS.Dict<string | string[]>,
  maskOwn?: (query: string) => string,
): RecordedHead {
  return { ...recordedTarget(target, maskOwn), headers: maskHeaders(headers) };
}
