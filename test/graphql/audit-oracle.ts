import { randomUUID } from 'node:crypto';
import { maxHeaderSize, request } from 'node:http';
import fc from 'fast-check';
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isListType,
  isObjectType,
  Lexer,
  parse,
  Source,
  TokenKind,
} from 'graphql';
import { WebSocket } from 'ws';
import type { AuditRecord } from '../../src/audit/audit-record.ts';
import { parseJson } from '../../src/lib/json.ts';
import {
  hasGoodVariables,
  type OperationRules,
  rulesOfInvalid,
  rulesOfValid,
} from '../audit/oracle/old-audit-masking.ts';
import { maskBody } from '../audit/oracle/old-mask.ts';
import { EVERY_STRING, type JsonRule } from '../audit/oracle/old-mask-json.ts';
import { maskTokens } from '../audit/oracle/old-mask-keys.ts';
import { traceIn } from '../audit/secret-traces.ts';
import { startAuditStand } from './audit-stand.ts';
import { type Operation, SECRET_NUMBER, type Sending, schema, sendings } from './secret-operations.ts';

type Stand = Awaited<ReturnType<typeof startAuditStand>>;

/** A response: its bodies by operation, and its media type. */
interface Answer {
  texts: readonly string[];
  type: string;
}

/** What a record shows of an operation. */
interface Shown {
  request: string | null;
  response: string | null;
  query: string | null;
}

/** How much was compared. */
interface Counts {
  operations: number;
  valid: number;
  invalid: number;
  /** Operations in whose records the oracle masks something. */
  masked: number;
  /** Words that the oracle's records show. */
  words: number;
}

/**
 * Compares the records of operations with those of the oracle. A fault is a secret that is shown, a word that the
 * oracle masks, or a word of a valid operation that is lost; the faults are those of the first request that has any.
 */
export async function compareRecords(operations: number, seed: number): Promise<Counts & { faults: string[] }> {
  await using comparison = await AuditComparison.start();
  const { counts } = comparison;
  const faults: string[] = [];
  for (let round = seed; counts.operations < operations && faults.length === 0; round += 1) {
    for (const sending of fc.sample(sendings, { numRuns: REQUESTS_AT_ONCE, seed: round })) {
      if (faults.length === 0) faults.push(...(await comparison.faultsOf(sending)));
    }
  }
  return { ...counts, faults };
}

const REQUESTS_AT_ONCE = 100;

/** The longest query of a GET, in characters: a longer head is none for Node's parser, and reaches no GraphQL. */
const MAX_QUERY = maxHeaderSize - 1_024;

/** A service over the schema of the surface, whose records are compared with those of the oracle. */
class AuditComparison implements AsyncDisposable {
  readonly counts: Counts = { operations: 0, valid: 0, invalid: 0, masked: 0, words: 0 };
  readonly #stand: Stand;
  readonly #socket: WebSocket;

  private constructor(stand: Stand, socket: WebSocket) {
    this.#stand = stand;
    this.#socket = socket;
  }

  static async start(): Promise<AuditComparison> {
    addResolvers();
    const stand = await startAuditStand(schema);
    const socket = new WebSocket(stand.socketUrl, 'graphql-transport-ws');
    await new Promise((resolve) => socket.once('open', resolve));
    const acknowledged = new Promise((resolve) => socket.once('message', resolve));
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: 'Bearer x' } }));
    await acknowledged;
    return new AuditComparison(stand, socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await this.#stand[Symbol.asyncDispose]();
  }

  /** Sends operations and returns what is wrong with their records; an empty list if nothing is. */
  async faultsOf(sending: Sending): Promise<string[]> {
    if (sending.how === 'get' && queryOf(sending.operations[0]).length > MAX_QUERY) return [];
    const { records, lines } = this.#stand;
    records.length = 0;
    lines.length = 0;
    const answer = await this.#tell(sending);
    const isRefused = answer.texts[0]?.includes('"invalid_request"');
    const params = isRefused ? undefined : paramsOf(sending);
    const expected = params?.length ?? 1;
    if (records.length !== expected) return [`${records.length} records instead of ${expected}`];
    const faults = records.flatMap((record, index) => {
      const one = params ? { params: params[index] } : undefined;
      return this.#compare(sending, record, one, answer.texts[index] ?? '', answer.type);
    });
    const told = JSON.stringify([records, lines]);
    const trace = sending.isFaulty ? undefined : secretIn(told);
    return trace === undefined ? faults : [`shows a secret: ${trace}`, ...faults];
  }

  #compare(
    { how, body, isFaulty, operations: [sent] }: Sending,
    record: AuditRecord,
    given: { params: unknown } | undefined,
    text: string,
    type: string,
  ): string[] {
    const document = given && documentOf(given.params, text);
    const isValid = document !== undefined && hasGoodVariables(schema, document, given?.params as Params);
    const rules = given && (isValid ? rulesOfValid(document, given.params as Params) : rulesOfInvalid(given.params));
    const old: Shown = {
      request:
        how === 'get' || (how === 'form' && !given)
          ? null
          : oldRequest(given ? JSON.stringify(given.params) : body, rules),
      response: oldBody(type, text, rules?.response),
      query: how === 'get' && rules ? maskTokens(rules.maskQuery(queryOf(sent))) : null,
    };
    const shown: Shown = { request: record.request_body, response: record.response_body, query: null };
    if (how === 'get' && rules) shown.query = record.query;
    const oldWords = wordsOf(old);
    this.counts.operations += 1;
    this.counts[isValid ? 'valid' : 'invalid'] += 1;
    if (JSON.stringify(old).includes('***')) this.counts.masked += 1;
    this.counts.words += oldWords.size;
    const newWords = wordsOf(shown);
    const faults = [...newWords.difference(oldWords)].map((word) => `shows ${word}, which was masked`);
    if (isValid && !isFaulty && !SHOWN_BY_MISTAKE.test(JSON.stringify(given?.params))) {
      const lost = wordsOf({ ...old, response: null }, true).difference(newWords);
      faults.push(...[...lost].map((word) => `does not show ${word} of a valid operation`));
    }
    return faults.length === 0 ? [] : [...faults, JSON.stringify({ sent: given?.params ?? body, old, shown }, null, 1)];
  }

  #tell(sending: Sending): Promise<Answer> {
    const {
      how,
      body,
      operations: [operation],
    } = sending;
    const json = { 'content-type': 'application/json' };
    switch (how) {
      case 'post':
        return this.#ask('POST', '', json, body);
      case 'batch':
        return this.#ask('POST', '', json, body);
      case 'events':
        return this.#ask('POST', '', { ...json, accept: 'text/event-stream' }, body);
      case 'get':
        return this.#ask('GET', `?${queryOf(operation)}`, json);
      case 'form':
        return this.#ask('POST', '', { 'content-type': 'multipart/form-data; boundary=b' }, formOf(body));
      case 'socket':
        return this.#say(sending);
      default:
        return how satisfies never;
    }
  }

  #ask(method: string, query: string, headers: Record<string, string>, body?: string): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const sent = request(`${this.#stand.url}${query}`, { method, headers, agent: false }, async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      const type = response.headers['content-type'] ?? '';
      resolve({ texts: textsOf(text), type });
    });
    sent.on('error', reject);
    sent.end(body);
    return promise;
  }

  async #say({ operations: [payload] }: Sending): Promise<Answer> {
    const id = randomUUID();
    const lines: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const hear = (data: Buffer) => {
      const message = JSON.parse(String(data));
      if (message.type === 'next') lines.push(JSON.stringify(message.payload));
      if (message.type === 'error') lines.push(JSON.stringify({ errors: message.payload }));
      if (message.type !== 'next') resolve();
    };
    this.#socket.on('message', hear);
    this.#socket.send(JSON.stringify({ id, type: 'subscribe', payload }));
    await promise;
    this.#socket.off('message', hear);
    return { texts: [lines.join('\n')], type: 'application/x-ndjson' };
  }
}

type Params = Readonly<Record<string, unknown>>;

/** Matches the response to an invalid document; validating each twice would double the time. */
const INVALID = /"(?:GRAPHQL_PARSE_FAILED|GRAPHQL_VALIDATION_FAILED|LIMIT_EXCEEDED)"/;

/** Matches the default of a variable with a secret's name: the oracle shows it if it is a string that holds JSON. */
const SHOWN_BY_MISTAKE = /\$\w*(?:password|token): [\w![\]]+ = /i;

/** The operations as the service understands them; undefined if it does not. */
function paramsOf({ how, body, operations: [operation] }: Sending): unknown[] | undefined {
  if (how === 'socket') return [JSON.parse(JSON.stringify(operation))];
  if (how === 'get') return queryParamsOf(queryOf(operation));
  let params: unknown;
  try {
    params = parseJson(body);
  } catch {
    return undefined;
  }
  if (typeof params !== 'object' || params === null) return undefined;
  if (how === 'form') {
    const { variables } = params as { variables: object };
    return [{ ...params, variables: { ...variables, file: { toJSON: () => null } } }];
  }
  if (!Array.isArray(params)) return [params];
  return params.length === 0 ? undefined : params;
}

function queryOf(operation: Operation | undefined): string {
  const pairs = Object.entries(operation ?? {}).filter(([, value]) => value !== undefined && value !== '');
  return new URLSearchParams(
    pairs.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  ).toString();
}

function queryParamsOf(query: string): unknown[] | undefined {
  const given = new URLSearchParams(query);
  const params: Record<string, unknown> = {};
  for (const [name, value] of given) {
    if (name === 'query' || name === 'operationName') {
      if (value !== '') params[name] = value;
    }
    if (name !== 'variables' && name !== 'extensions') continue;
    const parsed: unknown = JSON.parse(value);
    if (Array.isArray(parsed) || typeof parsed !== 'object') return undefined;
    params[name] = parsed ?? {};
  }
  return [{ variables: {}, extensions: {}, ...params }];
}

/** The results of a batch, each by itself, or else the whole text. */
function textsOf(text: string): string[] {
  if (!text.startsWith('[')) return [text];
  return (JSON.parse(text) as unknown[]).map((one) => JSON.stringify(one));
}

function formOf(operations: string): string {
  const parts = [
    ['name="operations"', operations],
    ['name="map"', '{"0":["variables.file"]}'],
    ['name="0"; filename="users.csv"\r\nContent-Type: text/csv', 'a,b\n'],
  ];
  const text = parts.map(([head, value]) => `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${value}\r\n`);
  return `${text.join('')}--b--\r\n`;
}

function documentOf(params: unknown, answer: string): DocumentNode | undefined {
  const query = typeof params === 'object' && params !== null && 'query' in params ? params.query : undefined;
  if (typeof query !== 'string' || INVALID.test(answer)) return undefined;
  try {
    return parse(query);
  } catch {
    return undefined;
  }
}

function oldRequest(text: string, rules: OperationRules | undefined): string | null {
  return oldBody('application/json', text, rules ? rules.request : EVERY_STRING);
}

function oldBody(type: string, text: string, rule: JsonRule | undefined): string | null {
  const form = { maxBytes: 64 * 1024, truncated: false, wellFormed: true };
  const masked = maskBody(type, Buffer.from(text), { ...form, rule });
  return masked === null ? null : maskTokens(masked);
}

/** The first trace of a secret in a text. */
function secretIn(text: string): string | undefined {
  const at = text.indexOf(String(SECRET_NUMBER));
  return at === -1 ? traceIn(text) : text.slice(Math.max(0, at - 200), at + 100);
}

/** Half a character, escaped as JSON does: one record may spell it so where the other has U+FFFD. */
const LONE_SURROGATE = /\\ud[89a-f][0-9a-f]{2}/gi;

/** The words that a record shows, however they are spelled; without those of comments, if they do not count. */
function wordsOf({ request, response, query }: Shown, isWithoutComments = false): Set<string> {
  const texts: string[] = [];
  const pairs = [...new URLSearchParams(query ?? '')].map(([name, value]) => [name, parsed(value) ?? value]);
  for (const root of [parsed(request ?? '') ?? request, Object.fromEntries(pairs), response]) {
    addTexts(root, texts, isWithoutComments);
  }
  return new Set(
    texts
      .join(' ')
      .replaceAll(LONE_SURROGATE, ' ')
      .match(/[\p{L}\p{N}]+/gu),
  );
}

function addTexts(value: unknown, texts: string[], isWithoutComments: boolean): void {
  if (typeof value !== 'object' || value === null) texts.push(String(value ?? ''));
  else {
    for (const [key, member] of Object.entries(value)) {
      const isDocument = key === 'query' && typeof member === 'string';
      texts.push(Array.isArray(value) ? '' : key);
      if (isDocument) texts.push(...tokensOf(member, isWithoutComments));
      else addTexts(member, texts, isWithoutComments);
    }
  }
}

function parsed(text: string): unknown {
  try {
    const value: unknown = parseJson(text);
    return typeof value === 'object' ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The values of the tokens of a document; the text itself if it has none. */
function tokensOf(document: string, isWithoutComments: boolean): string[] {
  const lexer = new Lexer(new Source(document));
  const values: string[] = [];
  try {
    for (let token = lexer.token; token.kind !== TokenKind.EOF || token === lexer.token; ) {
      token = lexer.advance();
      if (token.kind === TokenKind.EOF) break;
      for (let before = token.prev; before?.kind === TokenKind.COMMENT; before = before.prev) {
        if (!isWithoutComments) values.push(before.value);
      }
      values.push(token.value ?? '');
    }
    return values;
  } catch {
    return [document];
  }
}

let answered = 0;

/** Fields answer by their types: secrets where their names say so, and errors that quote what they were given. */
function addResolvers(): void {
  for (const type of Object.values(schema.getTypeMap()).filter(isObjectType)) {
    if (type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields())) {
      const isSecret = /(?:secret|password|token)$/i.test(field.name);
      field.resolve = (source, args) => {
        answered += 1;
        const quoted = Object.values(args);
        if (quoted.length > 0 && answered % 5 === 0)
          throw new GraphQLError(`not so: ${quoted.map(spelled).join(' or ')}`);
        return answerOf(field.type, isSecret || source?.isSecret === true);
      };
    }
  }
  for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
    field.subscribe = async function* () {
      yield {};
      yield {};
    };
  }
}

function spelled(value: unknown): string {
  return answered % 2 === 0 ? JSON.stringify(value) : String(value);
}

function answerOf(given: GraphQLOutputType, isSecret: boolean): unknown {
  const type = getNullableType(given);
  if (isListType(type)) return Array.from({ length: 1 + (answered % 2) }, () => answerOf(type.ofType, isSecret));
  if (isAbstractType(type)) {
    const types = schema.getPossibleTypes(type);
    return { __typename: types[answered % types.length]?.name, isSecret };
  }
  if (isCompositeType(type)) return { isSecret };
  const named = getNamedType(type);
  if (isEnumType(named)) return named.getValues()[0]?.value;
  switch (named.name) {
    case 'Int':
    case 'Float':
      return isSecret ? SECRET_NUMBER : answered % 100;
    case 'Boolean':
      return true;
    default:
      if (isSecret) return 'ZQXJKVZQXJKV';
      return answered % 9 === 0 ? '{"kept":"WVH","password":"ZQXJKV"}' : `WVHanswer${answered}`;
  }
}
