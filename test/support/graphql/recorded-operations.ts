import { maxHeaderSize, request } from 'node:http';
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
  parse,
  print,
} from 'graphql';
import type { AuditRecord } from '../../../src/audit/audit-record.ts';
import { traceIn } from '../audit/secret-traces.ts';
import { startAuditFixture } from './audit-fixture.ts';
import {
  isMaskedField,
  type Operation,
  PUBLIC,
  SECRET_NUMBER,
  type Sending,
  schema,
  sendings,
} from './secret-operations.ts';
import { openSocket } from './sockets.ts';
import { CSV, FORM_TYPE, filePart, formOf, mapPart, operationsPart } from './upload-requests.ts';

type Fixture = Awaited<ReturnType<typeof startAuditFixture>>;
type Socket = Awaited<ReturnType<typeof openSocket>>;

const REQUESTS_AT_ONCE = 100;
/** The longest query of a GET, in characters: a longer head is none for Node's parser, and reaches no GraphQL. */
const MAX_QUERY = maxHeaderSize - 1_024;

interface Counts {
  operations: number;
  valid: number;
  /** Valid operations in whose records something is masked. */
  masked: number;
}

/**
 * Sends operations and checks their records. No record shows a secret; of a valid operation, its record shows every value
 * that is none; an invalid one is not shown. The faults are those of the first request that has any.
 */
export async function checkRecords(operations: number, seed: number): Promise<Counts & { faults: string[] }> {
  addResolvers();
  await using fixture = await startAuditFixture(schema);
  using socket = await openSocket(fixture, 'x');
  const counts: Counts = { operations: 0, valid: 0, masked: 0 };
  for (let round = seed; counts.operations < operations; round += 1) {
    for (const sending of fc.sample(sendings, { numRuns: REQUESTS_AT_ONCE, seed: round })) {
      for (const kept of [fixture.records, fixture.lines, socket.received, socket.texts]) kept.length = 0;
      const answers = await answersTo(sending, fixture, socket);
      const faults = answers ? faultsOf(sending, answers, fixture, counts) : [];
      if (faults.length > 0) return { ...counts, faults };
    }
  }
  return { ...counts, faults: [] };
}

/** What is wrong with the records of a request; an empty list if nothing is. */
function faultsOf({ operations }: Sending, answers: string[], { records, lines }: Fixture, counts: Counts) {
  const faults = secretsIn(JSON.stringify([records, lines]));
  if (records.length !== answers.length) faults.push(`${records.length} records instead of ${answers.length}`);
  for (const [index, record] of records.entries()) {
    const answer = answers[index] ?? '';
    counts.operations += 1;
    if (!/^(?:data: )?\{"data":|,"data":/m.test(answer)) {
      if (record.request_body !== null) faults.push(`shows an invalid operation: ${record.request_body}`);
      continue;
    }
    const shown = `${requestIn(record)}${record.response_body}`;
    counts.valid += 1;
    if (shown.includes('***')) counts.masked += 1;
    const data = answer.replaceAll(/"message":"(?:[^"\\]|\\.)*"/g, '');
    const values = `${textOf(operations[index] ?? {})}${data}`.match(PUBLIC) ?? [];
    for (const value of values) if (!shown.includes(value)) faults.push(`hides ${value}: ${shown} of ${answer}`);
  }
  return faults;
}

/** The text of what a record shows of its request, without escapes of the document. */
function requestIn({ method, query, request_body }: AuditRecord): string {
  if (method !== 'GET') return textOf(JSON.parse(request_body ?? '{}'));
  const { variables = '{}', ...more } = Object.fromEntries(new URLSearchParams(query ?? ''));
  return textOf({ ...more, variables: JSON.parse(variables) });
}

/** What a record of an operation shows: its document, and the variables that the document declares. */
function textOf({ query = '', variables = {}, ...more }: Partial<Operation>): string {
  const document = query && print(parse(query));
  const declared = Object.entries(Object(variables)).filter(([name]) => document.includes(`$${name}:`));
  return `${document}${JSON.stringify({ ...more, variables: Object.fromEntries(declared) })}`;
}

function secretsIn(text: string): string[] {
  const at = text.indexOf(String(SECRET_NUMBER));
  const trace = at === -1 ? traceIn(text) : text.slice(Math.max(0, at - 200), at + 100);
  return trace === undefined ? [] : [`shows a secret: ${trace}`];
}

/** The answer to each operation of a request; undefined if it cannot be sent. */
async function answersTo(sending: Sending, { url }: Fixture, socket: Socket): Promise<string[] | undefined> {
  const { how, body, operations } = sending;
  const json = { 'content-type': 'application/json' };
  const [operation = { query: '' }] = operations;
  if (how === 'get') {
    const query = queryOf(operation);
    return query.length > MAX_QUERY ? undefined : ask(`${url}?${query}`, 'GET', json);
  }
  if (how === 'socket') return [await say(socket, operation)];
  if (how === 'events') return ask(url, 'POST', { ...json, accept: 'text/event-stream' }, body);
  if (how !== 'form') return ask(url, 'POST', json, body);
  const form = formOf([{ ...operationsPart, value: body }, mapPart, { ...filePart, value: CSV }]);
  return ask(url, 'POST', { 'content-type': FORM_TYPE }, form);
}

function queryOf(operation: Operation): string {
  const pairs = Object.entries(operation).filter(([, value]) => value !== undefined && value !== '');
  return new URLSearchParams(
    pairs.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  ).toString();
}

/** The results of a batch, each by itself, or else the whole text. */
function ask(url: string, method: string, headers: Record<string, string>, body?: string | Buffer): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  const sent = request(url, { method, headers, agent: false }, async (response) => {
    const text = Buffer.concat(await response.toArray()).toString();
    resolve(text.startsWith('[') ? (JSON.parse(text) as unknown[]).map((one) => JSON.stringify(one)) : [text]);
  });
  sent.on('error', reject);
  sent.end(body);
  return promise;
}

async function say(socket: Socket, operation: Operation): Promise<string> {
  const messages = await socket.messagesOf(operation);
  const results = messages.filter(({ type }) => type !== 'complete');
  return results
    .map(({ type, payload }) => JSON.stringify(type === 'error' ? { errors: payload } : payload))
    .join('\n');
}

let answered = 0;

/** Fields answer by their types: secrets where their names say so, and errors that quote what they were given. */
function addResolvers(): void {
  for (const type of Object.values(schema.getTypeMap()).filter(isObjectType)) {
    if (type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields())) {
      // The members of a result of `changeOwnPassword` are masked by their own names.
      const isResult = isCompositeType(getNamedType(field.type)) && /.(?:secret|password|token)$/i.test(field.name);
      const isSecret = isMaskedField(field.name) && !isResult;
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
      return answered % 9 === 0 ? `{"kept":"WVH${answered}W","password":"ZQXJKV"}` : `WVH${answered}W`;
  }
}
