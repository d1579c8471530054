import { gzipSync } from 'node:zlib';
import { type FormPart, filePart, formHeaders, formOf, mapPart, operationsPart } from '../upload-requests.ts';
import { type Attack, get, type HttpRequest, httpGroup, post, raw, times } from './attack.ts';

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
const NO_JSON = /must be (?:JSON|in UTF-8)/;
const { authorization: _token, ...FORM_HEADERS } = formHeaders('');

/** A form with these parts. */
function form(parts: readonly FormPart[]): () => HttpRequest {
  return () => raw(formOf(parts), FORM_HEADERS);
}

export const REQUESTS_ATTACKS: readonly Attack[] = [
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
      200,
      /Expected params to be an object/,
    ],
    ['of nulls and numbers', 'a crash', batch([null, 1, 'x', true]), 200, /Expected params to be an object/],
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
    ['a string', 'a crash', () => raw('"{ me { nodeId } }"'), 400, /must be an object|Expected params to be an object/],
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
];
