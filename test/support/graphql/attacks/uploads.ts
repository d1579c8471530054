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
import { type Attack, type HttpRequest, httpGroup, nested, post, raw, stream, times } from './attack.ts';

const COSTLY = '{ accounts(first: 100) { edges { node { wallets(first: 100) { edges { node { id } } } } } } }';
const LIVE = 'subscription { transactionUpdates { cursor } }';
const BODY = JSON.stringify({ query: '{ me { nodeId } }' });
const { authorization: _token, ...FORM_HEADERS } = formHeaders('');

/** A form with these parts. */
function form(parts: readonly FormPart[]): () => HttpRequest {
  return () => raw(formOf(parts), FORM_HEADERS);
}

const operations = (value: string): FormPart[] => [{ ...operationsPart, value }, mapPart, filePart];
const map = (value: string): FormPart[] => [operationsPart, { ...mapPart, value }, filePart];
const files = (count: number): FormPart[] => Array.from({ length: count }, (_, at) => ({ ...filePart, name: `${at}` }));
const query = (document: string) => operations(JSON.stringify({ query: document, variables: { file: null } }));

export const UPLOADS_ATTACKS: readonly Attack[] = [
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
      'operations 100,000 deep',
      'a stack overflow',
      form(operations(`{"query":"{you}","variables":{"file":null,"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`)),
      400,
      /must not have values more than 20000 levels within each other/,
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
      /^$/,
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
