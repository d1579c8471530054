import { setImmediate as nextTick } from 'node:timers/promises';
import { runCooperatively, type Worker } from './yielding.ts';

const rawJson = JSON as unknown as { isRawJSON(value: object): boolean };

/** The length of JSON text that is made at once, and roughly the length of a slice, in UTF-16 code units. */
export const SLICE_LENGTH = 64 * 1024;
/** The assumed JSON length of a number, boolean or null. */
const SCALAR_LENGTH = 8;

/** Checks whether the JSON of a value is short enough to be made at once, without making it. */
export function isShort(value: unknown): boolean {
  return lengthLeft(value, SLICE_LENGTH) >= 0;
}

/** Returns about the length of the JSON of a value, without making it. */
export function jsonLength(value: unknown): number {
  return Number.MAX_SAFE_INTEGER - lengthLeft(value, Number.MAX_SAFE_INTEGER);
}

/** Returns what a value leaves of a length; stops below zero, so that it looks at no more members than fit. */
function lengthLeft(value: unknown, length: number): number {
  if (typeof value === 'string') return length - value.length;
  if (!hasMembers(value)) return length - SCALAR_LENGTH;
  let left = length - SCALAR_LENGTH;
  for (const name in value) {
    left = lengthLeft(value[name], left - name.length);
    if (left < 0) break;
  }
  return left;
}

/** Checks whether a value is an array or object that JSON shows by its members. */
function hasMembers(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !('toJSON' in value) && !rawJson.isRawJSON(value);
}

/** Yields the JSON of a value, as `JSON.stringify` has it, in slices of about 64 Ki characters. */
export function* jsonSlices(value: unknown): Generator<string> {
  let slice = '';
  for (const part of partsOf(value)) {
    slice += part;
    if (slice.length < SLICE_LENGTH) continue;
    yield slice;
    slice = '';
  }
  if (slice !== '') yield slice;
}

function* partsOf(value: unknown): Generator<string> {
  if (!hasMembers(value) || isShort(value)) {
    yield JSON.stringify(value) ?? 'null';
    return;
  }
  const isList = Array.isArray(value);
  let before = isList ? '[' : '{';
  for (const [name, member] of Object.entries(value)) {
    if (!isList && (member === undefined || typeof member === 'function')) continue;
    yield isList ? before : `${before}${JSON.stringify(name)}:`;
    yield* partsOf(member);
    before = ',';
  }
  yield `${before === '{' ? '{' : ''}${isList ? ']' : '}'}`;
}

/**
 * Returns the JSON of a value, or undefined if that is longer than a number of bytes. The event loop runs other work
 * after each slice, and each is made in a turn of the worker, so that a long text delays no other work. `grow` is called
 * with the bytes so far, and awaited.
 */
export async function limitedJson(
  value: unknown,
  maxBytes: number,
  worker: Worker | undefined,
  grow?: (bytes: number) => Promise<void> | undefined,
): Promise<string | undefined> {
  const slices: string[] = [];
  let bytes = 0;
  const remainingSlices = jsonSlices(value);
  for (
    let next = remainingSlices.next();
    !next.done;
    next = await runCooperatively(() => remainingSlices.next(), worker)
  ) {
    bytes += Buffer.byteLength(next.value);
    if (bytes > maxBytes) return undefined;
    slices.push(next.value);
    await grow?.(bytes);
    await nextTick();
  }
  return slices.join('');
}
