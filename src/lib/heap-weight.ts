// Measured with V8 of Node 26 (test/limits/heap-weight.test.ts), in bytes.

/** An object: its header, and the slots for four members that a parser reserves. */
const OBJECT = 64;
const ARRAY = 48;
/** A member or an element whose value is in its slot: a small integer, a boolean or null. */
const SLOT = 8;
/** A member whose name occurs for the first time: the name, and its share of a hidden class or of a hash table. */
const NEW_NAME = 120;
/** A number that is no small integer, in a separate object. */
const NUMBER = 16;
const STRING = 24;
const MAX_SMALL = 2 ** 30;
/** Matches a text that has two bytes a character in memory. */
const WIDE = /[^\0-\xff]/;

/**
 * Returns about how many bytes of heap a value made of JSON takes; never much less than it does. A member with a new name
 * takes several times as much as an element.
 */
export function heapWeight(value: unknown): number {
  const names = new Set<string>();
  const open: unknown[] = [value];
  let bytes = 0;
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === 'string') bytes += textWeight(next);
    else if (typeof next === 'number') bytes += Number.isInteger(next) && Math.abs(next) < MAX_SMALL ? 0 : NUMBER;
    else if (Array.isArray(next)) {
      bytes += ARRAY + SLOT * next.length;
      for (const element of next) open.push(element);
    } else if (typeof next === 'object' && next !== null) {
      bytes += OBJECT;
      for (const name in next) {
        bytes += SLOT;
        if (!names.has(name)) bytes += NEW_NAME + textWeight(name);
        names.add(name);
        open.push(Reflect.get(next, name));
      }
    }
  }
  return bytes;
}

/** Returns how many bytes of heap a text takes. */
export function textWeight(text: string): number {
  return STRING + text.length * (WIDE.test(text) ? 2 : 1);
}
