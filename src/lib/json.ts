import { randomUUID } from 'node:crypto';
import { HeapWeigher, textWeight } from './heap-weight.ts';
import { JsonScanner, type JsonToken } from './json-scanner.ts';
import { runCooperatively, type Worker } from './yielding.ts';

// ES2026; TypeScript's library does not declare it yet.
const rawJson = JSON as unknown as { rawJSON(literal: string): unknown };

/**
 * A JSON number whose decimal digits would change if it were read as a double; `literal` is its text as received.
 * `JSON.stringify` writes that text.
 */
export class ExactNumber {
  readonly literal: string;

  constructor(literal: string) {
    this.literal = literal;
  }

  toJSON(): unknown {
    return rawJson.rawJSON(this.literal);
  }
}

/**
 * Thrown for text that is not JSON. The message says what is expected, and quotes nothing, which may be confidential.
 */
export class JsonError extends SyntaxError {
  override readonly name: string = 'JsonError';
}

/** Thrown when bytes are not valid UTF-8. */
export class Utf8Error extends JsonError {
  override readonly name = 'Utf8Error';
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

/** Checks whether a media type means JSON: `application/json`, or one that ends in `+json` (RFC 6839). */
export function isJsonType(mediaType: string | undefined): boolean {
  return JSON_TYPE.test(mediaType ?? '');
}

/** Returns the result of `parse`; throws the error that `toError` creates from a JsonError. */
export function parsedOr<Value>(parse: () => Value, toError: (fault: JsonError) => Error): Value {
  try {
    return parse();
  } catch (error) {
    throw error instanceof JsonError ? toError(error) : error;
  }
}

/** Returns the result of `parse`; undefined if it throws. */
export function parsedOrNone<Value>(parse: () => Value): Value | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

/** What a JSON text may have at most. */
export interface JsonLimits {
  /** Levels of arrays and objects in one another: each costs stack and, in each copy, memory. */
  levels: number;
  /** Members of objects and elements of arrays: each takes up to twenty times the memory of its text. */
  values: number;
}

/** The limits of the text of a caller. Whatever walks what it becomes may use the stack. */
export const CALLER_LIMITS: JsonLimits = { levels: 10_100, values: 50_000 };
/** The limits of any other text. */
export const TEXT_LIMITS: JsonLimits = { levels: 20_000, values: Number.POSITIVE_INFINITY };
/**
 * The maximum number of values in a JSON text that become an `ExactNumber`: each is read digit by digit. No valid input
 * has more than 11,000.
 */
export const MAX_EXACT_NUMBERS = 20_000;

/**
 * Thrown when a JSON text exceeds a limit, though it is well-formed as far as it was read. The message names the limit.
 */
export class JsonLimitError extends JsonError {
  override readonly name = 'JsonLimitError';
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Decodes UTF-8 bytes, without a leading byte order mark (RFC 8259, section 8.1, lets a reader ignore one).
 * @throws Utf8Error for invalid UTF-8; no byte is replaced by U+FFFD.
 */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new Utf8Error('must be in UTF-8', { cause });
  }
}

/**
 * Checks whether a text contains U+0000, which PostgreSQL cannot store, or a lone surrogate, which UTF-8 cannot encode.
 */
export function hasForbiddenText(text: string): boolean {
  return text.includes('\0') || !text.isWellFormed();
}

/**
 * Parses JSON like `JSON.parse`, but without loss of digits: a number whose digits a double would change becomes an
 * `ExactNumber`, any other a `number`; `integerOf` reads both. Of a repeated key the last value counts; `parseInput`
 * notes which keys are repeated.
 * @throws JsonError that names the place of a syntax error; JsonLimitError beyond `limits` or `MAX_EXACT_NUMBERS`,
 * before anything is built.
 */
export function parseJson(text: string, limits = TEXT_LIMITS): unknown {
  requireWithin(text, limits);
  return parseUnlimited(text);
}

function parseUnlimited(text: string): unknown {
  const value = parsePlainJson(text);
  return MAY_HOLD_INEXACT.test(text) ? parseExact(text, value) : value;
}

/**
 * Parses JSON as `JSON.parse` does, digits lost included.
 * @throws JsonError that names the place of a syntax error.
 */
function parsePlainJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (text.trim() === '') throw new JsonError('must be JSON, but is empty');
    throw new JsonError(`must be JSON, but is malformed${placeOf(text, String(error))}`);
  }
}

const ENDS: ReadonlySet<string> = new Set(['complete', 'cut', 'error']);

/** The longest text in which the position of an error is searched. */
const MAX_SEARCHED = 65_536;

/**
 * Returns the place of a syntax error: the engine's message ends in it, or else it is searched for. Of a longer text
 * that the engine says nothing about, the position is unknown.
 */
function placeOf(text: string, message: string): string {
  const [, position] = /\((line \d+ column \d+)\)$/.exec(message) ?? [];
  if (position !== undefined) return ` at ${position}`;
  if (text.length > MAX_SEARCHED) return '';
  const scanner = new JsonScanner(text);
  while (!ENDS.has(scanner.next()));
  const lines = text.slice(0, scanner.start).split('\n');
  return ` at line ${lines.length} column ${(lines.at(-1) ?? '').length + 1}`;
}

const NO_VALUES: ReadonlySet<string> = new Set(['name', ']', '}']);

/**
 * Checks the limits of a JSON text, up to its first syntax error.
 * @throws JsonLimitError that names the limit.
 */
function requireWithin(text: string, limits: JsonLimits): void {
  // Each level needs a bracket and each value two characters, and most texts have few.
  if (text.length <= 2 * limits.values && text.split(/[[{]/, limits.levels + 2).length <= limits.levels + 1) return;
  scanWithin(text, limits, () => undefined);
}

/**
 * Calls `take` for each token of a JSON text, up to its first syntax error.
 * @throws JsonLimitError that names the limit.
 */
function scanWithin(
  text: string,
  { levels, values }: JsonLimits,
  take: (token: JsonToken, scanner: JsonScanner) => void,
): void {
  const scanner = new JsonScanner(text);
  // The value of the text itself is neither a member nor an element.
  let count = -1;
  for (let token = scanner.next(); !ENDS.has(token); token = scanner.next()) {
    if (!NO_VALUES.has(token)) count += 1;
    if (scanner.depth > levels) throw new JsonLimitError(`must not nest values more than ${levels} levels deep`);
    if (count > values) throw new JsonLimitError(`must have at most ${values} values (members and elements)`);
    take(token, scanner);
  }
}

/** Returns the members of the object in a JSON text that are strings. */
export function textsIn(text: string): Map<string, string> {
  const texts = new Map<string, string>();
  const scanner = new JsonScanner(text);
  let name = '';
  for (let token = scanner.next(); !ENDS.has(token); token = scanner.next()) {
    if (scanner.depth === 1 && token === 'name') name = scanner.string;
    if (scanner.depth === 1 && token === 'string') texts.set(name, scanner.string);
  }
  return texts;
}

/**
 * The names of the members that an object repeats in the text of which it was parsed; an empty set if only values
 * within it repeat any.
 */
const repeats = new WeakMap<object, Set<string>>();

/**
 * Returns the names of the members that an object repeats; undefined if neither it nor a value within it repeats any.
 */
export function repeatedIn(value: unknown): ReadonlySet<string> | undefined {
  return repeats.get(value as object);
}

/** The members of an object that its reader knows, by name; or `any` if none may be repeated, at any depth. */
export type KnownMembers = 'any' | { readonly [name: string]: KnownMembers };

/**
 * Parses the JSON of a caller as `parseJson` does with `CALLER_LIMITS`, and notes the members that it repeats.
 * @throws JsonError as `parseJson` does, and for a known member that is repeated in the text, or in one of its items.
 */
export function parseInput(text: string, known: KnownMembers = {}): unknown {
  const { hasRepeats } = outlineOf(text, CALLER_LIMITS);
  const value = parseUnlimited(text);
  return hasRepeats ? withoutRepeats(text, value, known) : value;
}

/** Does work for a caller, whose account may be charged for what is made of its text. */
export interface ChargedWorker extends Worker {
  /** Charges bytes; returns false if no more may be made for the caller. */
  charge?(bytes: number): boolean;
}

/**
 * Does with a body what `parseInput` does with its text, in two turns of the worker, since each step takes up to
 * 20 ms of a megabyte. The first turn charges the worker for the value before it is made, and only the text waits for
 * the second one. Throws the error that `toError` creates from a JsonError.
 */
export async function readInput(
  body: Uint8Array | string,
  toError: (fault: JsonError) => Error,
  worker: ChargedWorker | undefined,
  known: KnownMembers = {},
): Promise<unknown> {
  try {
    const { text, hasRepeats } = await runCooperatively(() => chargedText(body, worker), worker);
    const parse = () => {
      const value = parseUnlimited(text);
      // The names of repeated members refer to the text.
      if (hasRepeats) return withoutRepeats(text, value, known);
      worker?.charge?.(-textWeight(text));
      return value;
    };
    return await runCooperatively(parse, worker, { isBegun: true });
  } catch (error) {
    throw error instanceof JsonError ? toError(error) : error;
  }
}

/** Decodes a body, and charges its text and the value that will be made of it. */
function chargedText(
  body: Uint8Array | string,
  worker: ChargedWorker | undefined,
): { text: string; hasRepeats: boolean } {
  const text = typeof body === 'string' ? body : decodeUtf8(body);
  const { weight, hasRepeats } = outlineOf(text, CALLER_LIMITS);
  if (worker?.charge?.(textWeight(text) + weight) === false && worker.stopped) throw worker.stopped;
  return { text, hasRepeats };
}

/** What is noted of an object that repeats members, and of each name that it repeats, in bytes of heap. */
const REPEATING = 280;
const REPEATED = 80;

/**
 * Returns what `heapWeight` gives for the value of a JSON text, or more if it has escapes, with the notes of `noteRepeats`, and whether an object
 * repeats a member, without making the value; up to the first syntax error.
 * @throws JsonLimitError that names the limit.
 */
export function outlineOf(text: string, limits: JsonLimits): { weight: number; hasRepeats: boolean } {
  const weigher = new HeapWeigher();
  // The value of the text itself is in no slot.
  weigher.addSlots(-1);
  const root = { names: new Set<string>(), hasRepeats: false };
  const open = [root];
  let level = root;
  scanWithin(text, limits, (token, scanner) => {
    if (token === 'name') {
      const name = scanner.string;
      weigher.addName(name);
      if (level.names.has(name)) {
        level.hasRepeats = true;
        weigher.bytes += REPEATED;
      }
      level.names.add(name);
    } else if (token === ']' || token === '}') {
      const { hasRepeats } = open.pop() ?? root;
      level = open.at(-1) ?? root;
      if (!hasRepeats) return;
      level.hasRepeats = true;
      weigher.bytes += REPEATING;
    } else {
      weigher.addSlots(1);
      if (token === 'string') weigher.addContent(scanner.content);
      else if (token === 'scalar') addScalar(weigher, text.slice(scanner.start, scanner.end));
      else {
        if (token === '[') weigher.addArray();
        else weigher.addObject();
        level = { names: new Set(), hasRepeats: false };
        open.push(level);
      }
    }
  });
  return { weight: weigher.bytes, hasRepeats: root.hasRepeats };
}

/** Adds a number, boolean or null. */
function addScalar(weigher: HeapWeigher, literal: string): void {
  if (/^[tfn]/.test(literal)) return;
  weigher.addNumber(Number(literal));
  if (literal.length < MIN_INEXACT || !MAY_HOLD_INEXACT.test(literal)) return;
  // It may become an `ExactNumber`.
  weigher.addObject();
  weigher.addName('literal');
  weigher.addText(literal);
}

function withoutRepeats(text: string, value: unknown, known: KnownMembers): unknown {
  noteRepeats(text, value);
  for (const item of [value].flat()) refuseRepeats(item, known);
  return value;
}

function refuseRepeats(value: unknown, known: KnownMembers): void {
  const names = repeatedIn(value);
  if (!names) return;
  const repeated = known === 'any' ? 'each member' : Object.keys(known).find((name) => names.has(name));
  if (repeated !== undefined) throw new JsonError(`must have ${repeated} once`);
  for (const [name, members] of Object.entries(known)) refuseRepeats(Reflect.get(Object(value), name), members);
}

/**
 * An object or array that a scan is in: its value, the names in it so far, and the name or index of the last member.
 */
interface Level {
  outer: Level | undefined;
  value: object;
  names: Set<string> | undefined;
  at: string | number;
}

/** Notes the members that objects in a JSON text repeat, for `repeatedIn`. Returns the value of the text. */
export function noteRepeats<Value>(text: string, value: Value): Value {
  let level: Level = { outer: undefined, value: [value], names: undefined, at: -1 };
  const scanner = new JsonScanner(text);
  for (let token = scanner.next(); !ENDS.has(token); token = scanner.next()) {
    if (token === 'name') takeName(level, scanner.string);
    else if (token === ']' || token === '}') level = level.outer ?? level;
    else {
      if (typeof level.at === 'number') level.at += 1;
      if (token === '[' || token === '{') level = innerOf(level);
    }
  }
  return value;
}

/** Within a member that is repeated, another value may have replaced the one of the text. */
function innerOf(outer: Level): Level {
  const { value, at } = outer;
  const inner: unknown = Object.hasOwn(value, at) ? Reflect.get(value, at) : undefined;
  return { outer, value: Object(inner), names: undefined, at: -1 };
}

function takeName(level: Level, name: string): void {
  level.at = name;
  level.names ??= new Set();
  if (level.names.has(name)) {
    repeats.getOrInsertComputed(level.value, () => new Set()).add(name);
    for (let { outer } = level; outer && !repeats.has(outer.value); { outer } = outer)
      repeats.set(outer.value, new Set());
  }
  level.names.add(name);
}

/**
 * Returns the exact integer of a number that `parseJson` has returned (`1`, `1.0` and `1e3` are integers). Returns
 * undefined for any other value, and for an integer of more than 400 digits.
 */
export function integerOf(value: unknown): bigint | undefined {
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  if (Number.isFinite(value)) return integerOfLiteral(String(value));
  return value instanceof ExactNumber ? integerOfLiteral(value.literal) : undefined;
}

// A double preserves any 15 digits, and an exponent of three digits may exceed its range. Numbers within strings seldom
// match, since a quote precedes them; a needless match only costs time.
const MAY_HOLD_INEXACT = /(?:^|[\s,:[])-?(?:\d[\d.]{15}|[\d.]+[eE][+-]?\d{3})/;

// The length of the shortest number that may be inexact.
const MIN_INEXACT = 5;

// A reviver would overflow the stack on deep nesting. Instead, each inexact number is replaced by a string with a
// random prefix, and the result is walked without recursion.
function parseExact(text: string, value: unknown): unknown {
  const tag = randomUUID();
  const tagged: string[] = [];
  let keptFrom = 0;
  const scanner = new JsonScanner(text);
  for (let token = scanner.next(); !ENDS.has(token); token = scanner.next()) {
    if (token !== 'scalar' || scanner.end - scanner.start < MIN_INEXACT) continue;
    const literal = text.slice(scanner.start, scanner.end);
    if (!MAY_HOLD_INEXACT.test(literal) || !isInexact(literal)) continue;
    tagged.push(text.slice(keptFrom, scanner.start), `"${tag}${literal}"`);
    keptFrom = scanner.end;
    if (tagged.length > 2 * MAX_EXACT_NUMBERS)
      throw new JsonLimitError(`must not have more than ${MAX_EXACT_NUMBERS} numbers that need more than a double`);
  }
  if (tagged.length === 0) return value;
  const root = { value: JSON.parse(tagged.join('') + text.slice(keptFrom)) as unknown };
  const open: unknown[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const members = node as Record<string, unknown>;
    // The keys of an array as texts would take as long as all else.
    for (const key of Array.isArray(node) ? node.keys() : Object.keys(members)) {
      const member = members[key];
      if (typeof member === 'object' && member !== null) open.push(member);
      else if (typeof member === 'string' && member.startsWith(tag)) {
        members[key] = new ExactNumber(member.slice(tag.length));
      }
    }
  }
  return root.value;
}

function isInexact(literal: string): boolean {
  const double = Number(literal);
  const text = String(double);
  if (text === literal) return false;
  if (!Number.isFinite(double)) return true;
  const literalDecimal = decimalOf(literal);
  // 17 digits tell a double from all others: it has no more.
  if (literalDecimal.digits.length > 17) return true;
  const doubleDecimal = decimalOf(text);
  return literalDecimal.digits !== doubleDecimal.digits || literalDecimal.exponent !== doubleDecimal.exponent;
}

function integerOfLiteral(literal: string): bigint | undefined {
  const { negative, digits, exponent } = decimalOf(literal);
  if (exponent < 0 || digits.length + exponent > 400) return undefined;
  const magnitude = BigInt(`${digits}${'0'.repeat(exponent)}`);
  return negative ? -magnitude : magnitude;
}

// The digits before the point are without leading zeros.
const NUMBER = /^(-?)0*(\d*)(?:\.(\d+))?(?:[eE](.+))?$/;

/**
 * Splits a number into its sign, digits and exponent: ±digits × 10^exponent, without leading or trailing zeros. Zero
 * has no digits and exponent 0.
 */
function decimalOf(literal: string): { negative: boolean; digits: string; exponent: number } {
  const [, sign, integerDigits = '', fraction = '', power = '0'] = NUMBER.exec(literal) ?? [];
  const allDigits = integerDigits === '' ? fraction.replace(/^0+/, '') : integerDigits + fraction;
  const digits = allDigits.slice(0, endOfDigits(allDigits));
  const exponent = digits === '' ? 0 : Number(power) - fraction.length + (allDigits.length - digits.length);
  return { negative: sign === '-', digits, exponent };
}

/** Returns the place behind the last digit that is not zero. */
export function endOfDigits(digits: string): number {
  // A loop, because the time of /0+$/ is quadratic in the length of a run of zeros.
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return end;
}

/** Checks whether a value is an object, but neither null nor an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
