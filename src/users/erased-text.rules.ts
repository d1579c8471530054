import { ExactNumber, parseJson } from '../lib/json.ts';

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

/** So short a text stands in many others by chance. */
const TELLING_LENGTH = 6;

/**
 * A kept JSON text without a user's personal data: members of that name and value are empty, and so is every text that is
 * a name of the user, tells the email or the wallet, or quotes one of the values in a document. Null for a text that is
 * no whole JSON, or that would still tell: nothing of it can be kept.
 */
export function erasedText(text: string, data: PersonalData): string | null {
  const whole = parsed(text);
  if (whole === undefined) return null;
  const erased = JSON.stringify(erasedValue(whole.value, undefined, data));
  if (isTelling(erased, data)) return null;
  // What shows nothing stays as it was written.
  return erased === JSON.stringify(whole.value) ? text : erased;
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

/** The identifiers that a query of a URL may tell, in lower case. */
export function tellingIdentifiers(data: PersonalData): string[] {
  return identifiersOf(data)
    .filter((text) => text.length >= TELLING_LENGTH)
    .map((text) => text.toLowerCase());
}

/** What to look for in kept texts, in lower case: each in the spellings that JSON has for it. */
export function tracesOf(data: PersonalData): string[] {
  const telling = [data.email, data.address].filter((text) => text.length >= TELLING_LENGTH);
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

function erasedValue(value: unknown, member: string | undefined, data: PersonalData): unknown {
  if (typeof value === 'string') return isPersonal(value, member, data) ? blankOf(member) : value;
  if (Array.isArray(value)) return value.map((item) => erasedValue(item, member, data));
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, erasedValue(item, name, data)]));
}

/** What stands in a member without a value: an external id can be absent, the others are texts. */
function blankOf(member: string | undefined): string | null {
  return member !== undefined && Object.hasOwn(MEMBERS, member) && MEMBERS[member] === 'externalId' ? null : '';
}

function isPersonal(text: string, member: string | undefined, data: PersonalData): boolean {
  const own = member !== undefined && Object.hasOwn(MEMBERS, member) ? MEMBERS[member] : undefined;
  if (own !== undefined && data[own] !== '' && isSame(text, data[own])) return true;
  // An alias of GraphQL gives a member any name.
  const anywhere = [data.name, data.surname, data.externalId.length >= TELLING_LENGTH ? data.externalId : ''];
  if (anywhere.some((value) => value !== '' && isSame(text, value))) return true;
  return isTelling(text, data) || quotes(text, data);
}

/** Whether a text holds the email or the wallet. */
function isTelling(text: string, { email, address }: PersonalData): boolean {
  const lower = text.toLowerCase();
  return [email, address].some((telling) => telling.length >= TELLING_LENGTH && lower.includes(telling.toLowerCase()));
}

/** Whether a document of a migration has one of the values as a literal. */
function quotes(text: string, data: PersonalData): boolean {
  if (!/migrateUsers?\b/.test(text)) return false;
  return Object.values(data).some((value) => value !== '' && text.includes(JSON.stringify(value)));
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
