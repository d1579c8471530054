import { ConfigResourceTypes, Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { type Portcullis, startOnRealServers } from '../support/harness.ts';
import { keysInLog } from '../support/services/kafka-behind.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

const LARGEST = 262_144;
const LARGE = 24;
const SMALL = 24;

/** A notification whose body has exactly so many bytes. */
function padded(bytes: number): { id: string; body: string } {
  const told = notification({ padding: '' });
  const body = JSON.stringify(told);
  return { id: told.id, body: body.replace('"padding":""', `"padding":"${'x'.repeat(bytes - body.length)}"`) };
}

describeReal(['postgres', 'redis', 'kafka'], 'notifications of maximum size, on Kafka', () => {
  let portcullis: Portcullis;
  let kafka: Kafka;

  beforeAll(async () => {
    kafka = new Kafka({ brokers: [serviceAddress('kafka')], logLevel: logLevel.NOTHING });
    portcullis = await startOnRealServers({ env: { PORTCULLIS_ROLE: 'gateway' } });
  });
  afterAll(() => portcullis?.[Symbol.asyncDispose]());

  const nameOf = (topic: string) => `${portcullis.env.TOPIC_PREFIX}${topic}`;

  async function post(body: string): Promise<number> {
    const { username, password } = portcullis.webhook;
    const headers = { authorization: basic(username, password), 'content-type': 'application/json' };
    return (await portcullis.call('POST', '/v2/webhooks/custodial', { body, headers })).status;
  }

  it('4.5-01 6-01: large and small notifications are accepted and in both topics once; an oversized one alone is a 400', async () => {
    const large = Array.from({ length: LARGE }, () => padded(LARGEST));
    const small = Array.from({ length: SMALL }, () => padded(1_000));
    const mixed = [...large, ...small].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const [tooLarge, ...statuses] = await Promise.all([
      post(padded(LARGEST + 1).body),
      ...mixed.map(({ body }) => post(body)),
    ]);
    expect(tooLarge).toBe(400);
    expect(statuses).toEqual(mixed.map(() => 200));
    for (const topic of [TOPICS.admin, TOPICS.user]) {
      const keys = await keysInLog(kafka, nameOf(topic));
      expect(keys.sort()).toEqual(mixed.map(({ id }) => id));
    }
  });

  it('7.3-01: one larger than the limit of the broker gets 500, and others are accepted', async () => {
    const admin = kafka.admin();
    await admin.connect();
    const configEntries = [{ name: 'max.message.bytes', value: '100000' }];
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: nameOf(TOPICS.user), configEntries }];
    await admin.alterConfigs({ validateOnly: false, resources });
    await admin.disconnect();
    const small = Array.from({ length: SMALL }, () => padded(1_000));
    const tooLarge = padded(200_000);
    // Until the broker minds the setting it takes some.
    await expect.poll(() => post(padded(200_000).body)).toBe(500);
    const [status, ...statuses] = await Promise.all([tooLarge, ...small].map(({ body }) => post(body)));
    expect(status).toBe(500);
    expect(statuses).toEqual(small.map(() => 200));
    const keys = await keysInLog(kafka, nameOf(TOPICS.user));
    expect(keys).toEqual(expect.arrayContaining(small.map(({ id }) => id)));
    expect(keys).not.toContain(tooLarge.id);
  });
});
