import { setTimeout } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { ADMIN_GROUP, kafkaOf, untilMembers, workerProcess } from '../support/events/worker-fixture.ts';
import { expectAllOnce, load, widenTopics } from '../support/events/worker-load.ts';
import { startOnRealServers } from '../support/harness.ts';
import { faultProxy } from '../support/services/fault-proxy.ts';
import { freeze } from '../support/services/freeze.ts';
import { describeReal } from '../support/services/real.ts';
import type { Spawned } from '../support/start/process.ts';

const ROUNDS = 3;
const WORKERS = 3;
/** Longer than a group waits for a member. */
const LONG_MS = 8_000;
const SHORT_MS = 2_000;
const GRACE_MS = 10_000;

describeReal(['postgres', 'redis', 'kafka'], 'three workers under repeated faults', () => {
  it('D1-12 D6-17 D6-18: killed, frozen, stopped and without PostgreSQL: nothing is lost or applied twice', async () => {
    await using gateway = await startOnRealServers({ env: { PORTCULLIS_ROLE: 'gateway' } });
    await widenTopics(gateway);
    const { DATABASE_URL: url = '', TOPIC_PREFIX: prefix } = gateway.env;
    await using proxy = await faultProxy(Number(new URL(url).port));
    await using stack = new AsyncDisposableStack();
    const start = async () => stack.use(await workerProcess(gateway, { DATABASE_URL: proxy.urlOf(url) }));
    const workers: Spawned[] = await Promise.all(Array.from({ length: WORKERS }, start));
    const oldest = (): Spawned => workers.shift() ?? expect.fail('there is no worker');
    const settled = () => untilMembers(kafkaOf(gateway), `${prefix}${ADMIN_GROUP}`, WORKERS);

    const faults: Record<string, () => Promise<unknown>> = {
      'one is killed': async () => {
        await oldest().kill('SIGKILL');
        workers.push(await start());
      },
      'one is frozen until others have its partitions, and then resumes': async () => {
        const [worker] = workers;
        if (!worker) return;
        await freeze(worker.pid);
        await setTimeout(LONG_MS);
        process.kill(worker.pid, 'SIGCONT');
      },
      'PostgreSQL breaks its connections': async () => {
        proxy.set('cut');
        await setTimeout(SHORT_MS);
        proxy.set('passing');
      },
      'one ends, and the others share its partitions, while PostgreSQL does not respond': async () => {
        proxy.set('frozen');
        const gone = oldest();
        const leaving = gone.kill('SIGTERM');
        await setTimeout(LONG_MS);
        proxy.set('passing');
        // As whoever runs a worker does, after a time of grace.
        await Promise.race([leaving, setTimeout(GRACE_MS)]);
        await gone.kill('SIGKILL');
        workers.push(await start());
      },
    };
    await settled();
    const sending = load(gateway);
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const fault of Object.values(faults)) {
        await sending.more(10);
        await fault();
        await settled();
      }
    }
    const ids = await sending.end();
    await expectAllOnce(gateway, ids);
    process.stdout.write(
      `${JSON.stringify({ faults: ROUNDS * 4, transactions: ids.length, events: ids.length * 3 })}\n`,
    );
  });
});
