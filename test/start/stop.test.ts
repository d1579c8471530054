import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, inject, it, vi } from 'vitest';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { thoroughly } from '../support/harness/in-turn.ts';
import { findOnPath } from '../support/services/commands.ts';
import { faultProxy } from '../support/services/fault-proxy.ts';
import { createTopics, deleteTopics, freshRedis, topicPrefix } from '../support/services/isolation.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { emptyFolder, startedFolder, type TestFolder } from '../support/start/folders.ts';
import { printed, type Running, spawnInstance, startInstance } from '../support/start/process.ts';

/** In a quick run SIGINT comes to a first start, by Ctrl-C, and SIGTERM to an instance. */
const SIGNALS = inject('isThorough') ? (['SIGTERM', 'SIGINT'] as const) : (['SIGTERM'] as const);
const WEBHOOK = { username: 'chain-processor', password: 'the password of this test' };
const CREDENTIALS = { WEBHOOK_USERNAME: WEBHOOK.username, WEBHOOK_PASSWORD: WEBHOOK.password };

const TRICKLE_MS = 50;

/** A notification whose body has begun and not ended. It is in flight once the server has said 100 Continue. */
function begunNotification({ baseUrl }: Running, id: string): { request: ClientRequest; rest: string } {
  const at = '2026-11-21T10:30:00Z';
  const body = JSON.stringify({ id, type: 1, status: 1, created_at: at, updated_at: at, unknown: ' '.repeat(10_000) });
  const sent = request(`${baseUrl}/v2/webhooks/custodial`, {
    method: 'POST',
    auth: `${WEBHOOK.username}:${WEBHOOK.password}`,
    headers: { 'content-type': 'application/json', 'x-correlation-id': id, expect: '100-continue' },
  });
  sent.write(body.slice(0, 20));
  return { request: sent, rest: body.slice(20) };
}

async function isRefused({ baseUrl }: Running): Promise<boolean> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  try {
    await once(socket, 'connect');
    return false;
  } catch {
    return true;
  } finally {
    socket.destroy();
  }
}

it.each(SIGNALS)(
  'D1-13: %s lets requests in flight finish, stores their audit records and exits with 0',
  async (signal) => {
    await using folder = await startedFolder();
    await using instance = await startInstance({ DATA_DIR: folder.path, ...CREDENTIALS });
    await (await fetch(`${instance.baseUrl}/health`)).arrayBuffer();
    const begun = begunNotification(instance, 'in flight');
    const answered = once(begun.request, 'response') as Promise<[IncomingMessage]>;
    await once(begun.request, 'continue');
    // A body of which nothing comes for a second would be given up: of this one, something always comes.
    let at = 0;
    const trickle = setInterval(() => begun.request.write(begun.rest.charAt(at++)), TRICKLE_MS);
    const ended = instance.kill(signal);
    await printed(instance, new RegExp(`"signal":"${signal}"`));
    await expect.poll(() => isRefused(instance)).toBe(true);
    clearInterval(trickle);
    begun.request.end(begun.rest.slice(at));
    const [response] = await answered;
    expect(response.statusCode).toBe(200);
    response.resume();
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect((await readdir(join(folder.path, 'audit'))).filter((name) => name.endsWith('.seg'))).toEqual([]);
    await using database = await openDatabase({ dataDir: join(folder.path, 'postgres') });
    const records = await database.db
      .unscoped('a test reads all')
      .run((k) => k.selectFrom('audit_records').select(['path', 'status_code']).orderBy('at'));
    expect(records).toEqual([
      { path: '/health', status_code: 200 },
      { path: '/v2/webhooks/custodial', status_code: 200 },
    ]);
  },
);

/** Waits until a first start has begun to write its database. */
async function begunDatabase({ path }: TestFolder): Promise<void> {
  const isBegun = async () => (await readdir(path)).some((name) => name.startsWith('postgres'));
  await expect.poll(isBegun, { interval: 1 }).toBe(true);
}

async function expectCompleteDatabase({ path }: TestFolder): Promise<void> {
  expect((await readdir(path)).filter((name) => name.startsWith('postgres'))).toEqual(['postgres']);
}

it.skipIf(!findOnPath('setsid'))(
  'D1-13: Ctrl-C while the first start creates its database exits with 0 and leaves a complete database',
  async () => {
    await using folder = await emptyFolder();
    // As a terminal does it: to each process of the group.
    await using instance = spawnInstance({ DATA_DIR: folder.path }, undefined, ['setsid']);
    await begunDatabase(folder);
    process.kill(-instance.pid, 'SIGINT');
    expect(await instance.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    await expectCompleteDatabase(folder);
  },
);

thoroughly.each(SIGNALS)(
  'D1-13: %s while the first start creates its database exits with 0 and leaves a complete database',
  async (signal) => {
    await using folder = await emptyFolder();
    await using instance = spawnInstance({ DATA_DIR: folder.path });
    await begunDatabase(folder);
    expect(await instance.kill(signal)).toMatchObject({ code: 0, signal: null, stderr: '' });
    await expectCompleteDatabase(folder);
  },
);

describeReal(['postgres', 'redis', 'kafka'], 'with a PostgreSQL that does not respond', () => {
  it('D1-13: an instance still exits after SIGTERM', async () => {
    await using stack = new AsyncDisposableStack();
    const database = stack.use(await realDatabase());
    const redis = stack.use(await freshRedis());
    const proxy = stack.use(await faultProxy(Number(new URL(database.url).port)));
    const folder = stack.use(await emptyFolder());
    const [brokers, prefix] = [serviceAddress('kafka'), topicPrefix()];
    stack.defer(() => deleteTopics(brokers, prefix));
    await createTopics(brokers, prefix, ALL_TOPICS);
    const stores = { DATABASE_URL: proxy.urlOf(database.url), REDIS_URL: redis.url, KAFKA_BROKERS: brokers };
    await using instance = await startInstance({ DATA_DIR: folder.path, ...stores, TOPIC_PREFIX: prefix });
    proxy.set('frozen');
    // What waits for it when the stop comes: probes, loops, and a request.
    await vi.waitFor(async () => {
      const { status } = await fetch(`${instance.adminUrl}/readyz`);
      if (status === 200) throw new Error('not noticed yet');
    });
    const { code, signal, stderr } = await instance.kill('SIGTERM');
    expect([signal, stderr]).toEqual([null, '']);
    // Ended in order, or by its own time.
    expect([0, 1]).toContain(code);
  });
});
