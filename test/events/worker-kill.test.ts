import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ALL_TOPICS, TOPICS } from '../../src/events/bus/topics.ts';
import { type Portcullis, startOnRealServers } from '../harness.ts';
import { temporaryFolder } from '../services/folders.ts';
import { createTopics, topicPrefix } from '../services/isolation.ts';
import { type KafkaBehindProxy, startKafkaBehindProxy } from '../services/kafka-behind.ts';
import { describeReal } from '../services/real.ts';
import {
  ADMIN_GROUP,
  changesOf,
  committed,
  deadLetters,
  notify,
  registered,
  sequenceOf,
  workerHere,
  workerProcess,
} from './worker-stand.ts';

// The worker is a process, and the group gives one that was killed six seconds.
/** How long a commit of offsets is on its way: long enough to break it off there. */
const ON_THE_WAY_MS = 500;

describeReal(
  ['postgres', 'redis', 'kafka'],
  'a worker that is killed between an effect and its commit of offsets',
  () => {
    let dataDir: string;
    let kafka: KafkaBehindProxy;
    let gateway: Portcullis;
    beforeAll(async () => {
      dataDir = await temporaryFolder();
      kafka = await startKafkaBehindProxy(dataDir);
      const prefix = topicPrefix();
      await createTopics(kafka.server.brokers, prefix, ALL_TOPICS);
      gateway = await startOnRealServers({
        env: { KAFKA_BROKERS: kafka.server.brokers, TOPIC_PREFIX: prefix, PORTCULLIS_ROLE: 'gateway' },
      });
    });
    afterAll(async () => {
      await gateway?.[Symbol.asyncDispose]();
      await kafka?.stop();
      await rm(dataDir, { recursive: true, force: true });
    });

    it('D6-02 D6-17: the next one is given the notification again, and no event is there twice', async () => {
      const { proxy, directly } = kafka;
      const offsets = () =>
        committed(directly, `${gateway.env.TOPIC_PREFIX}${ADMIN_GROUP}`, `${gateway.env.TOPIC_PREFIX}${TOPICS.admin}`);
      const changes = () => changesOf(gateway, id);
      const id = await registered(gateway);
      await using worker = await workerProcess(gateway);
      expect(await notify(gateway, id, 1)).toBe(200);
      await expect.poll(offsets).toBe(1);

      proxy.delayMs = ON_THE_WAY_MS;
      const told = notify(gateway, id, 2);
      await expect.poll(changes, { interval: 5 }).toEqual(['null 1', '1 2']);
      proxy.set('cut');
      await worker.kill('SIGKILL');
      await told;
      expect(await offsets()).toBe(1);

      proxy.delayMs = 0;
      proxy.set('passing');
      await using _next = await workerHere(gateway);
      await expect.poll(() => notify(gateway, id, 3)).toBe(200);
      await expect.poll(changes).toContain('2 3');
      expect(await changes()).toEqual(['null 1', '1 2', '2 3']);
      expect(await sequenceOf(gateway)).toEqual({ seqs: [1, 2, 3], counter: 3 });
      expect(await deadLetters(directly, gateway)).toBe(0);
    });
  },
);
