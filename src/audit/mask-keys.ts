import { createHash } from 'node:crypto';
import { type Log, withFields } from '../lib/log.ts';
import { MASK, maskValues } from './mask-values.ts';
import { FALSE_FRIENDS, SECRET_ENDINGS, SECRET_NAMES, TEXT_NAMES } from './secret-names.ts';

/** Returns the letters and digits of a name, in NFKC and lower case: names that differ in nothing else are the same. */
export function bareName(name: string): string {
  return fewMarks(name)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '');
}

/** Returns a text with few combining marks in a row: `normalize` sorts them, in a time that grows with their square. */
function fewMarks(text: string): string {
  return NON_ASCII.test(text) ? text.replaceAll(/(\p{M}{4})\p{M}+/gu, '$1') : text;
}

const NON_ASCII = /[^\0-\x7f]/;

/** Returns a text in lower case without ligatures and the like; accents follow their letters. */
function folded(text: string): string {
  return fewMarks(text).normalize('NFKD').toLowerCase();
}

/** Matches what may follow the sign of an assignment when no secret does: nothing, or a mask. */
const NO_VALUE = String.raw`(?:["'\s]|\\[bfnrt]?)*(?:$|\*{3}(?:["'\\\s,;&)}\]]|$))`;
const ENDINGS = Object.keys(SECRET_ENDINGS).map(bareName);
const ENDING = new RegExp(`(?:${ENDINGS.join('|')})s?$`);
const TEXTS: ReadonlySet<string> = new Set(Object.keys(TEXT_NAMES).flatMap((name) => [name, `${name}s`]));
const FRIENDS = Object.keys(FALSE_FRIENDS).flatMap((names) => names.split(', ').map(bareName));

/** How many other characters may stand between two letters of a name. Where there are more, any name may be hidden. */
const MAX_GAP = 40;
/** Stands in a list of names for the beginning of a name that has no other word in front. */
const START = '^';

/** Returns a pattern of `names`, whatever stands between their letters, which shares the endings they have in common. */
function patternOf(names: readonly string[], letters: string): string {
  const groups = Map.groupBy(names, (name) => name.at(-1));
  const patterns = [...groups].map(([last, group]) => {
    if (last === undefined) return '';
    if (last === START) return String.raw`(?:(?<![${letters}])|(?<=\\[bfnrt]))`;
    const before = group.map((name) => name.slice(0, -1));
    return `${patternOf(before, letters)}[^${letters}]{0,${MAX_GAP}}${last}`;
  });
  return `(?:${patterns.join('|')})`;
}

/** Matches an escape of JSON that ends in a letter; the letter may also belong to a name after a backslash. */
const ESCAPES = [/\\+[bfnrt]/g, /\\(?:\\|[bfnrt])/g];
const LETTER_ESCAPE = /\\[bfnrt]/;

/** The longest text in which a name is searched for before its value, and how many words it may have there. */
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
  /** Matches a `:` or `=` after the name of a secret, one that a value follows, and what may hide a name. */
  readonly #sign: RegExp;
  readonly #assignment: RegExp;
  readonly #longGap: RegExp;

  constructor({ mask = [], unmask = [] }: NameChanges = {}) {
    this.#added = mask;
    const names = [...Object.keys(SECRET_NAMES), ...mask].map(bareName);
    this.#names = new Set([...names, ...ENDINGS].flatMap((name) => [name, `${name}s`, `x${name}`]));
    this.#shown = new Set([...FRIENDS.filter((name) => !names.includes(name)), ...unmask.map(bareName)]);
    const whole = [...names, ...TEXTS, 'kty'].map((name) => folded(name).replace(/\p{M}+/gu, ''));
    const letters = `a-z0-9${[...new Set(whole.join('').replaceAll(/[a-z0-9]/g, ''))].join('')}`;
    const all = [...ENDINGS, ...whole.flatMap((name) => [`${START}${name}`, `${START}x${name}`])];
    const sign = `[:=](?<=${patternOf(all, letters)}s?(?<=[${letters}])[^${letters}]{0,${MAX_GAP}}[:=])`;
    this.#sign = new RegExp(sign);
    this.#assignment = new RegExp(`${sign}(?!${NO_VALUE})`, 'g');
    this.#longGap = new RegExp(`[^${letters}]{${MAX_GAP + 1}}`);
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

  /** Checks whether a name is listed itself, and does not only end in a listed name. */
  isListed(name: string): boolean {
    return this.#names.has(bareName(name));
  }

  /** Checks whether text under a decoded name is masked. */
  isSecretKey(name: string): boolean {
    return this.kindOf(name) !== 'none';
  }

  /**
   * Checks whether a well-formed JSON or GraphQL text may contain a secret by its name or its scheme; if not, it needs no
   * masking. What names are compared by is all that is searched for, so that none is missed.
   */
  mayNameSecret(text: string): boolean {
    const plain = folded(text);
    if (plain.includes('\\u') || SCHEME.test(plain) || this.#longGap.test(plain)) return true;
    const texts = LETTER_ESCAPE.test(plain) ? [plain, ...ESCAPES.map((hidden) => plain.replace(hidden, ' '))] : [plain];
    return texts.some((spelled) => this.#sign.test(spelled));
  }

  /** Returns the index of the first secret value in free text (`name: value` or `name=value`), or -1. */
  secretValueAt(text: string): number {
    const plain = folded(text);
    this.#assignment.lastIndex = 0;
    let match = this.#assignment.exec(plain);
    for (let others = 0; match !== null && others < MAX_OTHERS; others += 1) {
      if (this.#isNameTo(match.index, plain)) break;
      match = this.#assignment.exec(plain);
    }
    if (match === null) return -1;
    // The private members of a JWK may stand before its type.
    const start = KEY_TYPE.test(plain.slice(0, match.index)) ? plain.indexOf('{') : -1;
    return indexIn(text, start === -1 || start > match.index ? match.index + 1 : start + 1);
  }

  /** Checks whether the name of a secret ends before an index of a folded text. */
  #isNameTo(end: number, text: string): boolean {
    const before = text.slice(Math.max(0, end - 2 * MAX_NAME), end).replaceAll(/\\[bfnrt]/g, ' ');
    const words = before
      .split(/[^\p{L}\p{M}\p{N}_-]+/u)
      .map(bareName)
      .filter(Boolean);
    const names = WORDS.map((count) => words.slice(-count).join(''));
    // A longer name that is listed itself is secret, whatever is shown: `card pin` although `pin` is.
    const shownAt = names.findLastIndex((name) => this.#shown.has(name));
    return names
      .slice(shownAt + 1)
      .some((name) => name === 'kty' || (shownAt === -1 ? this.isSecretKey(name) : this.#names.has(name)));
  }

  /**
   * Returns the index of the first secret in a text, a header or a URL: a named one, or credentials after their scheme; -1
   * without one.
   */
  credentialsAt(text: string): number {
    const match = text.matchAll(CREDENTIALS).find(([, bearer, basic = '']) => bearer ?? isBasic(basic));
    const at = this.secretValueAt(text);
    if (match === undefined) return at;
    const credentials = match.index + match[0].length - (match[1] ?? match[2] ?? '').length;
    return at === -1 ? credentials : Math.min(at, credentials);
  }

  /** Masks free text by dropping everything after the first secret's name, because nothing says where its value ends. */
  maskText(text: string): string {
    const at = this.credentialsAt(text);
    return at === -1 ? text : text.slice(0, at) + MASK;
  }
}

/** Matches the name of a JWK's type at the end of a text. */
const KEY_TYPE = /kty\W*$/;

/** Returns the index in a text of what has an index in the folded text. */
function indexIn(text: string, at: number): number {
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (folded(text.slice(0, middle)).length < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Matches an authentication scheme before its credentials, which may appear under any name. */
const CREDENTIALS = /\b(?:bearer[\s+:=,]+([\w.~+/-]{8,}|[\w.~+/-]+$)|basic[\s+:=,]+([\w+/-]{8,}={0,2}))/gi;
const SCHEME = /bearer|basic/;

/** Checks whether a text is a user and password in base64, and no other word. */
function isBasic(text: string): boolean {
  return text.endsWith('=') || Buffer.from(text, 'base64').includes(':');
}

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
