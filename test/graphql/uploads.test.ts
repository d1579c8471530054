import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { MigrationFiles } from '../../src/features/user-migrations/migration-files.service.ts';
import { MAX_WAITING_CHUNKS } from '../../src/features/user-migrations/migrations.store.ts';
import { recordsOf } from '../support/audit/records.ts';
import { MISSING, operate } from '../support/graphql/administration.ts';
import { startFixture } from '../support/graphql/fixture.ts';
import {
  browserForm,
  CSV,
  filePart,
  formHeaders,
  formOf,
  mapPart,
  OPERATIONS,
  openPost,
  operationsPart,
  sendRaw,
} from '../support/graphql/upload-requests.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Answer, startPortcullis } from '../support/harness.ts';
import { writtenLog } from '../support/observability/written-log.ts';
import { CancelUserMigrationDocument, MigrationDocument } from './generated/graphql.ts';

const MEBIBYTE = 1024 ** 2;
const MAX_BYTES = 32 * MEBIBYTE;

describe('an upload to the whole instance', () => {
  const { log, lines } = writtenLog();
  const p = beforeTests(() => startPortcullis({ overrides: { log } }));
  let token: string;

  beforeAll(async () => {
    token = await p.clientToken();
  });

  async function upload(csv: string | Blob, operations?: object): Promise<Answer> {
    const body = browserForm(csv);
    if (operations) body.set('operations', JSON.stringify(operations));
    const response = await fetch(`${p.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body,
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
  }

  const migrationOf = (id: string) => operate(p, token, MigrationDocument, { id, first: 10 });

  async function finished(id: string) {
    for (;;) {
      const { migration } = await migrationOf(id);
      if (migration?.status !== 'RUNNING') return migration;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  const chunks = () =>
    p.service.context.database.db
      .unscoped('a test counts')
      .run((k) => k.selectFrom('migration_files').select(['migration_id', 'seq']));

  it('DG-09 D6-26: uploads that come at once and wait for their turns are all read to their ends', async () => {
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, at) => upload(`wallet_address,email\n0xb${at},b${at}@example.com\n`)),
    );
    expect(answers.map(({ status, text }) => `${status} ${text}`).filter((answer) => answer.startsWith('400'))).toEqual(
      [],
    );
  });

  it('DG-09 D7-09: a form as browsers send it starts a migration, which completes', async () => {
    const answer = await upload('wallet_address,email\n0xa1,a1@example.com\n0xa2,A1@example.com\n');
    const { result } = answer.json.data;
    expect([answer.status, result.__typename, result.failed]).toEqual([200, 'Migration', 0]);
    const migration = await finished(result.id);
    expect(migration).toMatchObject({ status: 'DONE', total: 2, success: 1, skipped: 1, failed: 0 });
    expect(migration?.rows.edges.map(({ node }) => [node.index, node.status, node.reason])).toEqual([
      [1, 'created', null],
      [2, 'skipped', 'duplicate_email'],
    ]);
  });

  it('DG-03 DG-09: a file that is not a CSV of users is a ValidationError, and nothing of it is stored', async () => {
    const answer = await upload(`colour,size\n${'red,1\n'.repeat(200_000)}`);
    expect(answer.json.data.result).toMatchObject({ __typename: 'ValidationError', issues: [{ path: ['file'] }] });
    expect(await chunks()).toEqual([]);
  });

  it('DG-03 DG-09: a file beyond the limit of pending data of a node is a PreconditionError that says what to do', async () => {
    const { db } = p.service.context.database;
    const { node_id } = p.demo.other_node;
    const waiting = { migration_id: MISSING, node_id, bytes: Buffer.alloc(0), created_at: new Date().toISOString() };
    const rows = Array.from({ length: MAX_WAITING_CHUNKS / 8 }, (_, at) => at);
    for (let part = 0; part < 8; part += 1) {
      const values = rows.map((at) => ({ ...waiting, seq: part * rows.length + at }));
      await db.unscoped('a test fills it').run((k) => k.insertInto('migration_files').values(values));
    }
    const other = await p.clientToken(p.demo.other_node.client);
    const answer = await sendRaw(p.url, formHeaders(other), formOf([operationsPart, mapPart, filePart]));
    const message = expect.stringMatching(/take 4 GiB: wait until migrations end, or cancel one$/);
    expect(answer.json.data.result).toMatchObject({ __typename: 'PreconditionError', message });
    await db.forNode(node_id).run((k) => k.deleteFrom('migration_files').where('migration_id', '=', MISSING));
  });

  it('DG-09: a connection is reused after an upload', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<unknown>();
    const send = () => {
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      const sent = request(`${p.url}/graphql`, { method: 'POST', agent, headers: formHeaders(token) }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0));
      });
      sent.on('socket', (socket) => sockets.add(socket)).on('error', reject);
      sent.end(formOf([operationsPart, mapPart, filePart]));
      return promise;
    };
    expect([await send(), await send(), sockets.size]).toEqual([200, 200, 1]);
    agent.destroy();
  });

  it('DG-09 D7-09: an upload whose client disconnects leaves no data', async () => {
    // What was uploaded before goes once its migration is done.
    await expect.poll(chunks).toEqual([]);
    const headers = formHeaders(token);
    const sent = request(`${p.url}/graphql`, { method: 'POST', agent: false, headers });
    const gone = new Promise((resolve) => sent.on('error', resolve));
    sent.write(formOf([operationsPart, mapPart, { ...filePart, value: CSV + '0xcc,\n'.repeat(500_000) }], ''));
    while ((await chunks()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const [kept] = await chunks();
    sent.destroy();
    await gone;
    while ((await chunks()).length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await migrationOf(kept?.migration_id ?? '')).migration).toBeNull();
  });

  it('DG-09 DG-05: an upload without its end gets a 400, and leaves no data', async () => {
    const form = formOf([operationsPart, mapPart, { ...filePart, value: CSV + '0xcc,\n'.repeat(300_000) }], '');
    const answer = await sendRaw(p.url, formHeaders(token), form);
    expect([answer.status, answer.json.errors]).toEqual([
      400,
      [{ path: '', message: 'must end with the closing boundary' }],
    ]);
    expect(await chunks()).toEqual([]);
  });

  it('DG-09 DG-05: an invalid chunk gets a 400, and leaves no data', async () => {
    const socket = connect(Number(new URL(p.url).port), '127.0.0.1');
    let received = '';
    socket.on('data', (bytes) => {
      received += bytes;
    });
    const head = Object.entries({ host: 'x', ...formHeaders(token), 'transfer-encoding': 'chunked' });
    const form = formOf([operationsPart, mapPart, filePart], '');
    socket.write(`POST /graphql HTTP/1.1\r\n${head.map((pair) => pair.join(': ')).join('\r\n')}\r\n\r\n`);
    socket.write(`${form.length.toString(16)}\r\n${form}\r\n`);
    socket.write('no chunk\r\n');
    await once(socket, 'end');
    expect(received).toMatch(/^HTTP\/1\.1 400 .*"message":"invalid_request"/s);
    socket.end();
    expect(await chunks()).toEqual([]);
  });

  it('D2-07 D2-09 DG-09: one audit record has the operation and the length, and no record or log line has anything of the file', async () => {
    const correlationId = `upload-${Date.now()}`;
    const csv = 'wallet_address,email,name\n0xd1,grace@private.example,Grace Hopper\n';
    const form = formOf([operationsPart, mapPart, { ...filePart, value: csv, filename: 'private-users.csv' }]);
    const answer = await sendRaw(p.url, { ...formHeaders(token), 'x-correlation-id': correlationId }, form);
    const refused = formOf([operationsPart, { ...filePart, value: csv }]);
    await sendRaw(p.url, { ...formHeaders(token), 'x-correlation-id': correlationId }, refused);
    await finished(answer.json.data.result.id);
    const records = (await recordsOf(p, correlationId)).sort((one, other) => one.status_code - other.status_code);
    expect(records.map(({ status_code, request_bytes }) => [status_code, Number(request_bytes)])).toEqual([
      [200, form.length],
      [400, refused.length],
    ]);
    expect(JSON.parse(records[0]?.request_body ?? '')).toEqual(JSON.parse(OPERATIONS));
    expect(records[1]?.request_body).toBeNull();
    const told = [...records.map((record) => JSON.stringify(record)), ...lines].join('\n');
    expect(told).not.toMatch(/grace|Hopper|0xd1|private-users/i);
  });

  it('D8-13: a migration keeps the name that its starter gives the file, of at most 255 characters', async () => {
    const query = `mutation ($file: File!, $name: String) { result: startUserMigration(file: $file, name: $name) {
      __typename ... on Migration { fileName } ... on ValidationError { issues { path } } } }`;
    const named = async (name: string | null) =>
      (await upload('wallet_address,email\n', { query, variables: { file: null, name } })).json.data.result;
    expect(await named('March.csv')).toEqual({ __typename: 'Migration', fileName: 'March.csv' });
    expect(await named(null)).toEqual({ __typename: 'Migration', fileName: null });
    expect(await named('x'.repeat(256))).toEqual({ __typename: 'ValidationError', issues: [{ path: ['name'] }] });
  });

  it('DG-09 D7-09: a completed migration cannot be canceled; a running one can, permanently', async () => {
    const { json } = await upload('wallet_address,email\n0xe1,e1@example.com\n');
    await finished(json.data.result.id);
    const late = await operate(p, token, CancelUserMigrationDocument, { id: json.data.result.id });
    expect(late.result.__typename).toBe('PreconditionError');
    await p.service.context.migrationJobs.stop();
    const started = (await upload(CSV)).json.data.result;
    expect(await chunks()).toHaveLength(1);
    const first = await operate(p, token, CancelUserMigrationDocument, { id: started.id.toUpperCase() });
    expect(first.result).toMatchObject({ __typename: 'Migration', status: 'CANCELLED' });
    const again = await operate(p, token, CancelUserMigrationDocument, { id: started.id });
    expect(again.result).toEqual(first.result);
    p.service.context.migrationJobs.start();
    expect(await chunks()).toEqual([]);
  });
});

describe('the upload transport', () => {
  const fixture = beforeTests(() =>
    startFixture({
      uploadLimits: { maxBytes: MAX_BYTES, maxPauseMs: 1_000 },
      services: {
        migrationFiles: {
          start: async (_caller: unknown, given: AsyncIterable<Uint8Array>) => {
            await use(given);
            throw new Error('a test stores nothing');
          },
        } as unknown as MigrationFiles,
      },
    }),
  );
  let use: (source: AsyncIterable<Uint8Array>) => Promise<void>;
  const takeAll: typeof use = async (given) => {
    for await (const _chunk of given);
  };

  beforeEach(() => {
    use = takeAll;
  });

  const base = () => fixture.url.replace(/\/graphql$/, '');

  it('D2-14: a chunked form gets a 413 as soon as it passes its limit, and its reader gets the error', async () => {
    let told: unknown;
    let bytes = 0;
    use = async (given) => {
      try {
        for await (const chunk of given) bytes += chunk.length;
      } catch (error) {
        told = error;
        throw error;
      }
    };
    const { sent, answer } = open();
    sent.write(beginning());
    while (!sent.destroyed && bytes <= MAX_BYTES && told === undefined) {
      if (!sent.write(Buffer.alloc(256 * 1024, 'x'))) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const { status, json, headers } = await answer;
    expect([status, json.message, headers.connection]).toEqual([413, 'payload_too_large', 'close']);
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
    expect(told).toMatchObject({ message: 'the upload was interrupted' });
    sent.destroy();
  });

  it('DG-09: the network is read no faster than the file is consumed', async () => {
    const release = Promise.withResolvers<void>();
    let bytes = 0;
    use = async (given) => {
      for await (const chunk of given) {
        bytes += chunk.length;
        await release.promise;
      }
    };
    const accepting = Promise.withResolvers<unknown>();
    subscribe('net.server.socket', accepting.resolve);
    const { sent, answer } = open();
    const written = 24 * MEBIBYTE;
    sent.write(beginning());
    sent.write(Buffer.alloc(written, 'x'));
    const { socket } = (await accepting.promise) as { socket: Socket };
    unsubscribe('net.server.socket', accepting.resolve);
    await expect.poll(() => bytes).toBeGreaterThan(0);
    // However long that takes, the client is not at fault: a later one that pauses is.
    use = takeAll;
    const late = open();
    late.sent.write(beginning());
    expect((await late.answer).status).toBe(400);
    late.sent.destroy();
    expect([socket.bytesRead < 2 * MEBIBYTE, bytes < MEBIBYTE]).toEqual([true, true]);
    release.resolve();
    sent.end('\r\n--a-boundary--\r\n');
    expect((await answer).status).toBe(200);
    expect(bytes).toBeGreaterThanOrEqual(written);
  });

  it('DG-09: a client that stops sending without closing gets a 400', async () => {
    const { sent, answer } = open();
    sent.write(beginning());
    const { status, json } = await answer;
    expect([status, json.errors]).toEqual([
      400,
      [{ path: '', message: 'was paused for too long: send the file without pauses' }],
    ]);
    sent.destroy();
  });

  it('DG-09: a client that keeps sending after its response is disconnected', async () => {
    const { sent, answer } = open();
    const closed = new Promise((resolve) => sent.on('close', resolve));
    sent.write(Buffer.alloc(2 * MEBIBYTE, 'x'));
    expect((await answer).status).toBe(400);
    while (!sent.destroyed) {
      if (!sent.write(Buffer.alloc(MEBIBYTE, 'x'))) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await closed;
  });

  const beginning = () => formOf([operationsPart, mapPart, filePart], '').subarray(0, -2);

  const open = () => openPost(base(), formHeaders(fixture.token));
});
