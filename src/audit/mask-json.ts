import { isSecretKey, MASK, secretValueAt } from './mask-keys.ts';

/**
 * What is hidden of a JSON value beside the values of secret keys. Lists are looked through: a rule holds for each of
 * their items.
 */
export type JsonRule =
  /** The whole value. */
  | { kind: 'hidden' }
  /** Every string, at any depth, becomes what `mask` makes of its decoded text; one that is cut becomes `***`. */
  | { kind: 'text'; mask: (text: string) => string }
  /** The members of an object, each by its own rule; `others` holds for those without one. */
  | { kind: 'members'; members: ReadonlyMap<string, JsonRule>; others?: JsonRule };

/** Hides a whole value. */
export const HIDDEN: JsonRule = { kind: 'hidden' };

/** Hides every string, and keeps the form, the names, numbers and literals. */
export const EVERY_STRING: JsonRule = { kind: 'text', mask: () => MASK };

/** The rule of members by name. */
export function membersRule(members: Readonly<Record<string, JsonRule | undefined>>, others?: JsonRule): JsonRule {
  const given = Object.entries(members).flatMap(([name, rule]) => (rule === undefined ? [] : [[name, rule] as const]));
  return { kind: 'members', members: new Map(given), ...(others && { others }) };
}

/** The rule for a member of an object that has a rule itself. */
function ruleOfMember(rule: JsonRule | undefined, name: string): JsonRule | undefined {
  switch (rule?.kind) {
    case undefined:
      return undefined;
    case 'members':
      return rule.members.get(name) ?? rule.others;
    case 'hidden':
    case 'text':
      return rule;
    default:
      return rule satisfies never;
  }
}

/** A number of RFC 8259, at `lastIndex`. */
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

const HEX = /[0-9a-fA-F]{4}/y;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The index of the first character at or after `at` that is not white space (RFC 8259 section 2). */
function skipSpace(text: string, at: number): number {
  let next = at;
  for (;;) {
    const code = text.charCodeAt(next);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return next;
    next += 1;
  }
}

/**
 * Reads the string whose opening quote is at `start`: the index behind its closing quote, `'open'` when the text ends
 * inside it, `'invalid'` when it holds what RFC 8259 section 7 forbids.
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

/** The characters that a scanned string's `content`, between its quotes, spells; a cut escape at its end is left out. */
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

/** The length of the escape at `at`, also when the text ends inside it; 0 when there is no such escape. */
function escapeWidth(text: string, at: number): number {
  if (at + 1 >= text.length) return 2;
  const letter = text.charAt(at + 1);
  if (letter !== 'u') return '"\\/bfnrt'.includes(letter) ? 2 : 0;
  if (at + 6 > text.length) return 6;
  HEX.lastIndex = at + 2;
  return HEX.test(text) ? 6 : 0;
}

/** `complete`: one whole value was read; `cut`: the text ended inside it; `error`: it stopped being JSON at `errorAt`. */
type ScanEnd = 'complete' | 'cut' | 'error';

/** `text` holds everything before the end, masked; `masked` says whether anything was replaced or seen under a secret key. */
type MaskedJson = { text: string; end: ScanEnd; errorAt: number; masked: boolean };

type ScanOptions = {
  /** The scan may stop once this many UTF-16 units are known. */
  maxLength: number;
  /** Masks the decoded text of a string that may be a document itself; returns its argument when nothing is to hide. */
  maskString: (text: string) => string;
  /** What else is hidden. */
  rule?: JsonRule | undefined;
};

type State = 'first-value' | 'value' | 'first-key' | 'key' | 'colon' | 'after' | 'done';

const LITERALS: Partial<Record<string, string>> = { t: 'true', f: 'false', n: 'null' };

// An escape may spell any of the others.
const MAY_START_DOCUMENT = new Set(['{', '[', '\\', ' ', '\ufeff']);

/**
 * Masks one JSON text (RFC 8259), which may be cut anywhere, in one pass: the whole value of a secret key becomes
 * `"***"`, at any depth, and every other byte stays as it was. Nesting costs heap, never stack.
 */
export function scanJson(text: string, options: ScanOptions): MaskedJson {
  return new JsonScanner(text, options).run();
}

class JsonScanner {
  readonly #text: string;
  readonly #options: ScanOptions;
  readonly #inObject: boolean[] = [];
  /** The rule of each object and list that is open, if any can have one, and the one of the member that comes. */
  readonly #rules: (JsonRule | undefined)[] | undefined;
  #ruleNext: JsonRule | undefined;
  readonly #pieces: string[] = [];
  #state: State = 'value';
  #at = 0;
  #keptFrom = 0;
  #dropped = 0;
  #secretNext = false;
  /** The depth of the secret value being skipped, or -1. */
  #secretDepth = -1;
  #masked = false;
  #openString = false;

  constructor(text: string, options: ScanOptions) {
    this.#text = text;
    this.#options = options;
    this.#ruleNext = options.rule;
    this.#rules = options.rule && [];
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

  /** Takes one token; false when it cannot stand here. */
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
    this.#rules?.pop();
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
      if (this.#rules) this.#ruleNext = ruleOfMember(this.#rules.at(-1), key);
      this.#secretNext = isSecretKey(key) || this.#ruleNext?.kind === 'hidden';
    }
    this.#state = 'colon';
    return true;
  }

  #value(char: string): boolean {
    if (this.#secretNext) this.#startSecret();
    const rule = this.#rules && this.#inObject.at(-1) === false ? this.#rules.at(-1) : this.#ruleNext;
    if (char === '"') return this.#string(rule) && (this.#openString || this.#endValue(this.#at));
    if (char === '{' || char === '[') {
      this.#inObject.push(char === '{');
      this.#rules?.push(rule);
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

  /** Puts `replacement` in the place of the text from `start` to `end`. */
  #replace(start: number, end: number, replacement: string): void {
    this.#pieces.push(this.#text.slice(this.#keptFrom, start), replacement);
    this.#keptFrom = end;
    this.#dropped += end - start - replacement.length;
    this.#masked = true;
  }

  /** Moves behind the string at the cursor and masks what its rule says, or the document it may be; false when it is not a string. */
  #string(rule?: JsonRule): boolean {
    const start = this.#at;
    const end = scanString(this.#text, start);
    if (end === 'invalid') return false;
    this.#openString = end === 'open';
    this.#at = end === 'open' ? this.#text.length : end;
    if (this.#secretDepth !== -1) return true;
    const isRuled = rule?.kind === 'text';
    if (!isRuled && !MAY_START_DOCUMENT.has(this.#text.charAt(start + 1))) return true;
    const decoded = decodeString(this.#text.slice(start + 1, this.#openString ? this.#at : this.#at - 1));
    const masked = isRuled ? this.#ruled(rule.mask, decoded) : this.#options.maskString(decoded);
    if (masked !== decoded) {
      const quoted = JSON.stringify(masked);
      this.#replace(start, this.#at, this.#openString ? quoted.slice(0, -1) : quoted);
    }
    return true;
  }

  /** What is left of a cut text says nothing of what it was. */
  #ruled(mask: (text: string) => string, decoded: string): string {
    return this.#openString ? MASK : mask(decoded);
  }
}

// A document inside a string of a document …; deeper ones are replaced whole.
const MAX_EMBEDDING = 4;

// May spell a secret's name in letters that cannot be seen.
const ESCAPED_ASCII = /\\u00[2-7]/i;

const DOCUMENT_START = /^\s*[[{"]/;

/** Whether the text begins as a JSON object, array or string does. */
export function startsDocument(text: string): boolean {
  return DOCUMENT_START.test(text);
}

/**
 * Masks a JSON text by the names of its keys, also in documents inside its strings, and by a rule. From the first
 * syntax error on, the rest is dropped. The text may be a prefix of the real one: a secret that it cuts shows as `"***"`.
 */
export function maskJson(text: string, maxLength = Number.POSITIVE_INFINITY, rule?: JsonRule): MaskedJson {
  return scan(text, 0, maxLength, rule);
}

/** Masks a text that is a document inside another one (a form's value, a string); other text comes back as it is. */
export function maskEmbedded(text: string, embedding = 1): string {
  if (!startsDocument(text)) return text;
  if (embedding > MAX_EMBEDDING) return MASK;
  const scanned = scan(text, embedding, Number.POSITIVE_INFINITY);
  if (scanned.end !== 'error') return scanned.text;
  // Much text that begins with a bracket was never JSON: it stays, unless what follows may hold a secret.
  const rest = text.slice(scanned.errorAt);
  const isSuspect = scanned.masked || secretValueAt(rest) !== -1 || ESCAPED_ASCII.test(rest);
  return isSuspect ? scanned.text : scanned.text + rest;
}

function scan(text: string, embedding: number, maxLength: number, rule?: JsonRule): MaskedJson {
  return scanJson(text, { maxLength, maskString: (inner) => maskEmbedded(inner, embedding + 1), rule });
}
