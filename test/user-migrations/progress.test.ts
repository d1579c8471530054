import { print } from 'graphql';
import type { Client } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MigrationProgressDocument, type MigrationProgressSubscription } from '../graphql/generated/graphql.ts';
import { createdClient, MISSING } from '../support/graphql/administration.ts';
import { openStream } from '../support/graphql/event-reader.ts';
import { socketClient } from '../support/graphql/sockets.ts';
import { browserForm } from '../support/graphql/upload-requests.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { migrationsOf, newUser } from '../support/user-migrations/calls.ts';

const QUERY = print(MigrationProgressDocument);
const ROWS = 6_000;

type Told = MigrationProgressSubscription['progress'];

let p: Portcullis;
let token: string;
const clients: Client[] = [];

beforeAll(async () => {
  p = await startPortcullis();
  token = await p.clientToken();
});

afterAll(async () => {
  for (const client of clients) await client.dispose();
  await p[Symbol.asyncDispose]();
});

const overSse = (id: string, by = token) => openStream(p, by, QUERY, { variables: { id } });

async function allOverSse(id: string): Promise<Told[]> {
  const reader = await overSse(id);
  const told: Told[] = [];
  for (let event = await reader.next(); event !== undefined; event = await reader.next()) {
    if (event.event === 'complete') return told;
    told.push(JSON.parse(event.data).data.progress);
  }
  throw new Error('it ended without complete');
}

async function allOverSocket(id: string): Promise<Told[]> {
  const client = socketClient(p, token);
  clients.push(client);
  const told: Told[] = [];
  for await (const { data } of client.iterate<MigrationProgressSubscription>({ query: QUERY, variables: { id } })) {
    if (data) told.push(data.progress);
  }
  return told;
}

/** A file of 1 MB. */
function startFile(rows = ROWS): Promise<string> {
  const lines = Array.from({ length: rows }, (_, at) => `0x${at},${at}@example.com,${'n'.repeat(150)}\n`);
  return startCsv(`wallet_address,email,name\n${lines.join('')}`);
}

async function startCsv(csv: string): Promise<string> {
  const body = browserForm(csv);
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${p.url}/graphql`, { method: 'POST', headers, body });
  const { data } = await response.json();
  return data.result.id;
}

describe('migrationProgress', () => {
  it('DG-08 DG-09 D7-09: the progress of a file of 1 MB is sent until it is done, over SSE and graphql-transport-ws', async () => {
    const { migrationJobs } = p.service.context;
    await migrationJobs.stop();
    const id = await startFile();
    const following = vi.spyOn(p.service.context.migrationProgress, 'follow');
    const followed = [allOverSse(id), allOverSocket(id.toUpperCase())];
    await vi.waitFor(() =>
      expect(following.mock.settledResults.map(({ type }) => type)).toEqual(['fulfilled', 'fulfilled']),
    );
    migrationJobs.start();
    for (const told of await Promise.all(followed)) {
      expect(told[0]).toMatchObject({ processed: 0, total: ROWS, done: false, migration: { id, status: 'RUNNING' } });
      const last = told.at(-1);
      expect(last).toMatchObject({ processed: ROWS, success: ROWS, skipped: 0, failed: 0, done: true });
      expect(last?.migration).toMatchObject({ id, status: 'DONE', total: ROWS, success: ROWS });
      expect(told.map(({ done }) => done)).toEqual([...told.slice(1).map(() => false), true]);
      const counts = told.map(({ processed }) => processed);
      expect(counts).toEqual(counts.toSorted((one, other) => one - other));
    }
    await vi.waitFor(() => expect(p.service.context.migrationProgress.size).toBe(0));
    expect((await allOverSse(id)).map(({ done, processed }) => [done, processed])).toEqual([[true, ROWS]]);
  });

  it('DG-09: the progress of a migration from JSON is one value, over both transports', async () => {
    const { many } = await migrationsOf(p, token);
    expect((await many([newUser(), { wallet_address: '0x1' }])).status).toBe(200);
    const { json } = await p.call('POST', '/graphql', {
      token,
      json: { query: '{ migrations(first: 1) { edges { node { id } } } }' },
    });
    const { id } = json.data.migrations.edges[0].node;
    for (const told of [await allOverSse(id), await allOverSocket(id)]) {
      expect(told).toMatchObject([{ processed: 2, total: 2, success: 1, skipped: 1, failed: 0, done: true }]);
    }
  });

  it('DG-09: the progress of a cancelled migration is done', async () => {
    const { migrationJobs } = p.service.context;
    await migrationJobs.stop();
    const id = await startFile(10);
    const reader = await overSse(id);
    expect((await reader.nextJson()).data.progress).toMatchObject({ done: false });
    const query = `mutation { cancelUserMigration(id: "${id}") { __typename } }`;
    await p.call('POST', '/graphql', { token, json: { query } });
    expect((await reader.nextJson()).data.progress).toMatchObject({ done: true, migration: { status: 'CANCELLED' } });
    expect((await reader.next())?.event).toBe('complete');
    migrationJobs.start();
  });

  it('DG-09: a migration stopped for its failed rows is done with FAILED, and its last row has the reason', async () => {
    const id = await startCsv(`wallet_address,email\n0xfirst,first@example.com\n${'a,b,c\n'.repeat(7_000)}`);
    expect((await allOverSse(id)).at(-1)).toMatchObject({
      processed: 6_501,
      total: 7_001,
      success: 1,
      failed: 6_500,
      done: true,
      migration: { status: 'FAILED' },
    });
    const query = `{ migration(id: "${id}") { rows(last: 1) { edges { node { index status reason } } } } }`;
    const { json } = await p.call('POST', '/graphql', { token, json: { query } });
    expect(json.data.migration.rows.edges).toEqual([
      {
        node: {
          index: 6_501,
          status: 'failed',
          reason: expect.stringMatching(
            /^line 6501: the migration stopped here: its failed rows and rows without an identifier would take more than/,
          ),
        },
      },
    ]);
  });

  it('DG-09: an unknown or malformed id, and one of another node, are the same NOT_FOUND', async () => {
    const id = await startFile(1);
    const other = await p.clientToken(p.demo.other_node.client);
    const readers = await Promise.all([overSse(MISSING), overSse('x'), overSse(id, other)]);
    const [unknown, ...others] = await Promise.all(readers.map((reader) => reader.next()));
    expect(JSON.parse(unknown?.data ?? '').errors).toEqual([
      expect.objectContaining({ message: 'not found', extensions: { code: 'NOT_FOUND' } }),
    ]);
    expect(others).toEqual([unknown, unknown]);
  });

  it('DG-04 DG-09: needs users:read', async () => {
    const { credentials } = await createdClient(p, token, { scopes: ['users:migrate'] });
    const reader = await overSse(MISSING, await p.clientToken(credentials));
    const { errors } = await reader.nextJson();
    expect(errors[0].extensions).toEqual({ code: 'FORBIDDEN', permission: 'users:read' });
  });

  it('DG-08 DG-09: the subscription is closed when its client is disabled', async () => {
    const { migrationJobs } = p.service.context;
    await migrationJobs.stop();
    const id = await startFile(2);
    const { client, credentials } = await createdClient(p, token, { scopes: ['users:read'] });
    const reader = await overSse(id, await p.clientToken(credentials));
    await reader.nextJson();
    const query = `mutation { setClientStatus(id: "${client.id}", status: DISABLED) { __typename } }`;
    await p.call('POST', '/graphql', { token, json: { query } });
    expect(await reader.next()).toBeUndefined();
    migrationJobs.start();
  });
});
