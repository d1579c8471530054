import { type JsonRule, ruleOfMember } from './mask-json-rules.ts';
import { decodeString, NUMBER, scanString, skipSpace } from './mask-json-tokens.ts';
import { isSecretKey, MASK } from './mask-keys.ts';

/** `complete`: one whole value was read; `cut`: the text ended inside it; `error`: it stopped being JSON at `errorAt`. */
export type ScanEnd = 'complete' | 'cut' | 'error';

/** `text` holds everything before the end, masked; `masked` says whether anything was replaced or seen under a secret key. */
export type MaskedJson = { text: string; end: ScanEnd; errorAt: number; masked: boolean };

export type ScanOptions = {
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
