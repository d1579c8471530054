import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it, vi } from 'vitest';
import type { IncomingMessage } from '../../src/events/bus/event-bus.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startOnRealServers, startReplica } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';
import { BULK, newUser, SINGLE } from '../support/user-migrations/calls.ts';
import { csvOf, fileOf, stateOf } from '../support/user-migrations/files-fixture.ts';

// Commits wait for disks, on machines that are busy with other tests.
const TOPIC = 'users.kyc-token';

describeReal(['postgres', 'redis', 'kafka'], 'migrations on two replicas, PostgreSQL, Redis and Kafka', () => {
  const p = beforeTests(startOnRealServers);
  const replica = beforeTests(() => startReplica(p));
  let token: string;
  const events: IncomingMessage[] = [];

  beforeAll(async () => {
    token = await p.clientToken();
    await p.service.context.bus.subscribe({
      groupId: 'kyc',
      topics: [TOPIC],
      handle: async (batch) => void events.push(...batch),
    });
  });

  it('D7-08 6-02: each created user without kyc_sent has its event on Kafka, by its key, and no other user has one', async () => {
    const users = Array.from({ length: 30 }, (_, index) => newUser({ kyc_sent: index % 3 === 0, name: 'Secret' }));
    const correlation = `c-${randomUUID()}`;
    const { json } = await p.call('POST', BULK, {
      token,
      json: { users },
      headers: { 'x-correlation-id': correlation },
    });
    const expected = users.flatMap(({ kyc_sent }, index) => (kyc_sent ? [] : [json.results[index].user_id]));
    const ours = () => events.filter(({ headers }) => headers['correlation-id'] === correlation);
    await vi.waitFor(() => expect(new Set(ours().map(({ key }) => key)).size).toBe(20));
    expect([...new Set(ours().map(({ key }) => key))].sort()).toEqual(expected.sort());
    for (const { key, value, headers } of ours()) {
      const payload = JSON.parse(String(value));
      expect(payload).toMatchObject({ user_id: key, node_id: p.demo.node_id, event: 'user.kyc_token.requested' });
      expect(headers).toMatchObject({ 'event-id': payload.id, 'event-type': payload.event, 'schema-version': '1' });
      expect(String(value)).not.toMatch(/Secret|@example/);
    }
    await vi.waitFor(async () => expect(await rows(p).run((k) => k.selectFrom('outbox').select('id'))).toEqual([]));
  });

  it('D7-08: events written by a gateway are published by other processes, and leave the outbox', async () => {
    const gateway = await startReplica(p, {
      env: { PORTCULLIS_ROLE: 'gateway', TOPIC_PREFIX: `other-${randomUUID()}` },
    });
    const depth = async () => {
      const text = await (await fetch(`${p.service.adminUrl}/metrics`)).text();
      return /^portcullis_outbox_events (\d+)$/m.exec(text)?.[1];
    };
    try {
      expect(await depth()).toBe('0');
      const { json } = await gateway.call('POST', SINGLE, { token, json: newUser() });
      await vi.waitFor(() => expect(events.map(({ key }) => key)).toContain(json.id));
      await vi.waitFor(async () => expect(await depth()).toBe('0'));
    } finally {
      await gateway[Symbol.asyncDispose]();
    }
  });

  it('D7-06: concurrent requests with one key, at two replicas, run once and get the same response', async () => {
    const json = newUser();
    const headers = { 'idempotency-key': randomUUID() };
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        (index % 2 === 0 ? p : replica).call('POST', SINGLE, { token, json, headers }),
      ),
    );
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(201);
    const other = await replica.call('POST', SINGLE, { token, json: newUser(), headers });
    expect(other).toMatchObject({ status: 409, json: { message: 'idempotency_conflict' } });
  });

  it('D7-03: forty concurrent requests for one user each all succeed', async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        (index % 2 === 0 ? p : replica).call('POST', SINGLE, { token, json: newUser() }),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  });

  it('D7-09: a file uploaded to one replica is applied by another, and its events are published', async () => {
    await using gateway = await startReplica(p, { env: { PORTCULLIS_ROLE: 'gateway' } });
    const { migrationFiles, database } = gateway.service.context;
    const caller = { nodeId: gateway.demo.node_id, subject: 'ann', correlationId: 'upload' };
    const { id } = await migrationFiles.start(caller, fileOf(csvOf(1_100)));
    await vi.waitFor(
      async () => expect(await migrationFiles.progress(caller.nodeId, id)).toMatchObject({ done: true }),
      { interval: 100 },
    );
    const ended = await migrationFiles.progress(caller.nodeId, id);
    expect(ended).toMatchObject({ processed: 1_100, migration: { status: 'done', success: 1_100, created_by: 'ann' } });
    expect((await stateOf(database.db, caller.nodeId)).chunks).toEqual([]);
    await vi.waitFor(async () => expect((await stateOf(database.db, caller.nodeId)).events).toEqual([]), {
      interval: 250,
    });
  });
});
