import { createHash } from 'node:crypto';
import { type Log, withFields } from '../lib/log.ts';
import { MASK, maskValues } from './mask-values.ts';
import { SECRET_ENDINGS, SECRET_NAMES, TEXT_NAMES } from './secret-names.ts';

/** Returns the letters and digits of a name, in NFKC and lower case: names that differ in nothing else are the same. */
export function bareName(name: string): string {
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '');
}

/** Returns the last word of a name: `key` of `private_key` and `privateKey`. */
function lastWord(name: string): string {
  return name.match(/\p{Lu}?[\p{Ll}\p{N}]+|[\p{L}\p{N}]+/gu)?.at(-1) ?? '';
}

/** Matches quotes, brackets, escapes or white space, then `:` or `=`, unless a mask is all that follows. */
const VALUE_START = String.raw`(?:["'\s[\]]|\\[nrt]?)*[:=](?!(?:["'\s]|\\[nrt]?)*\*{3}(?:["'\\\s,;&)}\]]|$))`;
const ENDING = new RegExp(`(?:${Object.keys(SECRET_ENDINGS).map(bareName).join('|')})$`);
const TEXTS: ReadonlySet<string> = new Set(Object.keys(TEXT_NAMES));

/** Matches a full-width letter or digit. */
const FULL_WIDTH = /[\uff10-\uff5a]/;

/** The longest name that is found in a text, and how many words it may have there. */
const MAX_NAME = 64;
const WORDS = [1, 2, 3];
/** How many names of a text are compared; it is masked from the next one on, whatever that is. */
const MAX_OTHERS = 1_000;
/** For how many names it is remembered whether they are secrets: documents repeat theirs. */
const MAX_KINDS = 1_024;

/** Names that a configuration adds to those that are masked, and names that it takes back. */
export interface NameChanges {
  readonly mask?: readonly string[] | undefined;
  readonly unmask?: readonly string[] | undefined;
}

/** Which values under a name are masked: all but booleans and null, only text, or none. */
export type MaskedKind = 'any' | 'text' | 'none';

/** The names of the values that are masked: those of `secret-names.ts`, changed by a configuration. */
export class SecretNames {
  readonly #added: readonly string[];
  readonly #names: ReadonlySet<string>;
  readonly #shown: ReadonlySet<string>;
  readonly #kinds = new Map<string, MaskedKind>();
  /** Matches the last word of a name with the character after it, and before a value. */
  readonly #word: RegExp;
  readonly #assignment: RegExp;

  constructor({ mask = [], unmask = [] }: NameChanges = {}) {
    this.#added = mask;
    const names = [...Object.keys(SECRET_NAMES), ...mask];
    this.#names = new Set(names.map(bareName).flatMap((name) => [name, `${name}s`, `x${name}`]));
    this.#shown = new Set(unmask.map(bareName));
    const words = [...names, ...TEXTS, ...Object.keys(SECRET_ENDINGS)].map(lastWord);
    const last = `(?:${[...new Set(words)].join('|')})s?`;
    this.#word = new RegExp(String.raw`(?:${last}[_-]*|kty)[^\w-]`, 'gi');
    this.#assignment = new RegExp(`${last}(?=(${VALUE_START}))`, 'gi');
  }

  /** Returns these names with the changes of an endpoint. */
  with({ mask = [], unmask = [] }: NameChanges): SecretNames {
    return mask.length + unmask.length === 0 ? this : new SecretNames({ mask: [...this.#added, ...mask], unmask });
  }

  /** Returns which values under a decoded name are masked. */
  kindOf(name: string): MaskedKind {
    const known = this.#kinds.get(name);
    if (known !== undefined) return known;
    const kind = this.#readKind(bareName(name));
    // To forget all of them now and then costs less than to know which was used last.
    if (this.#kinds.size === MAX_KINDS) this.#kinds.clear();
    if (name.length <= MAX_NAME) this.#kinds.set(name, kind);
    return kind;
  }

  #readKind(bare: string): MaskedKind {
    if (this.#shown.has(bare)) return 'none';
    if (this.#names.has(bare) || ENDING.test(bare)) return 'any';
    return TEXTS.has(bare.replace(/^x/, '')) ? 'text' : 'none';
  }

  /** Checks whether text under a decoded name is masked. */
  isSecretKey(name: string): boolean {
    return this.kindOf(name) !== 'none';
  }

  /** Checks whether a well-formed JSON or GraphQL text may contain the name of a secret; if not, it needs no masking. */
  mayNameSecret(text: string): boolean {
    return text.includes('\\u') || FULL_WIDTH.test(text) || this.#firstName(this.#word, text) !== null;
  }

  /** Returns the index of the first secret value in free text (`name: value` or `name=value`), or -1. */
  secretValueAt(text: string): number {
    const match = this.#firstName(this.#assignment, text);
    return match === null ? -1 : match.index + match[0].length + (match[1]?.length ?? 0);
  }

  /** Returns the first match that ends the name of a secret, or may hide one, or comes after too many others. */
  #firstName(pattern: RegExp, text: string): RegExpExecArray | null {
    pattern.lastIndex = 0;
    let match = pattern.exec(text);
    for (let others = 0; match !== null && others < MAX_OTHERS; others += 1) {
      if (this.#isNameTo(pattern.lastIndex, text)) break;
      match = pattern.exec(text);
    }
    return match;
  }

  /** Checks whether the name of a secret ends at an index of a text, or one character before it. */
  #isNameTo(end: number, text: string): boolean {
    const before = text.slice(Math.max(0, end - MAX_NAME), end);
    if (/kty\W?$/i.test(before)) return true;
    const words = before
      .replaceAll(/\\[nrt]/g, ' ')
      .split(/[^\w-]+/)
      .filter((word) => word !== '');
    const names = WORDS.map((count) => words.slice(-count).join(''));
    return names.some((name) => this.isSecretKey(name)) && !names.some((name) => this.#shown.has(bareName(name)));
  }

  /**
   * Returns the index of the first secret in a header or URL: a named one, or credentials after their scheme; -1 without
   * one.
   */
  credentialsAt(text: string): number {
    const match = CREDENTIALS.exec(text);
    const found = [this.secretValueAt(text), match === null ? -1 : match.index + match[0].length].filter(
      (at) => at !== -1,
    );
    return found.length === 0 ? -1 : Math.min(...found);
  }

  /** Masks free text by dropping everything after the first secret's name, because nothing says where its value ends. */
  maskText(text: string): string {
    const at = this.secretValueAt(text);
    return at === -1 ? text : text.slice(0, at) + MASK;
  }
}

/** Matches an authentication scheme before its credentials, which may appear in headers other than `Authorization`. */
const CREDENTIALS = /\b(?:bearer|basic)[\s+:=,]+(?=[^\s+:=,])/i;

/** The names of `secret-names.ts`. */
export const SECRETS: SecretNames = new SecretNames();

/** The number of hexadecimal digits of the hash: enough to tell requests apart. */
const KEY_DIGITS = 16;

/**
 * Returns the form of a correlation id for log and audit: the id itself, or, if it contains a JWT or another value that
 * is masked, `jwt:` and the beginning of its SHA-256, by which those who have the id find the record.
 */
export function correlationKey(correlationId: string): string {
  if (maskValues(correlationId) === correlationId) return correlationId;
  return `jwt:${createHash('sha256').update(correlationId).digest('hex').slice(0, KEY_DIGITS)}`;
}

/** Returns a log that replaces `correlation_id` by its `correlationKey`. */
export function keyedLog(log: Log): Log {
  return withFields(log, keyed);
}

function keyed(fields: object): object {
  if (!('correlation_id' in fields) || typeof fields.correlation_id !== 'string') return fields;
  const key = correlationKey(fields.correlation_id);
  return key === fields.correlation_id ? fields : { ...fields, correlation_id: key };
}
