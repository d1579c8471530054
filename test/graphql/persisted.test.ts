import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PersistedMode } from '../../src/api/graphql/plugins/persisted-operations.ts';
import { EventReader } from '../support/graphql/event-reader.ts';
import { type Fixture, startFixtureOn } from '../support/graphql/fixture.ts';
import { socketClient } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';

const ME = 'query Me { me { nodeId } }';
const NETWORKS = 'query Networks($n: Int) { networks(first: $n) { edges { node { id } } } }';
const LIVE = 'subscription Live { transaction(id: "t") { id } }';
const IMPORT = 'mutation Import($file: File!) { startUserMigration(file: $file) { __typename } }';
const OTHER = '{ me { subject } }';
const COSTLY = '{ accounts(first: 100) { edges { node { wallets(first: 100) { edges { node { id } } } } } } }';
const LISTED = [ME, NETWORKS, LIVE, IMPORT, COSTLY];

const UNKNOWN = '0'.repeat(64);
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
const byHash = (text: string) => ({ extensions: { persistedQuery: { version: 1, sha256Hash: hashOf(text) } } });

const database = beforeTests(scratchDatabase);
const fixtures = new Map<PersistedMode, Fixture>();

beforeAll(async () => {
  const documents = new Map([...LISTED.map((text) => [hashOf(text), text] as const), ['Me-1', ME]]);
  for (const persistedMode of ['off', 'allow', 'only'] as const) {
    fixtures.set(persistedMode, await startFixtureOn(database, { persistedMode, persistedDocuments: () => documents }));
  }
  await fixture('only').register('t');
});

afterAll(async () => {
  for (const one of fixtures.values()) await one[Symbol.asyncDispose]();
});

function fixture(mode: PersistedMode): Fixture {
  const one = fixtures.get(mode);
  if (!one) throw new Error(`there is no fixture for ${mode}`);
  return one;
}

function post(mode: PersistedMode, body: object, headers: Record<string, string> = {}) {
  return fixture(mode).post(body, headers);
}

function get(mode: PersistedMode, parameters: Record<string, string>) {
  const { fetch, token } = fixture(mode);
  return fetch({ headers: { authorization: `Bearer ${token}` } }, `?${new URLSearchParams(parameters)}`);
}

const ANSWER = { data: { me: { nodeId: expect.any(String) } } };

describe.each(['allow', 'only'] as const)('persisted operations, %s', (mode) => {
  it.each([
    ["by Apollo's hash", byHash(ME)],
    ['by its hash, with an empty document', { query: '', ...byHash(ME) }],
    ['by documentId', { documentId: hashOf(ME) }],
    ['by documentId with its prefix', { documentId: `sha256:${hashOf(ME)}` }],
    ['by a name of the file', { documentId: 'Me-1' }],
    ['in full', { query: ME }],
    ['in full, with its hash', { query: ME, ...byHash(ME) }],
  ])('DG-11: a listed document runs %s', async (_name, body) => {
    expect((await post(mode, body)).json).toEqual(ANSWER);
  });

  it('DG-11: a listed document runs with variables, by GET, in a batch and as an upload', async () => {
    const variables = { n: 1 };
    expect((await post(mode, { ...byHash(NETWORKS), variables })).json).toEqual({ data: { networks: { edges: [] } } });
    const extensions = JSON.stringify(byHash(ME).extensions);
    expect((await get(mode, { extensions })).json).toEqual(ANSWER);
    expect((await get(mode, { documentId: hashOf(ME) })).json).toEqual(ANSWER);
    expect((await post(mode, [byHash(ME), { documentId: UNKNOWN }])).json).toEqual([
      ANSWER,
      { errors: [expect.objectContaining({ message: 'PersistedQueryNotFound' })] },
    ]);
    const form = new FormData();
    form.set('operations', JSON.stringify({ ...byHash(IMPORT), variables: { file: null } }));
    form.set('map', '{"0": ["variables.file"]}');
    form.set('0', new Blob(['wallet_address,email\n0x01,a@b.example\n']), 'users.csv');
    const { fetch, token } = fixture(mode);
    const uploaded = await fetch({ method: 'POST', headers: { authorization: `Bearer ${token}` }, body: form });
    expect(uploaded.json).toEqual({ data: { startUserMigration: { __typename: 'Migration' } } });
  });

  it('DG-11: a listed document runs as a subscription, on an event stream and on a socket', async () => {
    const { url, token } = fixture(mode);
    const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
    const query = new URLSearchParams({ documentId: hashOf(LIVE) });
    await using reader = new EventReader(await fetch(`${url}?${query}`, { headers }));
    expect(await reader.nextJson()).toEqual({ data: { transaction: { id: 't' } } });
    const client = socketClient({ url }, token);
    const live = client.iterate({ query: '', ...byHash(LIVE) });
    expect((await live.next()).value).toEqual({ data: { transaction: { id: 't' } } });
    await live.return?.();
    const unknown = client.iterate({ query: '', extensions: { persistedQuery: { sha256Hash: UNKNOWN } } });
    await expect(unknown.next()).rejects.toEqual([expect.objectContaining({ message: 'PersistedQueryNotFound' })]);
    await client.dispose();
  });

  it.each([
    ['an unknown hash', byHash(OTHER), 'PERSISTED_QUERY_NOT_FOUND'],
    ['an unknown id', { documentId: 'constructor' }, 'PERSISTED_QUERY_NOT_FOUND'],
    ['an invalid hash', { extensions: { persistedQuery: { sha256Hash: 'x' } } }, 'PERSISTED_QUERY_MALFORMED'],
    ['a number as a hash', { extensions: { persistedQuery: { sha256Hash: 1 } } }, 'PERSISTED_QUERY_MALFORMED'],
    ['a list as an id', { documentId: ['Me-1'] }, 'PERSISTED_QUERY_MALFORMED'],
    ['a listed document over a limit', byHash(COSTLY), 'LIMIT_EXCEEDED'],
  ])('DG-11: %s gets a 400 with a code', async (_name, body, code) => {
    const { status, json } = await post(mode, body);
    expect({ status, code: json.errors[0].extensions.code }).toEqual({ status: 400, code });
  });

  it('DG-11 DG-04: an id does not replace a token', async () => {
    const { status } = await post(mode, byHash(ME), { authorization: '' });
    expect(status).toBe(401);
  });
});

describe('persisted operations, only', () => {
  it.each([
    ['another document', { query: OTHER }],
    ['a listed one with an additional space', { query: `${ME} ` }],
    ['another one with the hash of a listed one', { query: OTHER, ...byHash(ME) }],
    ['another one with its own hash', { query: OTHER, ...byHash(OTHER) }],
    ['the schema', { query: '{ __schema { types { name } } }' }],
    ['invalid GraphQL', { query: '{' }],
  ])('DG-11: %s is neither executed nor parsed', async (_name, body) => {
    const refusal = { status: 400, json: { errors: [{ extensions: { code: 'PERSISTED_QUERY_ONLY' } }] } };
    expect(await post('only', body)).toMatchObject(refusal);
    if ('query' in body) expect(await get('only', { query: body.query })).toMatchObject(refusal);
    expect(await post('only', byHash(OTHER))).toMatchObject({ status: 400 });
  });

  it('DG-11: another document does not run on a socket either, whose other operations continue', async () => {
    const { url, token } = fixture('only');
    const client = socketClient({ url }, token, { lazyCloseTimeout: 1_000 });
    await expect(client.iterate({ query: OTHER }).next()).rejects.toEqual([
      expect.objectContaining({ extensions: { code: 'PERSISTED_QUERY_ONLY' } }),
    ]);
    expect((await client.iterate({ query: ME }).next()).value).toEqual(ANSWER);
    await client.dispose();
  });
});

describe('persisted operations, allow', () => {
  it('DG-11: a document sent once with its hash can then be run by the hash', async () => {
    expect((await post('allow', byHash(OTHER))).json.errors[0].message).toBe('PersistedQueryNotFound');
    const first = await post('allow', { query: OTHER, ...byHash(OTHER) });
    expect(first.json).toEqual({ data: { me: { subject: 'somebody' } } });
    expect((await post('allow', byHash(OTHER))).json).toEqual(first.json);
  });

  it('DG-11: a document with the hash of another is neither run nor stored', async () => {
    const { status, json } = await post('allow', { query: OTHER, ...byHash(ME) });
    expect({ status, code: json.errors[0].extensions.code }).toEqual({
      status: 400,
      code: 'PERSISTED_QUERY_MISMATCH',
    });
    expect((await post('allow', byHash(ME))).json).toEqual(ANSWER);
  });

  it('DG-11: any other document runs too', async () => {
    expect((await post('allow', { query: '{ me { tokenUse } }' })).status).toBe(200);
  });
});

describe('persisted operations, off', () => {
  it('DG-11: an id without a document gets PersistedQueryNotSupported, as Apollo clients expect, and a document runs', async () => {
    expect((await post('off', byHash(ME))).json.errors[0]).toMatchObject({
      message: 'PersistedQueryNotSupported',
      extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' },
    });
    expect((await post('off', { query: ME, ...byHash(OTHER) })).json).toEqual(ANSWER);
  });
});
