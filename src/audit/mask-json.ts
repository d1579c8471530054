import { JsonScanner, type ScanEnd } from '../lib/json-scanner.ts';
import { isSecretKey, MASK, secretValueAt } from './mask-keys.ts';

/**
 * The result of masking JSON: `text` is what was read, masked; `masked` says whether anything was replaced. `end` says how
 * the scan ended, and `endAt` where.
 */
type MaskedJson = { text: string; end: ScanEnd; endAt: number; masked: boolean };

type MaskOptions = {
  /** The number of documents in whose strings the text is. */
  embedding: number;
  /** Masking may stop when the output has this many UTF-16 units. */
  maxLength?: number | undefined;
  /** The names of members to mask in addition to secret keys. */
  names?: ReadonlySet<string> | undefined;
};

// The backslash is included because an escape may encode any of the others.
const MAY_START_DOCUMENT = new Set(['{', '[', '\\', ' ', '\ufeff']);

/** Masks one JSON text in one pass; every byte that is not replaced stays as it was. */
class JsonMasker {
  readonly #text: string;
  readonly #options: MaskOptions;
  readonly #scanner: JsonScanner;
  readonly #pieces: string[] = [];
  #keptFrom = 0;
  #dropped = 0;
  #isSecretNext = false;
  /** The depth at which the secret value being skipped stands; -1 outside one. */
  #secretDepth = -1;

  constructor(text: string, options: MaskOptions) {
    this.#text = text;
    this.#options = options;
    this.#scanner = new JsonScanner(text, text.charCodeAt(0) === 0xfeff ? 1 : 0);
  }

  run(): MaskedJson {
    const scanner = this.#scanner;
    const { maxLength = Number.POSITIVE_INFINITY } = this.#options;
    while (this.#secretDepth !== -1 || scanner.end - this.#dropped < maxLength) {
      const token = scanner.next();
      switch (token) {
        case 'complete':
        case 'cut':
        case 'error':
          if (token === 'error' && this.#isSecretNext && scanner.isBeforeValue) this.#startSecret(scanner.depth);
          return this.#finish(token, scanner.start);
        case 'name':
          if (this.#secretDepth === -1) this.#name();
          break;
        case '{':
        case '[':
          if (this.#isSecretNext) this.#startSecret(scanner.depth - 1);
          break;
        default:
          if (this.#isSecretNext) this.#startSecret(scanner.depth);
          else if (token === 'string' && this.#secretDepth === -1) this.#maskString();
          if (this.#secretDepth === scanner.depth && !scanner.isOpen) this.#endSecret();
      }
    }
    return this.#finish('cut', scanner.end);
  }

  #finish(end: ScanEnd, endAt: number): MaskedJson {
    const isMasked = this.#pieces.length > 0;
    if (this.#secretDepth === -1) this.#pieces.push(this.#text.slice(this.#keptFrom, endAt));
    return { text: this.#pieces.join(''), end, endAt, masked: isMasked };
  }

  #name(): void {
    const name = this.#scanner.string;
    this.#maskString();
    this.#isSecretNext = isSecretKey(name) || this.#options.names?.has(name) === true;
  }

  #startSecret(depth: number): void {
    const { start } = this.#scanner;
    this.#replace(start, start, `"${MASK}"`);
    this.#isSecretNext = false;
    this.#secretDepth = depth;
  }

  #endSecret(): void {
    this.#dropped += this.#scanner.end - this.#keptFrom;
    this.#keptFrom = this.#scanner.end;
    this.#secretDepth = -1;
  }

  /** Masks the string that was read last as an embedded document. */
  #maskString(): void {
    const { start, end, isOpen } = this.#scanner;
    if (!MAY_START_DOCUMENT.has(this.#text.charAt(start + 1))) return;
    const { string } = this.#scanner;
    const masked = maskEmbedded(string, this.#options.embedding + 1);
    if (masked === string) return;
    const quoted = JSON.stringify(masked);
    this.#replace(start, end, isOpen ? quoted.slice(0, -1) : quoted);
  }

  /** Replaces the text from `start` to `end` in the output. */
  #replace(start: number, end: number, replacement: string): void {
    this.#pieces.push(this.#text.slice(this.#keptFrom, start), replacement);
    this.#keptFrom = end;
    this.#dropped += end - start - replacement.length;
  }
}

// The deepest level of documents within strings of documents that is searched; deeper ones are masked whole.
const MAX_EMBEDDING = 4;

// Matches JSON escapes of printable ASCII and white space, which may hide the name of a secret or the colon behind it.
const ESCAPED_ASCII = /\\u00(?:[2-7]|0[9ad])/i;

const DOCUMENT_START = /^\s*[[{"]/;

/** Checks whether the text begins as a JSON object, array or string does. */
export function startsDocument(text: string): boolean {
  return DOCUMENT_START.test(text);
}

/**
 * Masks a JSON text by the names of its keys, including documents inside its strings, and the members called one of
 * `names`: the whole value becomes `"***"`, at any depth. Drops everything from the first syntax error on. The text may be
 * truncated; a secret at its end still becomes `"***"`.
 */
export function maskJson(text: string, maxLength?: number, names?: ReadonlySet<string>): MaskedJson {
  return new JsonMasker(text, { embedding: 0, maxLength, names }).run();
}

/** Masks a JSON document inside another text (a form value, a string); returns other text unchanged. */
export function maskEmbedded(text: string, embedding = 1): string {
  if (!startsDocument(text)) return text;
  if (embedding > MAX_EMBEDDING) return MASK;
  const scanned = new JsonMasker(text, { embedding }).run();
  if (scanned.end !== 'error') return scanned.text;
  // Much text that begins with a bracket is not JSON: the rest is returned unless it may hold a secret.
  const rest = text.slice(scanned.endAt);
  const isSuspect = scanned.masked || secretValueAt(rest) !== -1 || ESCAPED_ASCII.test(rest);
  return isSuspect ? scanned.text : scanned.text + rest;
}
