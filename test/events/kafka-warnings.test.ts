import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { ROOT } from '../support/start/process.ts';

const BUS = join(ROOT, 'src/events/bus/kafka-bus.ts');

/** Sends something by the bus, then starts a timer of its own in the past; with `directly` kafkajs is asked itself. */
function program(brokers: string, directly: boolean): string {
  const client = `new Kafka({ brokers: [${JSON.stringify(brokers)}], logLevel: 0 }).admin()`;
  const asks = directly
    ? `import { Kafka } from 'kafkajs'; const admin = ${client}; await admin.connect(); await admin.listTopics(); await admin.disconnect();`
    : `import { KafkaBus } from ${JSON.stringify(BUS)};
       const bus = new KafkaBus({ brokers: [${JSON.stringify(brokers)}], ssl: false, topicPrefix: '', clientId: 'test' }, () => undefined);
       await bus.checkHealth(); await bus.stop();`;
  return `${asks} process.emitWarning('kept', 'TimeoutNegativeWarning');`;
}

async function warningsOf(text: string): Promise<string[]> {
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', text];
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
  return stderr.match(/TimeoutNegativeWarning: .*/g) ?? [];
}

describeReal('kafka', 'the warnings of a process that uses Kafka', () => {
  it('negative timeouts of kafkajs are not reported, and those of other code are', async () => {
    const brokers = serviceAddress('kafka').split(',')[0] ?? '';
    expect(await warningsOf(program(brokers, true))).toEqual([
      expect.stringContaining('is a negative number'),
      'TimeoutNegativeWarning: kept',
    ]);
    expect(await warningsOf(program(brokers, false))).toEqual(['TimeoutNegativeWarning: kept']);
  });
});
