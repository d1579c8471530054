import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { createTopics, deleteTopics, kafkaConnection, topicPrefix } from '../support/services/isolation.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { migratedFolder } from '../support/start/folders.ts';

const GROUP = 'portcullis.transactions.admin';
const LEAP = 2n ** 32n;

describe('recover on the embedded database', () => {
  const folder = beforeTests(migratedFolder);

  it('D6-18: moves no consumer groups, whose offsets are in the database, and reports what it did', async () => {
    const env = { DATA_DIR: folder.path };
    const { code, out, err } = await portcullis(['recover', '--since', new Date(0).toISOString()], env);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out.split('\n')).toEqual([
      expect.stringMatching(/^New events of \d+ tenants have higher sequence numbers than all cursors\.$/),
      expect.stringMatching(/^Revoked the tokens of \d+ clients\.$/),
      expect.stringMatching(/^Audit records from .* to .* are lost, except records in spools/),
      '',
    ]);
  });
});

describeReal(['postgres', 'kafka'], 'recover on real servers', () => {
  const prefix = topicPrefix();
  const brokers = () => serviceAddress('kafka').split(',');
  const database = beforeTests(realDatabase);
  let bus: KafkaBus;
  let folder: string;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    await createTopics(brokers().join(','), prefix, [TOPICS.admin]);
    bus = new KafkaBus(kafkaConnection(prefix), () => undefined);
    const [address, kafka] = [database.url, serviceAddress('kafka')];
    folder = await temporaryFolder();
    env = { DATABASE_URL: address, KAFKA_BROKERS: kafka, TOPIC_PREFIX: prefix, DATA_DIR: folder };
  });
  afterAll(async () => {
    await bus?.stop();
    await deleteTopics(brokers().join(','), prefix);
    await rm(folder, { recursive: true, force: true });
  });

  const recover = (...flags: string[]) => portcullis(['recover', '--json', ...flags], env);

  it('D6-18: changes nothing while a consumer runs; then events are read again and sequence numbers jump', async () => {
    const nodeId = randomUUID();
    await using opened = await openDatabase({ url: database.url });
    const db = opened.db.unscoped('test');
    await db.run((k) => k.insertInto('nodes').values({ id: nodeId, name: 'Test' }));
    await db.run((k) => k.insertInto('node_event_seq').values({ node_id: nodeId, seq: '7' }));
    const seq = async () => BigInt(String((await db.run((k) => k.selectFrom('node_event_seq').select('seq')))[0]?.seq));
    const since = new Date().toISOString();
    const first = new Recorder();
    const running = await bus.subscribe({ groupId: GROUP, topics: [TOPICS.admin], handle: first.handle });
    await bus.publish(['1', '2', '3'].map((key) => message(TOPICS.admin, key)));
    await expect.poll(() => first.messages.length).toBe(3);
    const refused = await recover('--since', since);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('nothing was changed') });
    expect(await seq()).toBe(7n);
    await running.stop();
    const done = await recover('--since', since);
    expect(done).toMatchObject({ code: 0, err: '' });
    expect(JSON.parse(done.out)).toMatchObject({
      groups: [{ groupId: GROUP, topic: TOPICS.admin, messages: 3 }],
      nodes: 1,
    });
    expect(await seq()).toBe(LEAP);
    const again = new Recorder();
    const second = await bus.subscribe({ groupId: GROUP, topics: [TOPICS.admin], handle: again.handle });
    await expect.poll(() => again.messages.map(({ key }) => key).sort()).toEqual(['1', '2', '3']);
    await second.stop();
  });
});
