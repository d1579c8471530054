import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openPersistedFile, readPersistedDocuments } from '../../src/api/graphql/execution/persisted-file.ts';
import { ConfigError } from '../../src/platform/config/config.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { temporaryFile } from '../support/harness/temporary-file.ts';
import { startPortcullis } from '../support/harness.ts';

const ME = '{ me { nodeId } }';
const SUBJECT = '{ me { subject } }';
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
const silent = { debug() {}, info() {}, warn() {}, error() {} };

describe('the file of persisted operations', () => {
  it.each([
    ['a map of ids', { [hashOf(ME)]: ME, 'subject-1': SUBJECT }],
    ['a map of hashes that name their algorithm', { [`sha256:${hashOf(ME)}`]: ME, 'subject-1': SUBJECT }],
    [
      "Apollo's manifest",
      {
        format: 'apollo-persisted-query-manifest',
        version: 1,
        operations: [
          { id: hashOf(ME), name: 'Me', type: 'query', body: ME },
          { id: 'subject-1', name: 'Subject', type: 'query', body: SUBJECT },
        ],
      },
    ],
  ])('DG-11: may be %s', async (_name, content) => {
    await using file = await temporaryFile('operations.json', content);
    expect([...(await readPersistedDocuments(file.path))]).toEqual([
      [hashOf(ME), ME],
      ['subject-1', SUBJECT],
    ]);
  });

  it.each([
    ['is not JSON', '{', /must be JSON in UTF-8/],
    ['is a list', [], /must be a JSON object/],
    ['has an empty document', { a: '' }, /must be a JSON object/],
    ['has a document that is not a string', { a: 1 }, /must be a JSON object/],
    [
      'is a manifest of another version',
      { format: 'apollo-persisted-query-manifest', version: 2 },
      /must be a JSON object/,
    ],
  ])('DG-11: that %s is a configuration error that names the variable', async (_name, content, message) => {
    await using file = await temporaryFile('operations.json', content);
    const reading = readPersistedDocuments(file.path);
    await expect(reading).rejects.toBeInstanceOf(ConfigError);
    await expect(reading).rejects.toThrow(message);
    await expect(reading).rejects.toThrow(/^GRAPHQL_PERSISTED_FILE /);
  });

  it('DG-11: that has become invalid is logged, and the previous documents stay in force', async () => {
    await using file = await temporaryFile('operations.json', { a: ME });
    const logged: object[] = [];
    const persisted = await openPersistedFile(file.path, { ...silent, error: (fields) => void logged.push(fields) });
    await file.write('{');
    await persisted.reload();
    expect([...persisted.documents().keys()]).toEqual(['a']);
    expect(logged).toEqual([{ file: file.path, faults: [expect.stringContaining('must be JSON')] }]);
  });
});

describe('an instance with a file of persisted operations', () => {
  const file = beforeTests(() => temporaryFile('operations.json', { me: ME }));
  const p = beforeTests(() =>
    startPortcullis({ env: { GRAPHQL_PERSISTED: 'only', GRAPHQL_PERSISTED_FILE: file.path } }),
  );

  const post = async (json: object) => p.call('POST', '/graphql', { token: await p.clientToken(), json });

  it('DG-11: runs only the documents of its file, and those of a changed file after a reload', async () => {
    expect(await post({ documentId: 'me' })).toMatchObject({ status: 200, json: { data: { me: {} } } });
    expect(await post({ query: SUBJECT })).toMatchObject({ status: 400 });
    await file.write({ subject: SUBJECT });
    await p.service.reload();
    expect(await post({ documentId: 'me' })).toMatchObject({ status: 400 });
    expect(await post({ query: ME })).toMatchObject({ status: 400 });
    expect(await post({ documentId: 'subject' })).toMatchObject({ status: 200 });
    expect(await post({ query: SUBJECT })).toMatchObject({ status: 200 });
  });
});
