import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TOPICS } from '../../src/events/bus/topics.ts';
import {
  ADMIN_GROUP,
  changesOf,
  committed,
  deadLetters,
  kafkaOf,
  notify,
  registered,
  untilMembers,
  workerHere,
} from '../support/events/worker-fixture.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Portcullis, startOnRealServers } from '../support/harness.ts';
import { scrape } from '../support/observability/scrape.ts';
import { type FaultProxy, faultProxy } from '../support/services/fault-proxy.ts';
import { endOf } from '../support/services/kafka-behind.ts';
import { describeReal } from '../support/services/real.ts';

const FROZEN_MS = 2_000;

describeReal(['postgres', 'redis', 'kafka'], 'a worker whose PostgreSQL is unavailable', () => {
  const gateway = beforeTests(() => startOnRealServers({ env: { PORTCULLIS_ROLE: 'gateway' } }));
  let worker: Portcullis;
  let proxy: FaultProxy;
  beforeAll(async () => {
    const { DATABASE_URL: url = '' } = gateway.env;
    proxy = await faultProxy(Number(new URL(url).port));
    worker = await workerHere(gateway, { env: { DATABASE_URL: proxy.urlOf(url) } });
    await untilMembers(kafkaOf(gateway), groupId(), 1);
  });
  afterAll(async () => {
    proxy.set('passing');
    await worker?.[Symbol.asyncDispose]();
    await proxy?.[Symbol.asyncDispose]();
  });

  const groupId = () => `${gateway.env.TOPIC_PREFIX}${ADMIN_GROUP}`;
  const topic = () => `${gateway.env.TOPIC_PREFIX}${TOPICS.admin}`;
  const offsets = () => committed(kafkaOf(gateway), groupId(), topic());

  /** How many batches the worker has failed to apply. */
  async function failures(): Promise<number> {
    const { samples } = await scrape(worker.service);
    const failed = samples.filter(
      ({ name, labels }) => name === 'messaging_process_duration_seconds_count' && labels.error_type !== '',
    );
    return failed.reduce((sum, { value }) => sum + value, 0);
  }

  it.each<[how: string, begin: () => void, meanwhile: () => Promise<unknown>]>([
    [
      'closes its connections and refuses new ones',
      () => proxy.set('cut'),
      () => expect.poll(failures, { timeout: 10_000 }).toBeGreaterThan(1),
    ],
    ['keeps its connections open and does not respond', () => proxy.set('frozen'), () => setTimeout(FROZEN_MS)],
    ['freezes and then dies', () => proxy.set('frozen'), () => setTimeout(FROZEN_MS).then(() => proxy.set('cut'))],
  ])(
    'D6-18: while it %s nothing is committed or dead-lettered, and afterwards all events are applied',
    async (_how, begin, meanwhile) => {
      const id = await registered(gateway);
      expect(await notify(gateway, id, 1)).toBe(200);
      await expect.poll(() => changesOf(gateway, id)).toEqual(['null 1']);
      const before = await endOf(kafkaOf(gateway), topic());
      await expect.poll(offsets).toBe(before);
      begin();
      for (const status of [2, 3]) expect(await notify(gateway, id, status)).toBe(200);
      await meanwhile();
      expect(await changesOf(gateway, id)).toEqual(['null 1']);
      expect(await offsets()).toBe(before);
      proxy.set('passing');
      await expect.poll(() => changesOf(gateway, id)).toEqual(['null 1', '1 2', '2 3']);
      await expect.poll(offsets).toBe(before + 2);
      expect(await deadLetters(kafkaOf(gateway), gateway)).toBe(0);
    },
  );
});
