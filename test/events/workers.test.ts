import { beforeAll, it } from 'vitest';
import { ADMIN_GROUP, kafkaOf, untilMembers, workerHere, workerProcess } from '../support/events/worker-fixture.ts';
import { expectAllOnce, load, widenTopics } from '../support/events/worker-load.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startOnRealServers } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';

// The one that is killed is a process of its own, and the group gives it six seconds.
describeReal(['postgres', 'redis', 'kafka'], 'workers that share the partitions', () => {
  const gateway = beforeTests(() => startOnRealServers({ env: { PORTCULLIS_ROLE: 'gateway' } }));
  beforeAll(async () => {
    await widenTopics(gateway);
  });

  it('D1-12 D6-17: three workers join, one is killed, one leaves and one is added: nothing is lost or duplicated', async () => {
    const kafka = kafkaOf(gateway);
    const group = `${gateway.env.TOPIC_PREFIX}${ADMIN_GROUP}`;
    const sending = load(gateway);
    await using first = await workerProcess(gateway);
    await sending.more(10);
    await using _second = await workerHere(gateway);
    const third = await workerHere(gateway);
    await untilMembers(kafka, group, 3);
    await sending.more(10);
    await first.kill('SIGKILL');
    await sending.more(10);
    await third[Symbol.asyncDispose]();
    await using _fourth = await workerHere(gateway);
    await untilMembers(kafka, group, 2);
    await sending.more(10);
    await expectAllOnce(gateway, await sending.end());
  });
});
