/**
 * A token of JSON, in which `scalar` is a number or literal; or how the text ends: as one value, cut off, or in an
 * error.
 */
export type JsonToken = '{' | '}' | '[' | ']' | 'name' | 'string' | 'scalar' | ScanEnd;
export type ScanEnd = 'complete' | 'cut' | 'error';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Matches a number or literal (RFC 8259 sections 3 and 6) at `lastIndex`. */
const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const HEX = /[0-9a-fA-F]{4}/y;

/**
 * Reads the tokens of one JSON text (RFC 8259), which may be cut off anywhere, and stops at the first syntax error.
 * Nesting uses heap, never stack.
 */
export class JsonScanner {
  /** Where the last token begins, or the syntax error. */
  start = 0;
  /** Where the last token ends. */
  end: number;
  /** Whether the text ends within the last token, a string. */
  isOpen = false;
  readonly #text: string;
  /** Whether each of the arrays and objects that the last token is in is an object, and whether the innermost is. */
  readonly #inObject: boolean[] = [];
  #isInObject = false;
  #expected: 'value' | 'first' | 'name' | 'colon' | 'comma' | 'end' = 'value';

  /** Reads a text from the index `from` on. */
  constructor(text: string, from = 0) {
    this.#text = text;
    this.end = from;
  }

  /** The number of arrays and objects that are open after the last token. */
  get depth(): number {
    return this.#inObject.length;
  }

  /** Whether a value must follow the last token, and no name or bracket can. */
  get isBeforeValue(): boolean {
    return this.#expected === 'value';
  }

  /** What is between the quotes of the last token, a string. */
  get content(): string {
    return this.#text.slice(this.start + 1, this.isOpen ? this.end : this.end - 1);
  }

  /** The text of the last token, a string; without an escape that is cut off. */
  get string(): string {
    const { content } = this;
    return content.includes('\\') ? String(JSON.parse(`"${withoutCutEscape(content)}"`)) : content;
  }

  /** Reads the next token; a bracket begins or ends a value. */
  next(): JsonToken {
    let char = this.#nextChar();
    if ((char === ':' && this.#expected === 'colon') || (char === ',' && this.#expected === 'comma')) {
      this.end = this.start + 1;
      this.#expected = char === ',' && this.#isInObject ? 'name' : 'value';
      char = this.#nextChar();
    }
    if (char === '') return this.#expected === 'end' ? 'complete' : 'cut';
    if (this.#expected === 'first' || this.#expected === 'comma') {
      if (char === (this.#isInObject ? '}' : ']')) {
        this.#inObject.pop();
        this.#isInObject = this.#inObject.at(-1) === true;
        return this.#valueTo(this.start + 1, char);
      }
    }
    if (this.#expected === 'colon' || this.#expected === 'comma' || this.#expected === 'end') return 'error';
    const isName = this.#isInObject && this.#expected !== 'value';
    if (char === '"') return this.#stringFrom(isName);
    return isName ? 'error' : this.#valueFrom(char);
  }

  /** Moves to the next character that is not white space, and returns it; the empty text at the end. */
  #nextChar(): string {
    let at = this.end;
    for (let code = this.#text.charCodeAt(at); code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09; ) {
      at += 1;
      code = this.#text.charCodeAt(at);
    }
    this.start = at;
    return this.#text.charAt(at);
  }

  #valueTo(end: number, token: JsonToken): JsonToken {
    this.end = end;
    this.#expected = this.#inObject.length === 0 ? 'end' : 'comma';
    return token;
  }

  #valueFrom(char: string): JsonToken {
    if (char === '{' || char === '[') {
      this.#isInObject = char === '{';
      this.#inObject.push(this.#isInObject);
      this.end = this.start + 1;
      this.#expected = 'first';
      return char;
    }
    SCALAR.lastIndex = this.start;
    return SCALAR.test(this.#text) ? this.#valueTo(SCALAR.lastIndex, 'scalar') : 'error';
  }

  #stringFrom(isName: boolean): JsonToken {
    let at = this.start + 1;
    for (let code = this.#text.charCodeAt(at); code !== QUOTE; code = this.#text.charCodeAt(at)) {
      if (at >= this.#text.length) {
        this.end = this.#text.length;
        this.isOpen = true;
        return isName ? 'name' : 'string';
      }
      const width = code === BACKSLASH ? escapeWidth(this.#text, at) : Number(code >= 0x20);
      if (width === 0) return 'error';
      at += width;
    }
    if (!isName) return this.#valueTo(at + 1, 'string');
    this.end = at + 1;
    this.#expected = 'colon';
    return 'name';
  }
}

/** Returns the full length of the escape sequence at `at`, even if the text ends inside it; 0 when it is invalid. */
function escapeWidth(text: string, at: number): number {
  if (at + 1 >= text.length) return 2;
  const letter = text.charAt(at + 1);
  if (letter !== 'u') return '"\\/bfnrt'.includes(letter) ? 2 : 0;
  if (at + 6 > text.length) return 6;
  HEX.lastIndex = at + 2;
  return HEX.test(text) ? 6 : 0;
}

function withoutCutEscape(content: string): string {
  let at = content.indexOf('\\');
  while (at !== -1) {
    const end = at + escapeWidth(content, at);
    if (end > content.length) return content.slice(0, at);
    at = content.indexOf('\\', end);
  }
  return content;
}
