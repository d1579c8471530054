import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { type Notifications, notifications } from './notifications.ts';

/** Where notifications are published to. */
export interface Publishing extends Notifications {
  brokers: string[];
  topicPrefix: string;
}

const AT_ONCE = 1_000;

/** Run as a process of its own, with a `Publishing` as JSON: puts notifications into the topics of Kafka. */
async function publish({ brokers, topicPrefix, ...of }: Publishing): Promise<void> {
  const producer = new Kafka({ brokers, logLevel: logLevel.ERROR }).producer({
    allowAutoTopicCreation: false,
    createPartitioner: Partitioners.DefaultPartitioner,
  });
  await producer.connect();
  for (const batch of notifications(of, AT_ONCE)) {
    const byTopic = Map.groupBy(batch, ({ topic }) => topicPrefix + topic);
    const topicMessages = Array.from(byTopic, ([topic, messages]) => ({ topic, messages }));
    await producer.sendBatch({ acks: -1, topicMessages });
  }
  await producer.disconnect();
}

const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: publish JSON');
await publish(JSON.parse(given));
process.stdout.write('null');
