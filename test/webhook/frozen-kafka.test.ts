import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Portcullis, startOnRealServers } from '../harness.ts';
import { temporaryFolder } from '../services/folders.ts';
import { freeze } from '../services/freeze.ts';
import { type KafkaServer, startKafka } from '../services/kafka.ts';
import { describeReal } from '../services/real.ts';
import { basic, notification } from './stand.ts';

/** The decided deadline, and half a second for the way there and back. */
const LIMIT_MS = 4_500;

describeReal(['postgres', 'redis', 'kafka'], 'the webhook while Kafka is frozen', () => {
  let folder: string;
  let kafka: KafkaServer;
  let portcullis: Portcullis;

  beforeAll(async () => {
    folder = await temporaryFolder();
    kafka = await startKafka({ dataDir: join(folder, 'kafka') });
    portcullis = await startOnRealServers({ env: { KAFKA_BROKERS: kafka.brokers } });
  });

  afterAll(async () => {
    await portcullis[Symbol.asyncDispose]();
    await kafka.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function post(): Promise<number> {
    const { username, password } = portcullis.webhook;
    const headers = { authorization: basic(username, password) };
    return (await portcullis.call('POST', '/v2/webhooks/custodial', { json: notification(), headers })).status;
  }

  it('7.3-01: every request is answered 500 by the deadline, and 200 once Kafka goes on', async () => {
    expect(await post()).toBe(200);
    await freeze(kafka.pid);
    try {
      const startedAt = performance.now();
      const answers = await Promise.all(
        Array.from({ length: 5 }, async () => ({ status: await post(), tookMs: performance.now() - startedAt })),
      );
      for (const { status, tookMs } of answers) {
        expect(status).toBe(500);
        expect(tookMs).toBeLessThan(LIMIT_MS);
      }
    } finally {
      process.kill(kafka.pid, 'SIGCONT');
    }
    await expect.poll(post, { timeout: 15_000, interval: 100 }).toBe(200);
  });
});
