import { gzipSync } from 'node:zlib';
import {
  type FormPart,
  filePart,
  formHeaders,
  formOf,
  MAP,
  mapPart,
  OPERATIONS,
  operationsPart,
} from '../upload-requests.ts';
import { type Attack, get, type HttpRequest, httpGroup, nested, post, raw, stream, times } from './attack.ts';

const COSTLY = '{ accounts(first: 100) { edges { node { wallets(first: 100) { edges { node { id } } } } } } }';
const LIVE = 'subscription { transactionUpdates { cursor } }';
const ME = '{ me { nodeId } }';
const BODY = JSON.stringify({ query: ME });
const MUTATION = 'mutation { eraseUser(id: "aaaaaaaa-0000-4000-8000-000000000001") { __typename } }';
const JSON_TYPE = { 'content-type': 'application/json' };
const { authorization: _token, ...FORM_HEADERS } = formHeaders('');

const body = (text: string | Buffer) => () => raw(text);
const batch =
  (operations: readonly unknown[], more = {}) =>
  () =>
    raw(JSON.stringify(operations), { ...JSON_TYPE, ...more });
const of = (count: number, query: string) => Array.from({ length: count }, () => ({ query }));
const typed =
  (type: string, text = BODY) =>
  () =>
    raw(text, { 'content-type': type });
const encoded = (encoding: string, bytes: () => Buffer) => () =>
  raw(bytes(), { ...JSON_TYPE, 'content-encoding': encoding });

/** A form with these parts. */
function form(parts: readonly FormPart[]): () => HttpRequest {
  return () => raw(formOf(parts), FORM_HEADERS);
}

const operations = (value: string) => form([{ ...operationsPart, value }, mapPart, filePart]);
const map = (value: string) => form([operationsPart, { ...mapPart, value }, filePart]);
const files = (count: number): FormPart[] => Array.from({ length: count }, (_, at) => ({ ...filePart, name: `${at}` }));
const query = (document: string) => operations(JSON.stringify({ query: document, variables: { file: null } }));
const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const MANY_FILES = `{${times(1_000, (at) => `"${at}":["variables.file"]`, ',')}}`;

/** What a request would do by its form, not by its operation. */
export const REQUEST_ATTACKS: readonly Attack[] = [
  ...httpGroup('batches', /batch has \d+ operations; at most 10|the batch is empty|at most 50000 values/, {
    'of 11': batch(of(11, ME)),
    'of 100,000': body(`[${Array(100_000).fill('{"a":1}').join(',')}]`),
    'of none': batch([]),
  }),
  ...httpGroup(
    'batches that are answered',
    /Expected params to be an object|a batch must not have a subscription|the cost is 20301; at most 5000|occurs 970 times|more than 1000 comments/,
    {
      'of batches': batch(Array(10).fill(of(10, ME))),
      'of nulls and numbers': batch([null, 1, 'x', true]),
      'with a subscription': batch([{ query: LIVE }, { query: ME }]),
      'of subscriptions, streamed': batch(of(10, LIVE), { accept: 'text/event-stream' }),
      'of ten that are too costly': batch(of(10, COSTLY)),
      'of ten that overlap': batch(
        Array.from({ length: 10 }, (_, at) => ({ query: `{ a${at}: me { ${'nodeId '.repeat(970)} you } }` })),
      ),
      'of ten of 100 KB of comments': batch(of(10, `${'#\n'.repeat(33_000)}{ you }`)),
    },
    { status: 200 },
  ),
  ...httpGroup('forged', /must be application\/json/, {
    'text/plain': typed('text/plain'),
    'a form': typed('application/x-www-form-urlencoded', `query=${encodeURIComponent(MUTATION)}`),
    'application/graphql': typed('application/graphql', MUTATION),
    'text/plain followed by JSON': typed('text/plain; application/json'),
    'no content type': () => raw(Buffer.from(BODY), {}),
  }),
  ...httpGroup(
    'a mutation by GET',
    /mutation/i,
    {
      alone: get({ query: MUTATION }),
      'chosen by its name': get({
        query: `query A { me { nodeId } } ${MUTATION.replace('mutation', 'mutation B')}`,
        operationName: 'B',
      }),
      'as a stream': get({ query: MUTATION }, { accept: 'text/event-stream' }),
      'that overrides its method': get(
        { query: MUTATION, _method: 'POST' },
        { 'x-http-method-override': 'POST', 'x-http-method': 'POST' },
      ),
      'with a type': get({ query: MUTATION }, JSON_TYPE),
    },
    { status: 405 },
  ),
  ...httpGroup('methods', /./, { PUT: () => ({ method: 'PUT', headers: JSON_TYPE, body: BODY }) }, { status: 404 }),
  ...httpGroup(
    'strangers',
    /unauthorized/,
    {
      'a costly operation': post(COSTLY),
      'a megabyte': body(`{"query":"${'x'.repeat(1_000_000)}"}`),
      'text/plain': typed('text/plain'),
      'a form': form([operationsPart, mapPart, filePart]),
      'a token of 12 KB': () => raw(BODY, { ...JSON_TYPE, authorization: `Bearer ${'x'.repeat(12_000)}` }),
    },
    { status: 401, isAnonymous: true },
  ),
  ...httpGroup(
    'bodies',
    /must be (?:JSON|in UTF-8|an object)|must be identity|Expected params to be an object|query|levels deep/,
    {
      'malformed JSON': body('nonsense'),
      'truncated JSON': body(BODY.slice(0, -3)),
      nothing: body(''),
      'malformed UTF-8': body(Buffer.from([0x7b, 0xff, 0xfe])),
      'UTF-16': body(Buffer.from(BODY, 'utf16le')),
      'a string': body('"{ me { nodeId } }"'),
      'no query': body('{}'),
      'a query that is an object': body('{"query":{"toString":null}}'),
      'a query that is a list': body('{"query":["{ me { nodeId } }"]}'),
      'gzip of 100 megabytes': encoded('gzip', () => gzipSync(Buffer.alloc(100_000_000))),
      br: encoded('br', () => Buffer.alloc(100)),
      'gzip twice': encoded('gzip, gzip', () => gzipSync(gzipSync(Buffer.alloc(1_000_000)))),
      '500,000 lists': body(deep(500_000)),
      '100,000 objects': body(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`),
    },
  ),
  ...httpGroup('long bodies', /Cannot query field|[Uu]nexpected|parameter|tokens|Syntax Error/, {
    '1,000 unknown members': body(`{"query":"{you}",${times(1_000, (at) => `"m${at}":1`, ',')}}`),
    'a megabyte of white space': body(`${' '.repeat(1_000_000)}${BODY.replace('nodeId', 'you')}`),
    'a megabyte of escapes': body(`{"query":"{you}","a":"${'\\u0041'.repeat(170_000)}"}`),
    'a GET of 15 KB': get({ query: `{ me { ${'nodeId '.repeat(1_500)}} }` }),
    'a GET of 100 KB': get({ query: 'x'.repeat(100_000) }),
    'a GET of a batch': get({ query: JSON.stringify(of(2, MUTATION)) }),
    'a GET with two queries': () => ({
      method: 'GET',
      query: `?query={you}&query=${encodeURIComponent(MUTATION)}`,
      headers: {},
    }),
  }),
  ...httpGroup(
    'bodies',
    /payload_too_large/,
    { 'over a megabyte': body(`{"query":"${' '.repeat(1_100_000)}"}`) },
    { status: 413 },
  ),
  ...httpGroup(
    'uploads',
    /with one member|too many parts|out of place|must name|too many bytes before|levels deep|at most 50000 values|with a boundary|at most 1 MiB/,
    {
      '1,000 files in the map': form([operationsPart, { ...mapPart, value: MANY_FILES }, ...files(1_000)]),
      '1,000 files after the first': form([operationsPart, mapPart, ...files(1_000)]),
      '1,000 fields before the file': form([
        ...Array.from({ length: 1_000 }, (_, at) => ({ name: `f${at}`, value: 'x' })),
        filePart,
      ]),
      'a file for a path of 100,000 steps': map(`{"0":["variables${'.a'.repeat(100_000)}"]}`),
      'a file for 60,000 places': map(`{"0":[${Array(60_000).fill('"variables.file"').join(',')}]}`),
      'operations 100,000 deep': operations(`{"query":"{you}","variables":{"file":null,"a":${deep(100_000)}}}`),
      'two megabytes of hyphens': () => raw(Buffer.alloc(2_000_000, '\r\n--a-boundar'), FORM_HEADERS),
      'a body that is not a form': typed('multipart/form-data'),
      'a map of another megabyte': map(MAP.padEnd(1_100_000)),
    },
  ),
  ...httpGroup('operations of uploads', /Cannot query field|aliases|is never used|only a mutation/, {
    'a megabyte': operations(OPERATIONS.padEnd(1_048_000).replace('startUserMigration', 'you')),
    'many fields': query(
      `mutation ($file: File!) { ${times(40, (at) => `a${at}: startUserMigration(file: $file) { __typename }`)} }`,
    ),
    'a subscription': query('subscription ($file: File) { transactionUpdates { cursor } }'),
  }),
  ...httpGroup('uploads', /./, {
    'a boundary of 10 KB': typed(
      `multipart/form-data; boundary=${'x'.repeat(10_000)}`,
      String(formOf([operationsPart, mapPart, filePart])),
    ),
  }),
  ...httpGroup('streams', /the cost is|the depth is|is required/, {
    'a costly query': stream(COSTLY),
    'a subscription whose first event is deep': stream(
      `subscription { transaction(id: "x") { ${nested(Array(20).fill('events'), 'cursor')} } }`,
    ),
    'a mutation without its input': stream('mutation { registerTransaction { __typename } }'),
  }),
  ...httpGroup(
    'streams',
    /not_acceptable/,
    {
      'a subscription for a client that accepts no event stream': post(LIVE, {
        headers: { accept: 'application/json' },
      }),
    },
    { status: 406 },
  ),
  ...httpGroup(
    'streams',
    /NOT_FOUND/,
    { 'a subscription to an unknown field': stream('subscription { transaction(id: "nothing") { id } }') },
    { status: 200 },
  ),
];
