import { spellingsOf } from '../../audit/mask-form.ts';
import { MASK } from '../../audit/mask-keys.ts';
import { ExactNumber, isNestedBeyond, parseJson } from '../../lib/json.ts';

/** The personal data of a user; an empty text means no value. */
export interface PersonalData {
  email: string;
  externalId: string;
  name: string;
  surname: string;
  address: string;
}

const MEMBERS: Readonly<Record<string, keyof PersonalData>> = {
  email: 'email',
  external_id: 'externalId',
  externalId: 'externalId',
  name: 'name',
  surname: 'surname',
  address: 'address',
  wallet_address: 'address',
  walletAddress: 'address',
};

/** Matches a string literal of a GraphQL document, or the value of a `name=value` pair. */
const ASKED = /"((?:[^"\\]|\\.)*)"|=([^&#=]*)/g;

/**
 * The length, in characters, from which a text identifies a user wherever it appears. A shorter one is in many texts by
 * chance, so it counts only as a whole word.
 */
const IDENTIFYING_LENGTH = 6;

/**
 * The deepest nesting of JSON that is processed. The code is recursive: thousands of levels would overflow the stack.
 */
const MAX_LEVELS = 500;

/** The direction of a stored text: `asked` is a request's, `told` is a response's. */
export type TextSide = 'asked' | 'told';

/**
 * Removes a user's personal data from a stored JSON text (or JSON lines). Members with the name and value of the user's
 * data are emptied, and so is every text that is or mentions one of the names, or contains the email or wallet address.
 * In a request (`asked`), so is every text that is part of one of the values, such as a search term, or contains such a
 * literal. Returns null when the text is not JSON, is nested too deeply, or would still identify the user: then nothing
 * of it may stay stored.
 */
export function erasedText(text: string, data: PersonalData, side: TextSide = 'told'): string | null {
  if (isNestedBeyond(text, MAX_LEVELS)) return null;
  const whole = parsed(text);
  if (whole === undefined) return erasedLines(text, data, side);
  const erased = JSON.stringify(erasedValue(whole.value, undefined, data, side));
  if (isTelling(erased, data)) return null;
  // Keeps the original formatting when nothing was removed.
  return erased === JSON.stringify(whole.value) ? text : erased;
}

function erasedLines(text: string, data: PersonalData, side: TextSide): string | null {
  const lines = text.split('\n');
  if (lines.length === 1) return null;
  const erased = lines.map((line) => (line === '' ? '' : erasedText(line, data, side)));
  return erased.includes(null) ? null : erased.join('\n');
}

/**
 * Checks whether a text of any format (a path, a query, a header value) contains personal data of a user, in any of its
 * encodings.
 */
export function identifiesPerson(text: string, data: PersonalData): boolean {
  const spellings = new Set(spellingsOf(text).flatMap((spelled) => [spelled, spelled.replaceAll('+', ' ')]));
  return spellings
    .values()
    .some((spelled) => isTelling(spelled, data) || mentions(spelled, data) || asks(spelled, data));
}

/**
 * A pattern, for PostgreSQL and for `readable`, of a JSON escape of an ASCII letter or digit, which needs no escaping.
 */
export const ESCAPED_LETTER = '\\\\+u00([2-7][0-9a-f])';
const ESCAPED = new RegExp(ESCAPED_LETTER, 'g');

/** Returns a text in the form in which `tracesOf` writes texts: in lower case, without needless escapes. */
export function readable(text: string): string {
  return text.toLowerCase().replace(ESCAPED, (escaped, code: string) => {
    const letter = String.fromCharCode(Number.parseInt(code, 16)).toLowerCase();
    // `tracesOf` escapes these two as well.
    return letter === '"' || letter === '\\' ? escaped : letter;
  });
}

/** Returns, in lower case, the identifiers of a user to search for in texts of any format. */
export function tellingIdentifiers(data: PersonalData): string[] {
  return identifiersOf(data).map((text) => text.toLowerCase());
}

/**
 * Returns the texts to search for in stored JSON: the identifiers of a user in lower case, in each of their JSON
 * spellings.
 */
export function tracesOf(data: PersonalData): string[] {
  const telling = [data.email, data.address].filter((text) => text.length >= IDENTIFYING_LENGTH);
  const quoted = Object.values(identifiersOf(data)).flatMap((text) => [
    JSON.stringify(text),
    JSON.stringify(JSON.stringify(text)).slice(1, -1),
  ]);
  const spellings = [...telling.map((text) => JSON.stringify(text).slice(1, -1)), ...quoted];
  return [...new Set(spellings.flatMap((text) => [text, inAscii(text)]).map((text) => text.toLowerCase()))];
}

function identifiersOf({ email, externalId, address }: PersonalData): string[] {
  return [email, externalId, address].filter((text) => text !== '');
}

function erasedValue(value: unknown, member: string | undefined, data: PersonalData, side: TextSide): unknown {
  if (typeof value === 'string') return erasedString(value, member, data, side);
  if (Array.isArray(value)) return value.map((item) => erasedValue(item, member, data, side));
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      // The name of a member can be personal data too, because a caller of GraphQL can choose it as an alias.
      ownOf(name) === undefined && isName(name, data) ? MASK : name,
      erasedValue(item, name, data, side),
    ]),
  );
}

function erasedString(text: string, member: string | undefined, data: PersonalData, side: TextSide): string | null {
  // A tool's result is a JSON document inside a text.
  const inner = /^\s*[[{]/.test(text) ? erasedText(text, data, side) : null;
  if (inner !== null) return inner;
  return isPersonal(text, member, data, side) ? blankOf(member) : text;
}

/** Returns the empty value of a member: null for an external id, which is optional, and an empty text otherwise. */
function blankOf(member: string | undefined): string | null {
  return ownOf(member) === 'externalId' ? null : '';
}

function ownOf(member: string | undefined): keyof PersonalData | undefined {
  return member !== undefined && Object.hasOwn(MEMBERS, member) ? MEMBERS[member] : undefined;
}

function isPersonal(text: string, member: string | undefined, data: PersonalData, side: TextSide): boolean {
  const own = ownOf(member);
  if (own !== undefined && data[own] !== '' && isSame(text, data[own])) return true;
  // Checked for every member, because a GraphQL alias can give it any name.
  if (isName(text, data) || isTelling(text, data)) return true;
  // In a member for a name, a longer name that contains this one as a word is another person's.
  if (own !== undefined) return false;
  const spellings = spellingsOf(text);
  return spellings.some(
    (spelled) => isTelling(spelled, data) || mentions(spelled, data) || (side === 'asked' && asks(spelled, data)),
  );
}

/** Checks whether a text equals the name, the surname or the external id. */
function isName(text: string, data: PersonalData): boolean {
  return anywhereOf(data).some((value) => isSame(text, value));
}

/** Checks whether a text contains one of the names, or the external id, as a word. */
function mentions(text: string, data: PersonalData): boolean {
  const words = anywhereOf(data).filter((value) => value.length > 1);
  if (words.length === 0) return false;
  return hasWord(text, words);
}

/**
 * Checks whether a text contains one of the words, ignoring case, with no letter or digit directly before or after it.
 */
function hasWord(text: string, words: readonly string[]): boolean {
  const pattern = words.map((word) => RegExp.escape(word.trim())).join('|');
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${pattern})(?![\\p{L}\\p{N}])`, 'iu').test(text);
}

/** Returns the values that identify the user in any member when they are the whole text. */
function anywhereOf({ name, surname, externalId }: PersonalData): string[] {
  return [name, surname, externalId.length > 1 ? externalId : ''].filter((value) => value.trim() !== '');
}

/** Checks whether a text contains the email or the wallet address. */
function isTelling(text: string, { email, address }: PersonalData): boolean {
  const lower = text.toLowerCase();
  return [email, address].some(
    (telling) => telling.length >= IDENTIFYING_LENGTH && lower.includes(telling.toLowerCase()),
  );
}

/**
 * Checks whether a text, one of its literals or the value of one of its pairs is part of one of the user's values, as a
 * search term for the user is.
 */
function asks(text: string, data: PersonalData): boolean {
  const values = Object.values(data).map((value) => value.toLowerCase());
  const asked = [text, ...Array.from(text.matchAll(ASKED), ([, literal, value]) => literal ?? value ?? '')];
  return asked
    .map((part) =>
      part
        .replaceAll(/\\(["\\])/g, '$1')
        .trim()
        .toLowerCase(),
    )
    .some((part) => values.some((value) => (value === part ? part !== '' : part.length > 1 && value.includes(part))));
}

function isSame(a: string, b: string): boolean {
  return a.trim().toLowerCase() === b.trim().toLowerCase();
}

function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: parseJson(text) };
  } catch {
    return undefined;
  }
}

function inAscii(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const SHORTEST_PIECE = 3;

/**
 * A pattern, for PostgreSQL, of a percent-encoded letter or digit, which needs no encoding, or of an encoded percent
 * sign.
 */
export const PERCENT_LETTER = '%(3[0-9]|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]|25)';

/**
 * Checks whether a text of any format contains one of the identifiers (in lower case), however encoded. A short
 * identifier counts only as a word.
 */
export function namesUser(text: string, identifiers: readonly string[]): boolean {
  const spellings = spellingsOf(text).map((spelled) => readable(spelled).replaceAll('\\"', '"'));
  return spellings
    .flatMap((spelled) => [spelled, spelled.replaceAll('+', ' ')])
    .some((spelled) =>
      identifiers.some(
        (identifier) =>
          spelled.includes(identifier) && (identifier.length >= IDENTIFYING_LENGTH || hasWord(spelled, [identifier])),
      ),
    );
}

/**
 * Returns a part of an identifier that appears in a query string however it is encoded: its longest run of letters and
 * digits, or its percent-encoded form when the run is too short.
 */
export function piecesOf(identifier: string): string[] {
  const longest = (identifier.match(/[a-z0-9]+/g) ?? []).reduce((a, b) => (b.length > a.length ? b : a), '');
  return [longest.length >= SHORTEST_PIECE ? longest : encodeURIComponent(identifier).toLowerCase()];
}
