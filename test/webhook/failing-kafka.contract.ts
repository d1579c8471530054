import { expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startOnRealServers } from '../support/harness.ts';
import { freeze } from '../support/services/freeze.ts';
import type { KafkaBehindProxy } from '../support/services/kafka-behind.ts';
import { describeReal } from '../support/services/real.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

type Fault = [name: string, begin: () => unknown, end: () => unknown];

/** What the webhook promises while a broker fails, which passes when each test begins. */
export function webhookWhileKafkaFails(broker: () => KafkaBehindProxy, isThorough: boolean): void {
  describeReal(['postgres', 'redis'], 'the webhook while Kafka fails', () => {
    const portcullis = beforeTests(() =>
      startOnRealServers({
        env: { KAFKA_BROKERS: broker().server.brokers, PORTCULLIS_ROLE: 'gateway' },
      }),
    );

    async function post(): Promise<number> {
      const { username, password } = portcullis.webhook;
      const headers = { authorization: basic(username, password) };
      return (await portcullis.call('POST', '/v2/webhooks/custodial', { json: notification(), headers })).status;
    }

    const signal = (name: NodeJS.Signals) => process.kill(broker().server.pid, name);

    const killed: Fault = ['was killed', () => signal('SIGKILL'), () => broker().startAgain()];

    const others: Fault[] = [
      ['is frozen', () => freeze(broker().server.pid), () => signal('SIGCONT')],
      // What a killed one is to its clients.
      ['rejects every connection', () => broker().proxy.set('cut'), () => broker().proxy.set('passing')],
      killed,
    ];

    it.each<Fault>([
      ['receives everything and sends nothing', () => broker().proxy.set('mute'), mended],
      ...(isThorough ? others : []),
    ])(
      '7.3-01: while Kafka %s every request gets 500 by its deadline, and 200 afterwards',
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
      broker().proxy.set('cut');
      broker().proxy.set('passing');
    }
  });
}
