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

/** Adds up about how many bytes of heap a value made of JSON takes; never much less than it does. */
export class HeapWeigher {
  bytes = 0;
  readonly #names = new Set<string>();

  addText(text: string): void {
    this.bytes += textWeight(text);
  }

  /** Adds the text of a JSON string by what is between its quotes, whose escapes may need two bytes a character. */
  addContent(content: string): void {
    this.bytes += content.includes('\\u') ? STRING + 2 * content.length : textWeight(content);
  }

  addNumber(number: number): void {
    if (!Number.isInteger(number) || Math.abs(number) >= MAX_SMALL) this.bytes += NUMBER;
  }

  addArray(): void {
    this.bytes += ARRAY;
  }

  addObject(): void {
    this.bytes += OBJECT;
  }

  /** Adds the slots of members or elements. */
  addSlots(count: number): void {
    this.bytes += SLOT * count;
  }

  /** Adds the name of a member. A new one takes several times as much as the slot. */
  addName(name: string): void {
    if (this.#names.has(name)) return;
    this.#names.add(name);
    this.bytes += NEW_NAME + textWeight(name);
  }
}

/** Returns about how many bytes of heap a value made of JSON takes. */
export function heapWeight(value: unknown): number {
  const weigher = new HeapWeigher();
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === 'string') weigher.addText(next);
    else if (typeof next === 'number') weigher.addNumber(next);
    else if (Array.isArray(next)) {
      weigher.addArray();
      weigher.addSlots(next.length);
      for (const element of next) open.push(element);
    } else if (typeof next === 'object' && next !== null) {
      weigher.addObject();
      for (const name in next) {
        weigher.addSlots(1);
        weigher.addName(name);
        open.push(Reflect.get(next, name));
      }
    }
  }
  return weigher.bytes;
}

/** Returns how many bytes of heap a text takes. */
export function textWeight(text: string): number {
  return STRING + text.length * (WIDE.test(text) ? 2 : 1);
}
