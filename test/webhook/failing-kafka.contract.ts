import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type Portcullis, startOnRealServers } from '../harness.ts';
import { temporaryFolder } from '../services/folders.ts';
import { freeze } from '../services/freeze.ts';
import { type KafkaServer, startKafka } from '../services/kafka.ts';
import { type KafkaBehindProxy, startKafkaBehindProxy } from '../services/kafka-behind.ts';
import { describeReal } from '../services/real.ts';
import { basic, notification } from './stand.ts';

type Fault = [name: string, begin: () => unknown, end: () => unknown];

describeReal(['postgres', 'redis', 'kafka'], 'the webhook while Kafka fails', () => {
  let folder: string;
  let kafka: KafkaBehindProxy;
  let portcullis: Portcullis;
  /** The broker that has taken the place of one that was killed. */
  let next: KafkaServer | undefined;

  const dataDir = () => join(folder, 'kafka');

  beforeAll(async () => {
    folder = await temporaryFolder();
    kafka = await startKafkaBehindProxy(dataDir());
    portcullis = await startOnRealServers({
      env: { KAFKA_BROKERS: kafka.server.brokers, PORTCULLIS_ROLE: 'gateway' },
    });
  });

  afterAll(async () => {
    await portcullis?.[Symbol.asyncDispose]();
    await kafka?.stop();
    await next?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function post(): Promise<number> {
    const { username, password } = portcullis.webhook;
    const headers = { authorization: basic(username, password) };
    return (await portcullis.call('POST', '/v2/webhooks/custodial', { json: notification(), headers })).status;
  }

  const signal = (name: NodeJS.Signals) => process.kill(kafka.server.pid, name);

  const killed: Fault = ['was killed', () => signal('SIGKILL'), restarted];

  it.each<Fault>([
    ['is frozen', () => freeze(kafka.server.pid), () => signal('SIGCONT')],
    ['takes everything and answers nothing', () => kafka.proxy.set('mute'), mended],
    // What a killed one is to its clients.
    ['refuses every connection', () => kafka.proxy.set('cut'), () => kafka.proxy.set('passing')],
    ...(inject('isThorough') ? [killed] : []),
  ])(
    '7.3-01: while it %s every request is answered 500 by the deadline, and 200 afterwards',
    async (_fault, begin, end) => {
      await expect.poll(post, { interval: 100 }).toBe(200);
      await begin();
      try {
        // The fault lasts until all are answered: it is their own deadline that ends them.
        expect(await Promise.all(Array.from({ length: 5 }, post))).toEqual([500, 500, 500, 500, 500]);
      } finally {
        await end();
      }
      await expect.poll(post, { interval: 100 }).toBe(200);
    },
  );

  /** What a muted server has said never comes: its connections go with it. */
  function mended(): void {
    kafka.proxy.set('cut');
    kafka.proxy.set('passing');
  }

  async function restarted(): Promise<void> {
    const { port: advertisedPort } = kafka.proxy;
    next = await startKafka({ dataDir: dataDir(), advertisedPort });
    kafka.proxy.targetPort = next.port;
  }
});
