import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { type PeerOptions, peerOptions, TOPICS, type Update, updateText } from './peer.ts';

/**
 * Run as a process of its own: node:http that writes one text to every subscriber of all updates, or to those of a
 * transaction. `POST /publish` writes at once; with brokers `POST /notify` sends to Kafka, and a consumer writes.
 */
const { port, kafka } = peerOptions();
const ofAll = new Set<ServerResponse>();
const ofOne = new Map<string, ServerResponse>();
let cursor = 0;

const notify = kafka ? await throughKafka(kafka) : undefined;

createServer((req, res) => {
  answer(req, res).catch(() => res.writeHead(500).end());
}).listen(port, '127.0.0.1');

async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(req.url ?? '/', 'http://localhost');
  if (pathname === '/publish') {
    deliver(JSON.parse(await text(req)));
    res.end();
  } else if (pathname === '/notify') {
    await notify?.(await text(req));
    res.end();
  } else if (pathname === '/events') subscribe(res, searchParams.get('id'));
  else res.end();
}

function subscribe(res: ServerResponse, id: string | null): void {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  res.write(':\n\n');
  if (id === null) ofAll.add(res);
  else ofOne.set(id, res);
  res.on('close', () => (id === null ? ofAll.delete(res) : ofOne.delete(id)));
}

function deliver(update: Update): void {
  cursor += 1;
  const frame = Buffer.from(`event: next\nid: ${cursor}\ndata: ${updateText(cursor, update)}\n\n`);
  for (const res of ofAll) res.write(frame);
  ofOne.get(update.id)?.write(frame);
}

/** As the product does: a producer into two topics with acks=all; here kafkajs alone consumes one of them. */
async function throughKafka({ brokers, prefix }: NonNullable<PeerOptions['kafka']>) {
  const client = new Kafka({ brokers, logLevel: logLevel.NOTHING });
  const names = TOPICS.map((topic) => `${prefix}${topic}`);
  const admin = client.admin();
  await admin.connect();
  await admin.createTopics({ topics: names.map((topic) => ({ topic, numPartitions: 12 })) });
  await admin.disconnect();
  const producer = client.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  const consumer = client.consumer({ groupId: `${prefix}${randomUUID()}` });
  await Promise.all([producer.connect(), consumer.connect()]);
  await consumer.subscribe({ topics: names.slice(0, 1) });
  const joined = Promise.withResolvers<void>();
  consumer.on('consumer.group_join', () => joined.resolve());
  await consumer.run({ eachMessage: async ({ message }) => deliver(JSON.parse(String(message.value))) });
  await joined.promise;
  return (value: string) => {
    const { id: key }: Update = JSON.parse(value);
    const topicMessages = names.map((topic) => ({ topic, messages: [{ key, value }] }));
    return producer.sendBatch({ acks: -1, topicMessages });
  };
}
