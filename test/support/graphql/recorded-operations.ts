import { randomUUID } from 'node:crypto';
import { maxHeaderSize, request } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import {
  GraphQLError,
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isListType,
  isObjectType,
} from 'graphql';
import { WebSocket } from 'ws';
import type { AuditRecord } from '../../../src/audit/audit-record.ts';
import { parseJson } from '../../../src/lib/json.ts';
import { traceIn } from '../audit/secret-traces.ts';
import { startAuditStand } from './audit-stand.ts';
import {
  expectedParts,
  hasBrokenText,
  type Params,
  recordParts,
  resultsOf,
  withoutMessages,
} from './expected-record.ts';
import { type Operation, SECRET_NUMBER, type Sending, schema, sendings } from './secret-operations.ts';

type Stand = Awaited<ReturnType<typeof startAuditStand>>;

/** The response to each operation of a request. */
type Answers = readonly string[];

/** How much was compared. */
interface Counts {
  operations: number;
  valid: number;
  invalid: number;
  /** Valid operations in whose records something is masked. */
  masked: number;
}

/**
 * Sends operations and checks their records. A valid operation is shown with nothing masked but what a secret's name
 * stands for; an invalid one is not shown. The faults are those of the first request that has any.
 */
export async function checkRecords(operations: number, seed: number): Promise<Counts & { faults: string[] }> {
  await using check = await RecordCheck.start();
  const { counts } = check;
  const faults: string[] = [];
  for (let round = seed; counts.operations < operations && faults.length === 0; round += 1) {
    for (const sending of fc.sample(sendings, { numRuns: REQUESTS_AT_ONCE, seed: round })) {
      if (faults.length === 0) faults.push(...(await check.faultsOf(sending)));
    }
  }
  return { ...counts, faults };
}

const REQUESTS_AT_ONCE = 100;

/** The longest query of a GET, in characters: a longer head is none for Node's parser, and reaches no GraphQL. */
const MAX_QUERY = maxHeaderSize - 1_024;

/** Matches the answers to bodies that the gateway refuses itself: their messages quote nothing, and are shown. */
const REFUSED_BODY = /"invalid_request"|"message":"the body must /;

/** A service over the schema of the surface, whose records are checked. */
class RecordCheck implements AsyncDisposable {
  readonly counts: Counts = { operations: 0, valid: 0, invalid: 0, masked: 0 };
  readonly #stand: Stand;
  readonly #socket: WebSocket;

  private constructor(stand: Stand, socket: WebSocket) {
    this.#stand = stand;
    this.#socket = socket;
  }

  static async start(): Promise<RecordCheck> {
    addResolvers();
    const stand = await startAuditStand(schema);
    const socket = new WebSocket(stand.socketUrl, 'graphql-transport-ws');
    await new Promise((resolve) => socket.once('open', resolve));
    const acknowledged = new Promise((resolve) => socket.once('message', resolve));
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: 'Bearer x' } }));
    await acknowledged;
    return new RecordCheck(stand, socket);
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
    const answers = await this.#tell(sending);
    const params = REFUSED_BODY.test(answers[0] ?? '') ? undefined : paramsOf(sending);
    const expected = params?.length ?? 1;
    if (records.length !== expected) return [`${records.length} records instead of ${expected}`];
    const faults = records.flatMap((record, index) =>
      this.#check(sending.how, record, params?.[index], answers[index] ?? ''),
    );
    const trace = sending.isFaulty ? undefined : secretIn(JSON.stringify([records, lines]));
    return trace === undefined ? faults : [`shows a secret: ${trace}`, ...faults];
  }

  #check(how: Sending['how'], record: AuditRecord, sent: unknown, answer: string): string[] {
    const results = resultsOf(answer);
    const isValid = results.some((result) => 'data' in result);
    this.counts.operations += 1;
    this.counts[isValid ? 'valid' : 'invalid'] += 1;
    const answered = record.response_body ?? '';
    if (isValid) {
      if (hasBrokenText(sent as Params)) return [];
      const text = how === 'get' ? JSON.stringify(queryParamsOf(record.query ?? '')?.[0]) : record.request_body;
      if (text === null) return [`hides a valid operation: ${JSON.stringify(sent)}`];
      const isMasked = text !== JSON.stringify(sent);
      if (isMasked) this.counts.masked += 1;
      return differences(recordParts(text, answered), expectedParts(sent as Params, results, isMasked));
    }
    // Some queries are refused before their parameters are known; no members are masked in them then.
    const query = how === 'get' && sent !== undefined ? record.query : null;
    const shown = { request: record.request_body, query, results: resultsOf(answered) };
    const expected = {
      request: null,
      query: query && '***',
      results: REFUSED_BODY.test(answer) ? results : withoutMessages(results),
    };
    const trace = secretIn(JSON.stringify(shown));
    return trace === undefined ? differences(shown, expected) : [`shows a secret of an invalid operation: ${trace}`];
  }

  #tell(sending: Sending): Promise<Answers> {
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

  #ask(method: string, query: string, headers: Record<string, string>, body?: string): Promise<Answers> {
    const { promise, resolve, reject } = Promise.withResolvers<Answers>();
    const sent = request(`${this.#stand.url}${query}`, { method, headers, agent: false }, async (response) => {
      resolve(textsOf(Buffer.concat(await response.toArray()).toString()));
    });
    sent.on('error', reject);
    sent.end(body);
    return promise;
  }

  async #say({ operations: [payload] }: Sending): Promise<Answers> {
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
    return [lines.join('\n')];
  }
}

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

function differences(shown: object, expected: object): string[] {
  if (isDeepStrictEqual(shown, expected)) return [];
  return ['the record differs', JSON.stringify({ shown, expected }, null, 1)];
}

/** The first trace of a secret in a text. */
function secretIn(text: string): string | undefined {
  const at = text.indexOf(String(SECRET_NUMBER));
  return at === -1 ? traceIn(text) : text.slice(Math.max(0, at - 200), at + 100);
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
