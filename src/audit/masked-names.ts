import { createHash } from 'node:crypto';
import { type Log, withFields } from '../lib/log.ts';
import { deepEscapeAt, MASK, maskValues, spellingsOf, valueAt } from './mask-values.ts';
import {
  FALSE_FRIENDS,
  LABELLED_VALUE,
  LABELS,
  SECRET_ENDINGS,
  SECRET_FORMS,
  SECRET_NAMES,
  TEXT_NAMES,
} from './secret-names.ts';

/** Returns the letters and digits of a name, in NFKC and lower case: names that differ in nothing else are the same. */
export function bareName(name: string): string {
  if (!NON_ASCII.test(name)) return name.toLowerCase().replace(/[^a-z0-9]+/g, '');
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
/** Matches the end of a text before a colon that does not follow at once. */
const SPACED_COLON = /"\s+:/;
/** Matches a list in a list, which may be a name and its value. */
const PAIRS = /[[,]\s*\[/;
/** Matches an assignment, except within a time in ISO 8601, a scheme, and what may be one of them in escapes or other letters. */
const MAY_ASSIGN = /[:=](?<!\d-\d\dT\d\d(?::\d\d){0,2}:)|[^\0-\x7f]|[%\\]|bearer|basic/i;
const MAY_ESCAPE = /[%\\]/;
/** Matches the name of a value that a label beside it describes. */
export const IS_LABELLED = new RegExp(`^(?:${LABELLED_VALUE})$`, 'i');

/** Returns a text in lower case without ligatures and the like; accents follow their letters. */
function folded(text: string): string {
  return NON_ASCII.test(text) ? fewMarks(text).normalize('NFKD').toLowerCase() : text.toLowerCase();
}

/** Matches what may follow the sign of an assignment when no secret does: nothing, a mask, a boolean or null. */
const NO_VALUE = String.raw`(?:["'\s]|\\[bfnrt]?)*(?:$|(?:\*{3}|true|false|null)(?:["'\\\s,;&?#)}\]]|$))`;
const LITERAL = /^(?:true|false|null)$/;
/** Matches a number, which is no seed phrase; one with more digits may be a seed. */
const NUMBER = /^["'\s]*-?[\d.]{1,20}(?:["'\\\s,;&?#)}\]]|$)/;
const ENDINGS = Object.keys(SECRET_ENDINGS).map(bareName);
const FORMS = Object.keys(SECRET_FORMS);
const ENDING = new RegExp(`(?:${ENDINGS.join('|')})s?(?:${FORMS.join('|')})?s?$`);
/** Matches what divides the names of a path: `user[password]`, `user.password`, and `amp;password` of an escaped `&`. */
const DIVIDER = /[[\].:;]/;
/** Matches an element of a list, and a member that says what another holds; of both, the name that may be secret. */
const LABELLED = new RegExp(String.raw`(?:[[,]\s*|"(?:${LABELS.join('|')})\\*"\s*:\s*)\\*(?="([^"]*)")`, 'giu');
const TEXTS: ReadonlySet<string> = new Set(Object.keys(TEXT_NAMES).flatMap((name) => [name, `${name}s`]));
const FRIENDS = Object.keys(FALSE_FRIENDS).flatMap((names) => names.split(', ').map(bareName));

/**
 * How many other characters may stand between two letters of a name, and between a name and the sign of an assignment in
 * text. Where there are more than the first, but for the quotation marks of JSON, any name may be hidden.
 */
const MAX_GAP = 8;
const MAX_BEFORE_SIGN = 40;
/** Stands in a list of names for the beginning of a name that has no other word in front. */
const START = '\u0001';

/**
 * Returns a pattern of `names`, whatever `gap` is between their letters, which shares the endings they have in common.
 * `start` is the pattern of the character `START`, with which a name may begin. V8 takes long for a long pattern: each
 * word is in it once.
 */
function patternOf(names: readonly string[], gap: string, start = ''): string {
  const patterns = [...Map.groupBy(names, (name) => name.at(-1) ?? '')].map(([last, group]) => {
    const before = group.map((name) => name.slice(0, -1));
    return last === START ? start : last && `${patternOf(before, gap, start)}${gap}${last}`;
  });
  return `(?:${patterns.join('|')})`;
}

/** Matches an escape of JSON that ends in a letter; the letter may also belong to a name after a backslash. */
const ESCAPES = [/\\+[bfnrt]/g, /\\(?:\\|[bfnrt])/g];
const LETTER_ESCAPE = /\\[bfnrt]/;

/** The longest text in which a name is searched for before its value, and how many words it may have there. */
const MAX_NAME = 64;
/** A longer name is not searched: its value is masked. */
const MAX_LONG_NAME = 16_384;
const WORDS = [1, 2, 3];
/** How many names of a text are compared; the text is masked from the next name on. */
const MAX_OTHERS = 1_000;
/** For how many names it is remembered whether they are secrets: documents repeat theirs. */
const MAX_KINDS = 1_024;
/** How many texts are remembered, and up to which length. */
const MAX_TEXTS = 1_024;
const MAX_SHORT = 256;

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
  /** Names of members that are no secrets, and that name none. */
  readonly #plainNames = new Set<string>();
  readonly #plainTexts = new Set<string>();
  /** Matches a `:` or `=` after the name of a secret, one that a value follows, and what may hide a name. */
  readonly #sign: RegExp;
  readonly #assignment: RegExp;
  readonly #shortGaps: RegExp;

  constructor({ mask = [], unmask = [] }: NameChanges = {}) {
    this.#added = mask;
    const names = [...Object.keys(SECRET_NAMES), ...mask].map(bareName);
    this.#names = new Set([...names, ...ENDINGS].flatMap((name) => [name, `${name}s`, `x${name}`]));
    this.#shown = new Set([...FRIENDS.filter((name) => !names.includes(name)), ...unmask.map(bareName)]);
    const foldedNames = [...names, ...TEXTS, 'kty'].map((name) => folded(name).replace(/\p{M}+/gu, ''));
    const letters = `a-z0-9${[...new Set(foldedNames.join('').replaceAll(/[a-z0-9]/g, ''))].join('')}`;
    const gap = `[^${letters}]{0,${MAX_GAP}}`;
    const start = String.raw`(?:(?<![${letters}])|(?<=\\[bfnrt]))`;
    const ending = `${patternOf(ENDINGS, gap)}(?:(?:${gap}s)?${patternOf(FORMS, gap)})?`;
    // The others may have no word in front, except an x.
    const others = foldedNames
      .filter((name) => !ENDING.test(name))
      .flatMap((name) => [`${START}${name}`, `${START}x${name}`]);
    const name = `(?:${ending}|${patternOf(others, gap, start)})(?:${gap}s)?(?:${gap}\\d{1,3})?(?<=[${letters}])`;
    const escapes = String.raw`(?:[^${letters}]|(?<=\\)[bfnrt]){0,${MAX_BEFORE_SIGN}}`;
    // A name that another follows in a path is found too.
    this.#sign = new RegExp(`[:=[\\].;](?<=${name}${gap}[:=[\\].;])`);
    this.#assignment = new RegExp(`[:=](?<=${name}${escapes}[:=])(?!${NO_VALUE})`, 'g');
    const apart = `[^${letters}"]`;
    this.#shortGaps = new RegExp(
      `^${apart}{0,${MAX_GAP}}(?:[${letters}"]+${apart}{1,${MAX_GAP}})*[${letters}"]*${apart}*$`,
    );
  }

  /** Returns these names with the changes of an endpoint. */
  with({ mask = [], unmask = [] }: NameChanges): SecretNames {
    return mask.length + unmask.length === 0 ? this : new SecretNames({ mask: [...this.#added, ...mask], unmask });
  }

  /** Returns which values under a decoded name are masked. */
  kindOf(name: string): MaskedKind {
    const known = this.#kinds.get(name);
    if (known !== undefined) return known;
    if (name.length > MAX_LONG_NAME) return 'any';
    const segments = name.slice(name.lastIndexOf('/') + 1).split(DIVIDER);
    const bare = bareName(name);
    const kinds = this.#shown.has(bare) ? [] : [bare, ...segments.map(bareName)].map((part) => this.#readKind(part));
    const kind = kinds.find((candidate) => candidate !== 'none') ?? 'none';
    // To forget all of them now and then costs less than to know which was used last.
    if (this.#kinds.size === MAX_KINDS) this.#kinds.clear();
    if (name.length <= MAX_NAME) this.#kinds.set(name, kind);
    return kind;
  }

  #readKind(bare: string): MaskedKind {
    if (this.#shown.has(bare)) return 'none';
    if (this.#names.has(bare) || ENDING.test(bare)) return 'any';
    // Of several, each has a number; `token0` and `token1` are assets of a pool.
    const counted = bare.replace(/(?<!token)(?<=\D)\d{1,3}$/, '');
    if (counted !== bare) return this.#readKind(counted);
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

  /** Checks whether a value is masked under a decoded name where every value is text, as in a form. */
  isSecret(name: string, value: string): boolean {
    const kind = this.kindOf(name);
    return kind !== 'none' && !LITERAL.test(value) && (kind === 'any' || !NUMBER.test(value));
  }

  /**
   * Checks whether a text may contain a secret by its name, its scheme or its value, however it is escaped; if not, it
   * needs no masking. What names are compared by is all that is searched for, so that none is missed. `isJson` says that
   * the text is valid JSON, or the beginning of it, which is searched string by string. Other short texts are remembered: requests repeat their headers and paths.
   */
  mayHide(text: string, isJson = false): boolean {
    if (isJson || text.length > MAX_SHORT) return this.#search(text, isJson);
    if (this.#plainTexts.has(text)) return false;
    const mayHide = this.#search(text, false);
    if (!mayHide) remember(this.#plainTexts, text);
    return mayHide;
  }

  #search(text: string, isJson: boolean): boolean {
    if (isJson && !SPACED_COLON.test(text)) return this.#searchStrings(text);
    const spellings = spellingsOf(text);
    const isSuspect = (spelled: string, round: number) =>
      this.#mayName(spelled) || this.#mayLabel(spelled) || (round > 0 && valueAt(spelled) !== -1);
    return spellings.some(isSuspect) || deepEscapeAt(text, spellings) !== -1;
  }

  /** Checks whether JSON may contain a secret, by the names of its members and by each of its strings. */
  #searchStrings(json: string): boolean {
    let isLabelled = PAIRS.test(json);
    for (let start = json.indexOf('"'); start !== -1; ) {
      const end = endOfString(json, start + 1);
      const text = json.slice(start + 1, end);
      start = json.indexOf('"', end + 1);
      const isName = json.charAt(end + 1) === ':';
      if (isName && this.#plainNames.has(text)) continue;
      if (isName && (MAY_ESCAPE.test(text) || this.isSecretKey(text) || /^kty$/iu.test(text))) return true;
      if (MAY_ASSIGN.test(text) && this.#search(text, false)) return true;
      if (isName && IS_LABELLED.test(text)) isLabelled = true;
      else if (isName) remember(this.#plainNames, text);
    }
    return isLabelled && this.#mayLabel(json);
  }

  #mayName(text: string): boolean {
    const plain = folded(text);
    if (SCHEME.test(plain) || !this.#shortGaps.test(plain.replaceAll('\\"', '\\_'))) return true;
    const texts = LETTER_ESCAPE.test(plain) ? [plain, ...ESCAPES.map((hidden) => plain.replace(hidden, ' '))] : [plain];
    return texts.some((spelled) => this.#sign.test(spelled));
  }

  /** Returns which values are masked beside the name of a member, or a JSON Pointer (RFC 6901) below one. */
  kindBeside(label: string): MaskedKind {
    return this.kindOf(label.startsWith('/') ? label.replaceAll('/', '.') : label);
  }

  #mayLabel(json: string): boolean {
    const isSecret = ([, name = '']: RegExpExecArray) => name.includes('\\') || this.kindBeside(name) !== 'none';
    return json.includes('"') && json.matchAll(LABELLED).some(isSecret);
  }

  /** Returns the index of the first secret value in free text (`name: value` or `name=value`), or -1. */
  secretValueAt(text: string): number {
    const plain = folded(text);
    this.#assignment.lastIndex = 0;
    let match = this.#assignment.exec(plain);
    for (let attempts = 0; match !== null && attempts < MAX_OTHERS; attempts += 1) {
      const kind = this.#kindBefore(match.index, plain);
      if (kind === 'any' || (kind === 'text' && !NUMBER.test(plain.slice(match.index + 1, match.index + MAX_NAME))))
        break;
      match = this.#assignment.exec(plain);
    }
    if (match === null) return -1;
    // The private members of a JWK may stand before its type.
    const start = KEY_TYPE.test(plain.slice(0, match.index)) ? plain.indexOf('{') : -1;
    return indexIn(text, start === -1 || start > match.index ? match.index + 1 : start + 1, folded);
  }

  /** Returns which values are masked under the name that ends before an index of a folded text. */
  #kindBefore(end: number, text: string): MaskedKind {
    const words = text
      .slice(Math.max(0, end - 2 * MAX_NAME), end)
      .replaceAll(/\\[bfnrt]/g, ' ')
      .split(/[^\p{L}\p{M}\p{N}_-]+/u)
      .map(bareName)
      .filter(Boolean);
    const names = WORDS.map((count) => words.slice(-count).join(''));
    // A longer name that is listed itself is secret, whatever is shown: `card pin` although `pin` is.
    const shownAt = names.findLastIndex((name) => this.#shown.has(name));
    const kinds = names
      .slice(shownAt + 1)
      .map((name) => (name === 'kty' || this.#names.has(name) ? 'any' : shownAt === -1 ? this.kindOf(name) : 'none'));
    return kinds.find((kind) => kind !== 'none') ?? 'none';
  }

  /**
   * Returns the index of the first secret in a text, a header or a URL: a named one, or credentials after their scheme; -1
   * without one.
   */
  #credentialsAt(text: string): number {
    const match = text.matchAll(CREDENTIALS).find(
      ([, bearer, basic = '']) =>
        // A user and password in base64, and no other word.
        bearer ?? (basic.endsWith('=') || Buffer.from(basic, 'base64').includes(':')),
    );
    const credentials = match ? match.index + match[0].length - (match[1] ?? match[2] ?? '').length : -1;
    return firstOf([credentials, this.secretValueAt(text)]);
  }

  /**
   * Masks the values of free text that are secrets under any name, and drops everything from the first named secret on,
   * because nothing says where its value ends; so too from the first secret on that is escaped, even several times.
   */
  maskText(text: string): string {
    const plain = maskValues(text);
    if (!this.mayHide(plain)) return plain;
    const spellings = spellingsOf(plain);
    const places = spellings.map((spelled, round) => {
      const at = firstOf([this.#credentialsAt(spelled), round === 0 ? -1 : valueAt(spelled)]);
      return at === -1
        ? -1
        : indexIn(
            plain,
            at,
            (start) =>
              spellingsOf(start)
                .slice(0, round + 1)
                .at(-1) ?? '',
          );
    });
    const at = firstOf([...places, deepEscapeAt(plain, spellings)]);
    return at === -1 ? plain : plain.slice(0, at) + MASK;
  }
}

/** Adds a short text to a set, which forgets all of them now and then: that costs less than to know which was used last. */
function remember(texts: Set<string>, text: string): void {
  if (texts.size === MAX_TEXTS) texts.clear();
  if (text.length <= MAX_SHORT) texts.add(text);
}

/** Returns where a string of JSON ends whose content begins at an index: at its quotation mark, or where the text is cut off. */
function endOfString(json: string, from: number): number {
  for (let at = json.indexOf('"', from); at !== -1; at = json.indexOf('"', at + 1)) {
    let before = at;
    while (json.charAt(before - 1) === '\\') before -= 1;
    if ((at - before) % 2 === 0) return at;
  }
  return json.length;
}

/** Returns the smallest index that is not -1; -1 without one. */
function firstOf(indexes: readonly number[]): number {
  return indexes.reduce((first, at) => (first === -1 || (at !== -1 && at < first) ? at : first), -1);
}

/** Matches the name of a JWK's type at the end of a text. */
const KEY_TYPE = /kty\W*$/;

/** Returns the index in a text of what has an index in the text as it is spelled. */
function indexIn(text: string, at: number, spell: (text: string) => string): number {
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spell(text.slice(0, middle)).length < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Matches an authentication scheme before its credentials, which may appear under any name. */
const CREDENTIALS = /\b(?:bearer[\s+:=,]+([\w.~+/-]{8,}|[\w.~+/-]+$)|basic[\s+:=,]+([\w+/-]{8,}={0,2}))/gi;
const SCHEME = /bearer|basic/;

/** The names of `secret-names.ts`. */
export const SECRETS: SecretNames = new SecretNames();

/** The number of hexadecimal digits of the hash: enough to tell requests apart. */
const KEY_DIGITS = 16;

/**
 * Returns the form of a correlation id for log and audit: the id itself, or, if it contains a JWT or another value that
 * is masked, `jwt:` and the beginning of its SHA-256, by which those who have the id find the record.
 */
export function correlationKey(correlationId: string): string {
  return maskValues(correlationId) === correlationId ? correlationId : correlationHash(correlationId);
}

/** Returns the form in which a correlation id with a secret is stored. */
export function correlationHash(correlationId: string): string {
  return `jwt:${createHash('sha256').update(correlationId).digest('hex').slice(0, KEY_DIGITS)}`;
}

/** A secret of fewer characters may be part of an id by chance. */
const LEAST_PART = 8;

/**
 * Returns a correlation id in the form that everyone but its caller and the upstream may see: its hash if it is, or
 * contains, a secret of its own request, however it is escaped. Values that are not texts are no secrets.
 */
export function withoutOwnSecrets(correlationId: string, secrets: readonly unknown[]): string {
  // Node reads a header as Latin-1, whatever its sender has written.
  const spellings = [correlationId, Buffer.from(correlationId, 'latin1').toString()].flatMap(spellingsOf);
  return secrets.some(
    (secret) =>
      typeof secret === 'string' &&
      spellings.some((id) => id === secret || (secret.length >= LEAST_PART && id.includes(secret))),
  )
    ? correlationHash(correlationId)
    : correlationId;
}

/** Returns a log that replaces `correlation_id` by its `correlationKey`. */
export function keyedLog(log: Log): Log {
  return withFields(log, (fields) => {
    if (!('correlation_id' in fields) || typeof fields.correlation_id !== 'string') return fields;
    const key = correlationKey(fields.correlation_id);
    return key === fields.correlation_id ? fields : { ...fields, correlation_id: key };
  });
}
