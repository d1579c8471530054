import { print } from 'graphql';
import type { Client } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MigrationProgressDocument, type MigrationProgressSubscription } from '../graphql/generated/graphql.ts';
import { createdClient } from '../support/graphql/administration.ts';
import { openStream } from '../support/graphql/event-reader.ts';
import { socketClient } from '../support/graphql/sockets.ts';
import { browserForm } from '../support/graphql/upload-requests.ts';
import { usePortcullis } from '../support/harness.ts';
import { migrationsOf, newUser } from '../support/user-migrations/calls.ts';

const QUERY = print(MigrationProgressDocument);
const ROWS = 6_000;

type Told = MigrationProgressSubscription['progress'];

const p = usePortcullis();
let token: string;
const clients: Client[] = [];

beforeAll(async () => {
  token = await p.clientToken();
});

afterAll(async () => {
  for (const client of clients) await client.dispose();
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
