import { isSecretKey, MASK, secretValueAt } from './mask-keys.ts';

/** Matches a JSON number (RFC 8259 section 6) at `lastIndex`. */
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

const HEX = /[0-9a-fA-F]{4}/y;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Returns the index of the first character at or after `at` that is not white space (RFC 8259 section 2). */
function skipSpace(text: string, at: number): number {
  let next = at;
  for (;;) {
    const code = text.charCodeAt(next);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return next;
    next += 1;
  }
}

/**
 * Scans the string whose opening quote is at `start`. Returns the index after its closing quote, `'open'` when the text
 * ends inside it, or `'invalid'` when RFC 8259 section 7 forbids its content.
 */
function scanString(text: string, start: number): number | 'open' | 'invalid' {
  let at = start + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code < 0x20) return 'invalid';
    if (code === BACKSLASH) {
      const width = escapeWidth(text, at);
      if (width === 0) return 'invalid';
      at += width;
    } else at += 1;
  }
  return 'open';
}

/**
 * Returns the decoded text of a JSON string, given what stands between its quotes. Omits an incomplete escape at the
 * end.
 */
function decodeString(content: string): string {
  return content.includes('\\') ? String(JSON.parse(`"${withoutCutEscape(content)}"`)) : content;
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

/** Returns the full length of the escape sequence at `at`, even if the text ends inside it; 0 when it is invalid. */
function escapeWidth(text: string, at: number): number {
  if (at + 1 >= text.length) return 2;
  const letter = text.charAt(at + 1);
  if (letter !== 'u') return '"\\/bfnrt'.includes(letter) ? 2 : 0;
  if (at + 6 > text.length) return 6;
  HEX.lastIndex = at + 2;
  return HEX.test(text) ? 6 : 0;
}

/** How a scan ended: with one whole value (`complete`), inside one (`cut`), or at text that is not JSON (`error`). */
type ScanEnd = 'complete' | 'cut' | 'error';

/**
 * The result of masking JSON: `text` is what was read, masked; `masked` says whether anything was replaced. `errorAt`
 * is the index of the syntax error, or -1.
 */
type MaskedJson = { text: string; end: ScanEnd; errorAt: number; masked: boolean };

type ScanOptions = {
  /** The scan may stop when the output has this many UTF-16 units. */
  maxLength: number;
  /**
   * Masks the decoded text of a string that may be a JSON document itself; returns it unchanged when nothing is secret.
   */
  maskString: (text: string) => string;
  /** The names of members to mask in addition to secret keys. */
  names?: ReadonlySet<string> | undefined;
};

type State = 'first-value' | 'value' | 'first-key' | 'key' | 'colon' | 'after' | 'done';

const LITERALS: Partial<Record<string, string>> = { t: 'true', f: 'false', n: 'null' };

// The backslash is included because an escape may encode any of the others.
const MAY_START_DOCUMENT = new Set(['{', '[', '\\', ' ', '\ufeff']);

/**
 * Masks one JSON text (RFC 8259), which may be truncated anywhere, in one pass: the whole value of a secret key becomes
 * `"***"`, at any depth, and every other byte stays as it was. Nesting uses heap, never stack.
 */
export function scanJson(text: string, options: ScanOptions): MaskedJson {
  return new JsonScanner(text, options).run();
}

class JsonScanner {
  readonly #text: string;
  readonly #options: ScanOptions;
  readonly #inObject: boolean[] = [];
  readonly #pieces: string[] = [];
  #state: State = 'value';
  #at = 0;
  #keptFrom = 0;
  #dropped = 0;
  #secretNext = false;
  /** The depth of the secret value being skipped; -1 outside one. */
  #secretDepth = -1;
  #masked = false;
  #openString = false;

  constructor(text: string, options: ScanOptions) {
    this.#text = text;
    this.#options = options;
  }

  run(): MaskedJson {
    if (this.#text.charCodeAt(0) === 0xfeff) this.#at = 1;
    for (;;) {
      this.#at = skipSpace(this.#text, this.#at);
      if (this.#at >= this.#text.length) return this.#finish(this.#state === 'done' ? 'complete' : 'cut');
      const full = this.#secretDepth === -1 && this.#at - this.#dropped >= this.#options.maxLength;
      if (full) return this.#finish('cut');
      if (!this.#step(this.#text.charAt(this.#at))) return this.#finish('error');
    }
  }

  #finish(end: ScanEnd): MaskedJson {
    if (this.#secretDepth === -1) this.#pieces.push(this.#text.slice(this.#keptFrom, this.#at));
    return { text: this.#pieces.join(''), end, errorAt: end === 'error' ? this.#at : -1, masked: this.#masked };
  }

  /** Consumes one token; returns false when the grammar does not allow it here. */
  #step(char: string): boolean {
    switch (this.#state) {
      case 'first-value':
        return char === ']' ? this.#close(false) : this.#value(char);
      case 'value':
        return this.#value(char);
      case 'first-key':
        return char === '}' ? this.#close(true) : this.#key(char);
      case 'key':
        return this.#key(char);
      case 'colon':
        return char === ':' && this.#punctuation('value');
      case 'after':
        if (char === ',') return this.#punctuation(this.#inObject.at(-1) ? 'key' : 'value');
        return char === '}' ? this.#close(true) : char === ']' && this.#close(false);
      case 'done':
        return false;
      default:
        return this.#state satisfies never;
    }
  }

  #punctuation(next: State): boolean {
    this.#at += 1;
    this.#state = next;
    return true;
  }

  #close(object: boolean): boolean {
    if (this.#inObject.at(-1) !== object) return false;
    this.#inObject.pop();
    return this.#endValue(this.#at + 1);
  }

  #endValue(end: number): boolean {
    this.#at = end;
    this.#state = this.#inObject.length === 0 ? 'done' : 'after';
    if (this.#secretDepth === this.#inObject.length) {
      this.#dropped += end - this.#keptFrom;
      this.#keptFrom = end;
      this.#secretDepth = -1;
    }
    return true;
  }

  #key(char: string): boolean {
    const start = this.#at;
    if (char !== '"' || !this.#string()) return false;
    if (this.#secretDepth === -1) {
      const key = decodeString(this.#text.slice(start + 1, this.#openString ? this.#at : this.#at - 1));
      this.#secretNext = isSecretKey(key) || this.#options.names?.has(key) === true;
    }
    this.#state = 'colon';
    return true;
  }

  #value(char: string): boolean {
    if (this.#secretNext) this.#startSecret();
    if (char === '"') return this.#string() && (this.#openString || this.#endValue(this.#at));
    if (char === '{' || char === '[') {
      this.#inObject.push(char === '{');
      return this.#punctuation(char === '{' ? 'first-key' : 'first-value');
    }
    const literal = LITERALS[char];
    if (literal !== undefined)
      return this.#text.startsWith(literal, this.#at) && this.#endValue(this.#at + literal.length);
    NUMBER.lastIndex = this.#at;
    return NUMBER.test(this.#text) && this.#endValue(NUMBER.lastIndex);
  }

  #startSecret(): void {
    this.#replace(this.#at, this.#at, `"${MASK}"`);
    this.#secretNext = false;
    this.#secretDepth = this.#inObject.length;
  }

  /** Replaces the text from `start` to `end` in the output. */
  #replace(start: number, end: number, replacement: string): void {
    this.#pieces.push(this.#text.slice(this.#keptFrom, start), replacement);
    this.#keptFrom = end;
    this.#dropped += end - start - replacement.length;
    this.#masked = true;
  }

  /**
   * Consumes the string at the current index and masks it as an embedded document; returns false when it is not a valid
   * string.
   */
  #string(): boolean {
    const start = this.#at;
    const end = scanString(this.#text, start);
    if (end === 'invalid') return false;
    this.#openString = end === 'open';
    this.#at = end === 'open' ? this.#text.length : end;
    if (this.#secretDepth !== -1) return true;
    if (!MAY_START_DOCUMENT.has(this.#text.charAt(start + 1))) return true;
    const decoded = decodeString(this.#text.slice(start + 1, this.#openString ? this.#at : this.#at - 1));
    const masked = this.#options.maskString(decoded);
    if (masked !== decoded) {
      const quoted = JSON.stringify(masked);
      this.#replace(start, this.#at, this.#openString ? quoted.slice(0, -1) : quoted);
    }
    return true;
  }
}

// The deepest level of documents within strings of documents that is searched; deeper ones are masked whole.
const MAX_EMBEDDING = 4;

// Matches JSON escapes of printable ASCII, which may spell a secret's name so that it is not recognized.
const ESCAPED_ASCII = /\\u00[2-7]/i;

const DOCUMENT_START = /^\s*[[{"]/;

/** Checks whether the text begins as a JSON object, array or string does. */
export function startsDocument(text: string): boolean {
  return DOCUMENT_START.test(text);
}

/**
 * Masks a JSON text by the names of its keys, including documents inside its strings, and the members called one of
 * `names`. Drops everything from the first syntax error on. The text may be truncated; a secret at its end still
 * becomes `"***"`.
 */
export function maskJson(text: string, maxLength = Number.POSITIVE_INFINITY, names?: ReadonlySet<string>): MaskedJson {
  return scan(text, 0, maxLength, names);
}

/** Masks a JSON document inside another text (a form value, a string); returns other text unchanged. */
export function maskEmbedded(text: string, embedding = 1): string {
  if (!startsDocument(text)) return text;
  if (embedding > MAX_EMBEDDING) return MASK;
  const scanned = scan(text, embedding, Number.POSITIVE_INFINITY);
  if (scanned.end !== 'error') return scanned.text;
  // Much text that begins with a bracket is not JSON: the rest is returned unless it may hold a secret.
  const rest = text.slice(scanned.errorAt);
  const isSuspect = scanned.masked || secretValueAt(rest) !== -1 || ESCAPED_ASCII.test(rest);
  return isSuspect ? scanned.text : scanned.text + rest;
}

function scan(text: string, embedding: number, maxLength: number, names?: ReadonlySet<string>): MaskedJson {
  return scanJson(text, { maxLength, maskString: (inner) => maskEmbedded(inner, embedding + 1), names });
}
