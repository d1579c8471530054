import { spellingsOf } from '../../audit/mask-form.ts';
import { MASK } from '../../audit/mask-keys.ts';
import { ExactNumber, isNestedBeyond, parseJson } from '../../lib/json.ts';

/** What of a user is personal; an empty text is nothing. */
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

/** A literal of a document, or the value of a pair. */
const ASKED = /"((?:[^"\\]|\\.)*)"|=([^&#=]*)/g;

/** A shorter text stands in many others by chance: it tells only as a word. */
const IDENTIFYING_LENGTH = 6;

/** Each level costs a call within another: a body of thousands would overflow the stack. */
const MAX_LEVELS = 500;

/** Whose text it is: what a caller sent, or what it was told. */
export type TextSide = 'asked' | 'told';

/**
 * A kept JSON text (or one a line) without a user's personal data: members of that name and value are empty, and so is
 * every text that is a name of the user, mentions one, tells the email or the wallet; of what was asked also every text
 * that is a part of one of the values, as a search is, or has such a literal. Null for a text that is no whole JSON, or
 * that would still tell, or nested beyond every answer of ours: nothing of it can be kept.
 */
export function erasedText(text: string, data: PersonalData, side: TextSide = 'told'): string | null {
  if (isNestedBeyond(text, MAX_LEVELS)) return null;
  const whole = parsed(text);
  if (whole === undefined) return erasedLines(text, data, side);
  const erased = JSON.stringify(erasedValue(whole.value, undefined, data, side));
  if (isTelling(erased, data)) return null;
  // What shows nothing stays as it was written.
  return erased === JSON.stringify(whole.value) ? text : erased;
}

function erasedLines(text: string, data: PersonalData, side: TextSide): string | null {
  const lines = text.split('\n');
  if (lines.length === 1) return null;
  const erased = lines.map((line) => (line === '' ? '' : erasedText(line, data, side)));
  return erased.includes(null) ? null : erased.join('\n');
}

/** Whether a text of any form (a path, a query, the value of a header) shows something of a user, however it is spelled. */
export function identifiesPerson(text: string, data: PersonalData): boolean {
  const spellings = new Set(spellingsOf(text).flatMap((spelled) => [spelled, spelled.replaceAll('+', ' ')]));
  return spellings
    .values()
    .some((spelled) => isTelling(spelled, data) || mentions(spelled, data) || asks(spelled, data));
}

/** A letter that JSON need not escape, and some writers do: a pattern for the database, and for `readable`. */
export const ESCAPED_LETTER = '\\\\+u00([2-7][0-9a-f])';
const ESCAPED = new RegExp(ESCAPED_LETTER, 'g');

/** A text in lower case as the traces spell it. */
export function readable(text: string): string {
  return text.toLowerCase().replace(ESCAPED, (escaped, code: string) => {
    const letter = String.fromCharCode(Number.parseInt(code, 16)).toLowerCase();
    // These are escaped in the traces as well.
    return letter === '"' || letter === '\\' ? escaped : letter;
  });
}

/** The identifiers that a text of any form may tell, in lower case. */
export function tellingIdentifiers(data: PersonalData): string[] {
  return identifiersOf(data).map((text) => text.toLowerCase());
}

/** What to look for in kept texts, in lower case: each in the spellings that JSON has for it. */
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
      // An alias is a name too.
      ownOf(name) === undefined && isName(name, data) ? MASK : name,
      erasedValue(item, name, data, side),
    ]),
  );
}

function erasedString(text: string, member: string | undefined, data: PersonalData, side: TextSide): string | null {
  // What a tool answers is a document in a text.
  const inner = /^\s*[[{]/.test(text) ? erasedText(text, data, side) : null;
  if (inner !== null) return inner;
  return isPersonal(text, member, data, side) ? blankOf(member) : text;
}

/** What stands in a member without a value: an external id can be absent, the others are texts. */
function blankOf(member: string | undefined): string | null {
  return ownOf(member) === 'externalId' ? null : '';
}

function ownOf(member: string | undefined): keyof PersonalData | undefined {
  return member !== undefined && Object.hasOwn(MEMBERS, member) ? MEMBERS[member] : undefined;
}

function isPersonal(text: string, member: string | undefined, data: PersonalData, side: TextSide): boolean {
  const own = ownOf(member);
  if (own !== undefined && data[own] !== '' && isSame(text, data[own])) return true;
  // An alias of GraphQL gives a member any name.
  if (isName(text, data) || isTelling(text, data)) return true;
  // In a name's own member another name that has this one as a word is another person's.
  if (own !== undefined) return false;
  const spellings = spellingsOf(text);
  return spellings.some(
    (spelled) => isTelling(spelled, data) || mentions(spelled, data) || (side === 'asked' && asks(spelled, data)),
  );
}

/** Whether a text is one of the names, or the external id. */
function isName(text: string, data: PersonalData): boolean {
  return anywhereOf(data).some((value) => isSame(text, value));
}

/** Whether a text has one of the names as a word. */
function mentions(text: string, data: PersonalData): boolean {
  const words = anywhereOf(data).filter((value) => value.length > 1);
  if (words.length === 0) return false;
  return hasWord(text, words);
}

/** Whether one of the words stands in a text between what is neither letter nor digit, in whatever case. */
function hasWord(text: string, words: readonly string[]): boolean {
  const pattern = words.map((word) => RegExp.escape(word.trim())).join('|');
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${pattern})(?![\\p{L}\\p{N}])`, 'iu').test(text);
}

/** What tells in whatever place it stands as a whole. */
function anywhereOf({ name, surname, externalId }: PersonalData): string[] {
  return [name, surname, externalId.length > 1 ? externalId : ''].filter((value) => value.trim() !== '');
}

/** Whether a text holds the email or the wallet. */
function isTelling(text: string, { email, address }: PersonalData): boolean {
  const lower = text.toLowerCase();
  return [email, address].some(
    (telling) => telling.length >= IDENTIFYING_LENGTH && lower.includes(telling.toLowerCase()),
  );
}

/** Whether a text, one of its literals or the value of one of its pairs is a part of a value, as a search for the user is. */
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

/** A letter or a digit that need not be escaped in a URL, or an escape of an escape: a pattern for the database. */
export const PERCENT_LETTER = '%(3[0-9]|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]|25)';

/** Whether a text of any form has one of the identifiers (in lower case), a short one as a word, however it is encoded. */
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

/** What of an identifier stands in a query whichever way it is encoded: its longest run of letters that never are. */
export function piecesOf(identifier: string): string[] {
  const longest = (identifier.match(/[a-z0-9]+/g) ?? []).reduce((a, b) => (b.length > a.length ? b : a), '');
  return [longest.length >= SHORTEST_PIECE ? longest : encodeURIComponent(identifier).toLowerCase()];
}
