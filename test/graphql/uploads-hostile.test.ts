import { once } from 'node:events';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { openSocket, request } from '../support/gateway/raw.ts';
import { createdClient } from '../support/graphql/administration.ts';
import {
  CSV,
  type FormPart,
  filePart,
  formHeaders,
  formOf,
  MAP,
  mapPart,
  OPERATIONS,
  operationsPart,
  sendRaw,
} from '../support/graphql/upload-requests.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

const ORDER = 'send the parts operations, map and one file, in this order';
const MEBIBYTE = 1024 ** 2;

const faults: object[] = [];
let p: Portcullis;
let token: string;

beforeAll(async () => {
  const log: Log = { ...silentLog, error: (fields) => void faults.push(fields) };
  p = await startPortcullis({ overrides: { log } });
  token = await p.clientToken();
});

afterAll(() => p[Symbol.asyncDispose]());

const good = [operationsPart, mapPart, filePart];
const withOperations = (value: unknown): FormPart[] => [
  { ...operationsPart, value: typeof value === 'string' ? value : JSON.stringify(value) },
  mapPart,
  filePart,
];
const withMap = (value: string): FormPart[] => [operationsPart, { ...mapPart, value }, filePart];
const QUERY = JSON.parse(OPERATIONS).query;

const END = 'must end with the closing boundary';
const AWAY = `is out of place: ${ORDER}`;
const MISSING = `is missing: ${ORDER}`;
const MORE = `has too many parts: ${ORDER}`;
const NO_FILE = 'must set variables.file to null: the file takes its place';
const ONE_MEMBER = 'must be a JSON object with one member, for one file';
const ONE_PLACE = 'must name one variable for the file';
const VARIABLE = 'must name the variable of the file, such as "variables.file"';
const bare = (head: string, value = 'x'): FormPart => ({ head, value });
const place = (name: string) => withMap(JSON.stringify({ 0: [name] }));

/** What is sent, and which part is told to be at fault. */
const REFUSED: [what: string, sent: Buffer | FormPart[], path: string, message: string][] = [
  ['nothing', Buffer.alloc(0), '', END],
  ['no part', [], 'operations', MISSING],
  ['no operations', [mapPart, filePart], 'map', AWAY],
  ['no map', [operationsPart, filePart], '0', AWAY],
  ['no file', [operationsPart, mapPart], 'file', MISSING],
  ['the file first', [filePart, operationsPart, mapPart], '0', AWAY],
  ['operations twice', [operationsPart, ...good], 'operations', AWAY],
  ['the map twice', [operationsPart, mapPart, mapPart, filePart], '', MORE],
  ['two files', [...good, filePart], '', MORE],
  ['a field after the file', [...good, { name: 'more', value: 'x' }], '', MORE],
  ['an invalid part after the file', [...good, bare('X: y')], '', MORE],
  ['an invalid part in between', [operationsPart, bare('X: y', ''), mapPart, filePart], '', MORE],
  ['a field for the file', [operationsPart, mapPart, { name: '0', value: CSV }], '0', AWAY],
  ['a part without a name', [operationsPart, mapPart, bare('Content-Disposition: form-data')], '', AWAY],
  [
    'a file of another name',
    [operationsPart, mapPart, { ...filePart, name: '1' }],
    'map',
    'must name the part of the file',
  ],
  ['an invalid header', [operationsPart, mapPart, bare('no colon')], 'file', MISSING],
  ['no closing boundary', formOf(good, ''), '', END],
  ['half a closing boundary', formOf(good, '--a-bound'), '', END],
  ['an end within operations', Buffer.from(formOf([operationsPart]).subarray(0, 120)), '', END],
  ['another boundary', Buffer.from(String(formOf(good)).replaceAll('a-boundary', 'another')), '', END],
  ['2 MiB of another boundary', Buffer.alloc(2 * MEBIBYTE, 'x'), '', `has too many bytes before the file: ${ORDER}`],
  [
    'operations of 2 MiB',
    withOperations(OPERATIONS.padEnd(2 * MEBIBYTE)),
    '',
    `has too many bytes before the file: ${ORDER}`,
  ],
  [
    'operations and a map of over 1 MiB',
    [{ ...operationsPart, value: OPERATIONS.padEnd(MEBIBYTE - 100) }, { ...mapPart, value: MAP.padEnd(200) }, filePart],
    'map',
    'is too long: operations and map together have at most 1 MiB',
  ],
  [
    'operations that are not JSON',
    withOperations('{'),
    'operations',
    'must be JSON, but is malformed at line 1 column 2',
  ],
  ['a batch', withOperations(`[${OPERATIONS}]`), 'operations', 'must be one operation: a batch cannot have a file'],
  ['operations that are null', withOperations('null'), 'operations', 'must be a JSON object with query and variables'],
  ['operations without variables', withOperations({ query: QUERY }), 'operations', NO_FILE],
  ['a string as the file', withOperations({ query: QUERY, variables: { file: 'x' } }), 'operations', NO_FILE],
  ['variables that are a list', withOperations({ query: QUERY, variables: [null] }), 'operations', NO_FILE],
  ['a map that is not JSON', withMap('{"0": ['), 'map', 'must be JSON, but is malformed at line 1 column 8'],
  ['a map that is a list', withMap('["variables.file"]'), 'map', ONE_MEMBER],
  ['an empty map', withMap('{}'), 'map', ONE_MEMBER],
  ['a map of two files', withMap('{"0": ["variables.file"], "1": ["variables.file"]}'), 'map', ONE_MEMBER],
  ['a file for two variables', withMap('{"0": ["variables.file", "variables.other"]}'), 'map', ONE_PLACE],
  ['a file for no variable', withMap('{"0": []}'), 'map', ONE_PLACE],
  ['a path that is not in a list', withMap('{"0": "variables.file"}'), 'map', ONE_PLACE],
  ...['file', 'variables', 'variables.', '0.variables.file', 'variables.file.0', 'variables.__proto__'].map(
    (name): [string, FormPart[], string, string] => [`the place ${name}`, place(name), 'map', VARIABLE],
  ),
  ...['variables.__proto__.file', 'variables.constructor.prototype', 'variables.a b'].map(
    (name): [string, FormPart[], string, string] => [`the place ${name}`, place(name), 'map', VARIABLE],
  ),
  ...['other', 'toString', 'constructor'].map((name): [string, FormPart[], string, string] => [
    `the variable ${name}, which is not null`,
    place(`variables.${name}`),
    'operations',
    `must set variables.${name} to null: the file takes its place`,
  ]),
];

describe('a malformed form', () => {
  it.each(REFUSED)('DG-09 D2-13: %s gets a 400 that says what to change', async (_what, sent, path, message) => {
    const body = Buffer.isBuffer(sent) ? sent : formOf(sent);
    const answer = await sendRaw(p.url, formHeaders(token), body);
    expect([answer.status, answer.json.errors]).toEqual([400, [{ path, message }]]);
    expect(answer.json).toMatchObject({ code: -1, domain: 0, message: 'invalid_request' });
  });

  it.each([
    ['no boundary', 'multipart/form-data', 'must be multipart/form-data with a boundary'],
    ['an empty boundary', 'multipart/form-data; boundary=', `has too many parts: ${ORDER}`],
    ['a broken parameter', 'multipart/form-data; boundary="x', 'must end with the closing boundary'],
  ])('DG-09 D2-13: %s gets a 400', async (_what, type, message) => {
    const answer = await sendRaw(p.url, { ...formHeaders(token), 'content-type': type }, formOf(good));
    expect([answer.status, answer.json.errors]).toEqual([400, [{ path: expect.any(String), message }]]);
  });

  it('DG-09: a file name of 20 KB is accepted, since it is not stored', async () => {
    const form = formOf([operationsPart, mapPart, { ...filePart, value: 'colour\n', filename: 'x'.repeat(20_000) }]);
    const { status, json } = await sendRaw(p.url, formHeaders(token), form);
    expect([status, json.data.result.__typename]).toEqual([200, 'ValidationError']);
  });

  it('DG-09 D2-13: a compressed form gets a 400', async () => {
    const answer = await sendRaw(p.url, { ...formHeaders(token), 'content-encoding': 'gzip' }, formOf(good));
    expect(answer.json.errors).toEqual([{ path: 'Content-Encoding', message: 'must be identity' }]);
  });

  it('D2-14: a Content-Length over 1 GiB gets a 413 before a byte is read', async () => {
    const headers = { ...formHeaders(token), 'content-length': String(1024 ** 3 + 1), expect: '100-continue' };
    const answer = await sendRaw(p.url, headers, new Readable({ read: () => undefined }));
    expect([answer.status, answer.json]).toEqual([413, { code: -1, domain: 0, message: 'payload_too_large' }]);
    expect(answer.headers.connection).toBe('close');
  });

  it.each([
    ['1.0', /^HTTP\/1\.1 400 /],
    ['1.1', /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /],
  ])('DG-09: over HTTP/%s 100 Continue is sent if that version has it', async (version, expected) => {
    const body = formOf([]);
    const headers = { ...formHeaders(token), expect: '100-continue', 'content-length': String(body.length) };
    const socket = openSocket(p.url);
    let got = '';
    socket.on('data', (chunk: Buffer) => {
      got += chunk.toString('latin1');
    });
    socket.write(request('POST', '/graphql', headers).replace('HTTP/1.1', `HTTP/${version}`));
    socket.write(body);
    await once(socket, 'end');
    socket.destroy();
    expect(got).toMatch(expected);
  });
});

describe('an operation that may not have its file', () => {
  /** Sends as fast as it is read, for as long as nobody stops it. */
  const endless = () => {
    const beginning = formOf(good, '').subarray(0, -2);
    const more = Buffer.alloc(64 * 1024, '0xbb,bob@example.com\n');
    let isBegun = false;
    const body = new Readable({
      read() {
        this.push(isBegun ? more : beginning);
        isBegun = true;
      },
    });
    return body;
  };

  it('DG-04 DG-09: without a token gets a 401 while the client still sends', async () => {
    const { authorization: _none, ...headers } = formHeaders(token);
    const answer = await sendRaw(p.url, headers, endless());
    expect([answer.status, answer.json.message]).toEqual([401, 'unauthorized']);
  });

  it('DG-04 DG-09: without users:migrate gets a ForbiddenError while the client still sends', async () => {
    const { credentials } = await createdClient(p, token, { scopes: ['users:read'] });
    const answer = await sendRaw(p.url, formHeaders(await p.clientToken(credentials)), endless());
    const { result } = answer.json.data;
    expect([answer.status, answer.headers.connection, result.__typename]).toEqual([200, 'close', 'ForbiddenError']);
    expect(result.permission).toBe('users:migrate');
  });

  const VARIABLES = { file: null };
  it.each([
    [
      'an unknown field',
      'mutation ($file: File!) { startMigration(file: $file) { __typename } }',
      /Cannot query field/,
    ],
    ['a query', 'query ($file: File) { me { nodeId } }', /is never used|only a mutation/],
    ['a subscription', 'subscription { migrationProgress(id: "x") { done } }', /only a mutation may have a file/],
    [
      'a variable of another type',
      'mutation ($file: ID!) { cancelUserMigration(id: $file) { __typename } }',
      /ID cannot represent value/,
    ],
    ['a syntax error', 'mutation {', /Syntax Error/],
  ])('DG-06 DG-09: with %s gets a 400 while the client still sends', async (_what, query, message) => {
    const form = formOf(withOperations({ query, variables: VARIABLES }), '').subarray(0, -2);
    let isSent = false;
    const body = new Readable({
      read() {
        this.push(isSent ? Buffer.alloc(64 * 1024, 'x') : form);
        isSent = true;
      },
    });
    const answer = await sendRaw(p.url, { ...formHeaders(token), accept: '*/*' }, body);
    expect([answer.status, answer.json.errors[0].message]).toEqual([400, expect.stringMatching(message)]);
  });

  it.each([
    ['a string', 'a,b'],
    ['an object', { stream: 'x' }],
    ['null', null],
  ])('DG-07 DG-09: %s as the file of a JSON request gets a 400', async (_what, file) => {
    const answer = await p.call('POST', '/graphql', { token, json: { query: QUERY, variables: { file } } });
    expect([answer.status, answer.json.errors.length]).toEqual([400, 1]);
    expect(answer.text).not.toContain('a,b');
  });

  it('DG-09: of two fields with one file the second has none', async () => {
    const query = `mutation ($file: File!) {
      a: startUserMigration(file: $file) { __typename }
      b: startUserMigration(file: $file) { __typename ... on ValidationError { issues { path message } } }
    }`;
    const answer = await sendRaw(p.url, formHeaders(token), formOf(withOperations({ query, variables: VARIABLES })));
    expect(answer.json.data).toEqual({
      a: { __typename: 'Migration' },
      b: { __typename: 'ValidationError', issues: [{ path: ['file'], message: 'was already read by another field' }] },
    });
  });
});

it('DG-05 DG-09: none of these uploads was stored, and no internal error was logged', async () => {
  const { db } = p.service.context.database;
  const ids = (table: 'migration_files' | 'migration_jobs') =>
    db.unscoped('a test counts').run((k) => k.selectFrom(table).select('migration_id as id').distinct());
  const migrations = await db.unscoped('a test counts').run((k) => k.selectFrom('migrations').select('id'));
  // Of two fields the first did have its file.
  expect(migrations).toHaveLength(1);
  expect(migrations).toEqual(
    expect.arrayContaining([...(await ids('migration_files')), ...(await ids('migration_jobs'))]),
  );
  expect(faults).toEqual([]);
});
