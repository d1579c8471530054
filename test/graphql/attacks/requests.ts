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
const batch = (operations: readonly unknown[]) => () => raw(JSON.stringify(operations));
const of = (count: number, query: string) => Array.from({ length: count }, () => ({ query }));
const BODY = JSON.stringify({ query: '{ me { nodeId } }' });
const typed =
  (type: string, body: string | Buffer = BODY) =>
  () =>
    raw(body, { 'content-type': type });
const encoded = (encoding: string, body: Buffer) => () =>
  raw(body, { 'content-type': 'application/json', 'content-encoding': encoding });
const MUTATION = 'mutation { eraseUser(id: "aaaaaaaa-0000-4000-8000-000000000001") { __typename } }';
const TYPE = /must be application\/json/;
const NO_JSON = /must be JSON/;
const { authorization: _token, ...FORM_HEADERS } = formHeaders('');

/** A form with these parts. */
function form(parts: readonly FormPart[]): () => HttpRequest {
  return () => raw(formOf(parts), FORM_HEADERS);
}

const operations = (value: string): FormPart[] => [{ ...operationsPart, value }, mapPart, filePart];
const map = (value: string): FormPart[] => [operationsPart, { ...mapPart, value }, filePart];
const files = (count: number): FormPart[] => Array.from({ length: count }, (_, at) => ({ ...filePart, name: `${at}` }));
const query = (document: string) => operations(JSON.stringify({ query: document, variables: { file: null } }));

export const REQUEST_ATTACKS: readonly Attack[] = [
  ...httpGroup('batches', [
    [
      'of 11',
      'more than a request may bring',
      batch(of(11, '{ me { nodeId } }')),
      400,
      /batch has 11 operations, at most 10/,
    ],
    [
      'of 100,000',
      'more than a request may bring',
      () => raw(`[${Array(100_000).fill('{"a":1}').join(',')}]`),
      400,
      /batch has 100000 operations, at most 10/,
    ],
    ['of none', 'an answer to nothing', batch([]), 400, /the batch is empty/],
    [
      'of batches',
      'ten times ten',
      batch(Array(10).fill(of(10, '{ me { nodeId } }'))),
      400,
      /must be an object or a batch of them/,
    ],
    ['of nulls and numbers', 'a crash', batch([null, 1, 'x', true]), 400, /must be an object or a batch of them/],
    [
      'with a subscription',
      'a batch without an end',
      batch([{ query: LIVE }, { query: '{ me { nodeId } }' }]),
      200,
      /a batch has a subscription/,
    ],
    [
      'of subscriptions, streamed',
      'a batch without an end',
      () => raw(JSON.stringify(of(10, LIVE)), { 'content-type': 'application/json', accept: 'text/event-stream' }),
      200,
      /a batch has a subscription/,
    ],
    [
      'of ten that are too costly',
      'ten times the limit',
      batch(of(10, COSTLY)),
      200,
      /the cost is 20301, at most 5000/,
    ],
    [
      'of ten that overlap',
      'ten validations',
      batch(Array.from({ length: 10 }, (_, at) => ({ query: `{ a${at}: me { ${'nodeId '.repeat(970)} you } }` }))),
      200,
      /a field stands 970 times/,
    ],
    [
      'of ten of 100 KB of comments',
      'ten parsers',
      batch(of(10, `${'#\n'.repeat(33_000)}{ you }`)),
      200,
      /more than 1000 comments/,
    ],
  ]),
  ...httpGroup('forged', [
    ['text/plain', 'a form of another site', typed('text/plain'), 400, TYPE],
    [
      'a form',
      'a form of another site',
      typed('application/x-www-form-urlencoded', `query=${encodeURIComponent(MUTATION)}`),
      400,
      TYPE,
    ],
    ['application/graphql', 'a parser that is not there', typed('application/graphql', MUTATION), 400, TYPE],
    [
      'text/plain with JSON behind it',
      'a check that looks for a part',
      typed('text/plain; application/json'),
      400,
      TYPE,
    ],
    ['no content type', 'a request that browsers send unasked', () => raw(Buffer.from(BODY), {}), 400, TYPE],
    ['a mutation by GET', 'a change by an image', get({ query: MUTATION }), 405, /mutation/i],
    [
      'a mutation by GET, chosen by its name',
      'a change by an image',
      get({ query: `query A { me { nodeId } } ${MUTATION.replace('mutation', 'mutation B')}`, operationName: 'B' }),
      405,
      /mutation/i,
    ],
    [
      'a mutation by GET, as a stream',
      'a change by an image',
      get({ query: MUTATION }, { accept: 'text/event-stream' }),
      405,
      /mutation/i,
    ],
    [
      'a GET that overrides its method',
      'a change by an image',
      get({ query: MUTATION, _method: 'POST' }, { 'x-http-method-override': 'POST', 'x-http-method': 'POST' }),
      405,
      /mutation/i,
    ],
    [
      'a GET with a body',
      'an operation that is not looked at',
      get({ query: MUTATION }, { 'content-type': 'application/json' }),
      405,
      /mutation/i,
    ],
    ['a batch by GET', 'a change by an image', get({ query: JSON.stringify(of(2, MUTATION)) }), 400, /Syntax Error/],
    [
      'PUT',
      'a method that nobody checks',
      () => ({ method: 'PUT', headers: { 'content-type': 'application/json' }, body: BODY }),
      404,
      /./,
    ],
  ]),
  ...httpGroup(
    'strangers',
    [
      ['a costly operation without a token', 'work for nobody', post(COSTLY), 401, /unauthorized/],
      [
        'a megabyte without a token',
        'a parser for nobody',
        () => raw(`{"query":"${'x'.repeat(1_000_000)}"}`),
        401,
        /unauthorized/,
      ],
      ['text/plain without a token', 'a form of another site', typed('text/plain'), 401, /unauthorized/],
      [
        'a form without a token',
        'a form of another site',
        form([operationsPart, mapPart, filePart]),
        401,
        /unauthorized/,
      ],
      [
        'an operation with a token of a megabyte',
        'a signature of a megabyte',
        () => raw(BODY, { 'content-type': 'application/json', authorization: `Bearer ${'x'.repeat(12_000)}` }),
        401,
        /unauthorized/,
      ],
    ],
    { isAnonymous: true },
  ),
  ...httpGroup('bodies', [
    ['no JSON', 'a crash', () => raw('nonsense'), 400, NO_JSON],
    ['half of JSON', 'a crash', () => raw(BODY.slice(0, -3)), 400, NO_JSON],
    ['nothing', 'a crash', () => raw(''), 400, NO_JSON],
    ['no UTF-8', 'text that was never sent', () => raw(Buffer.from([0x7b, 0xff, 0xfe])), 400, NO_JSON],
    ['UTF-16', 'text that was never sent', () => raw(Buffer.from(BODY, 'utf16le')), 400, NO_JSON],
    ['a string', 'a crash', () => raw('"{ me { nodeId } }"'), 400, /must be an object/],
    ['no query', 'a crash', () => raw('{}'), 400, /query/],
    ['a query that is an object', 'a crash', () => raw('{"query":{"toString":null}}'), 400, /query/],
    ['a query that is a list', 'a crash', () => raw('{"query":["{ me { nodeId } }"]}'), 400, /query/],
    [
      '1,000 unknown members',
      'a crash',
      () => raw(`{"query":"{you}",${times(1_000, (at) => `"m${at}":1`, ',')}}`),
      400,
      /Cannot query field|[Uu]nexpected|parameter/,
    ],
    [
      'a megabyte of white space',
      'a long time in the parser',
      () => raw(`${' '.repeat(1_000_000)}${BODY.replace('nodeId', 'you')}`),
      400,
      /Cannot query field/,
    ],
    [
      'a megabyte of escapes',
      'a long time in the parser',
      () => raw(`{"query":"{you}","a":"${'\\u0041'.repeat(170_000)}"}`),
      400,
      /Cannot query field|[Uu]nexpected|parameter/,
    ],
    ['over a megabyte', 'memory', () => raw(`{"query":"${' '.repeat(1_100_000)}"}`), 413, /payload_too_large/],
    ['gzip of 100 megabytes', 'memory', encoded('gzip', gzipSync(Buffer.alloc(100_000_000))), 400, /must be identity/],
    ['br', 'memory', encoded('br', Buffer.alloc(100)), 400, /must be identity/],
    [
      'gzip twice',
      'memory',
      encoded('gzip, gzip', gzipSync(gzipSync(Buffer.alloc(1_000_000)))),
      400,
      /must be identity/,
    ],
    ['a GET of 15 KB', 'a parser as long', get({ query: `{ me { ${'nodeId '.repeat(1_500)}} }` }), 400, /tokens/],
    ['a GET of 100 KB', 'memory', get({ query: 'x'.repeat(100_000) }), 400, /Syntax Error/],
    [
      'a GET with variables that are no JSON',
      'a crash',
      get({ query: '{ me { nodeId } }', variables: '{' }),
      400,
      /variables/,
    ],
    [
      'a GET with two queries',
      'one checked, the other run',
      () => ({ method: 'GET', query: `?query={you}&query=${encodeURIComponent(MUTATION)}`, headers: {} }),
      400,
      /Cannot query field/,
    ],
  ]),
  ...httpGroup('uploads', [
    [
      '1,000 files in the map',
      'memory for each',
      form([
        operationsPart,
        {
          ...mapPart,
          value: JSON.stringify(
            Object.fromEntries(
              times(1_000, (at) => `${at}`)
                .split(' ')
                .map((at) => [at, ['variables.file']]),
            ),
          ),
        },
        ...files(1_000),
      ]),
      400,
      /with one member, for one file/,
    ],
    [
      '1,000 files behind the first',
      'memory for each',
      form([operationsPart, mapPart, ...files(1_000)]),
      400,
      /has more than it may/,
    ],
    [
      '1,000 fields before the file',
      'memory for each',
      form([...Array.from({ length: 1_000 }, (_, at) => ({ name: `f${at}`, value: 'x' })), filePart]),
      400,
      /out of place/,
    ],
    [
      'a file for __proto__',
      'members of every object',
      form(map('{"0":["variables.__proto__"]}')),
      400,
      /must name the variable/,
    ],
    [
      'a file for the prototype of a constructor',
      'members of every object',
      form(map('{"0":["variables.constructor.prototype.x"]}')),
      400,
      /must name the variable/,
    ],
    [
      'a file for a path of 100,000 steps',
      'objects as deep',
      form(map(`{"0":["variables${'.a'.repeat(100_000)}"]}`)),
      400,
      /must name the variable/,
    ],
    [
      'a file for 100,000 places',
      'a file in each',
      form(map(`{"0":[${Array(60_000).fill('"variables.file"').join(',')}]}`)),
      400,
      /must name one place/,
    ],
    [
      'operations of a megabyte',
      'a parser as long',
      form(operations(OPERATIONS.padEnd(1_048_000).replace('startUserMigration', 'you'))),
      400,
      /Cannot query field/,
    ],
    [
      'operations of two megabytes',
      'memory',
      form(operations(OPERATIONS.padEnd(2_097_152))),
      400,
      /too much before the file/,
    ],
    [
      'operations 10,000 deep',
      'a stack overflow',
      form(operations(`{"query":"{you}","variables":{"file":null,"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}}`)),
      400,
      /must not be nested more than 100 levels/,
    ],
    [
      'a costly operation',
      'work beside the file',
      form(
        query(
          `mutation ($file: File!) { ${times(40, (at) => `a${at}: startUserMigration(file: $file) { __typename }`)} }`,
        ),
      ),
      400,
      /aliases/,
    ],
    [
      'a subscription',
      'a file without an end',
      form(query('subscription ($file: File) { transactionUpdates { cursor } }')),
      400,
      /is never used|only a mutation/,
    ],
    [
      'a boundary of 10 KB',
      'a search of quadratic time',
      () =>
        raw(formOf([operationsPart, mapPart, filePart]), {
          'content-type': `multipart/form-data; boundary=${'x'.repeat(10_000)}`,
        }),
      400,
      /./,
    ],
    [
      'two megabytes of hyphens',
      'a search of quadratic time',
      () => raw(Buffer.alloc(2_000_000, '\r\n--a-boundar'), FORM_HEADERS),
      400,
      /too much before the file/,
    ],
    [
      'a header of a part of 20 KB',
      'memory',
      form([operationsPart, mapPart, { ...filePart, filename: 'x'.repeat(20_000) }]),
      400,
      /malformed or too long/,
    ],
    ['no form at all', 'a crash', () => raw(BODY, { 'content-type': 'multipart/form-data' }), 400, /with its boundary/],
    [
      'a map of another megabyte',
      'memory',
      form(map(MAP.padEnd(1_100_000))),
      400,
      /too much before the file|at most 1 MiB/,
    ],
  ]),
  ...httpGroup('streams', [
    ['a costly query', 'a stream of work', stream(COSTLY), 400, /the cost is/],
    [
      'a subscription of two fields',
      'two sources of events',
      stream('subscription { transactionUpdates { cursor } transaction(id: "x") { id } }'),
      400,
      /only one (top level|root) field|must select only one/i,
    ],
    [
      'a subscription of introspection',
      'a schema with each event',
      stream('subscription { __typename }'),
      400,
      /introspection/i,
    ],
    [
      'a subscription to a client that takes no stream',
      'a stream that nobody reads',
      post(LIVE, { headers: { accept: 'application/json' } }),
      406,
      /accept: text\/event-stream/,
    ],
    [
      'a subscription whose first event is deep',
      'depth in each event',
      stream(`subscription { transaction(id: "x") { ${nested(Array(20).fill('events'), 'cursor')} } }`),
      400,
      /the depth is/,
    ],
    [
      'a subscription to what is not there',
      'a stream for nothing',
      stream('subscription { transaction(id: "nothing") { id } }'),
      200,
      /NOT_FOUND/,
    ],
    [
      'a mutation as a stream without its input',
      'a crash',
      stream('mutation { registerTransaction { __typename } }'),
      400,
      /is required/,
    ],
  ]),
];
