import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Kafka, logLevel, type Message, Partitioners } from 'kafkajs';
import { type RecordOptions, shortestRecords } from '../lib/shortest-record.ts';

/** What a bare webhook is told. */
export interface BareOptions {
  port: number;
  brokers: string[];
  /** Each notification goes to all of them. */
  topics: string[];
  /** Whether what arrives while one `sendBatch` runs goes into the next, or each request has a send of its own. */
  coalesces: boolean;
  /** Where a record of each request goes; none is kept where this is missing. */
  records?: RecordOptions;
}

/**
 * Run as a process of its own: node:http and kafkajs. The body is parsed for its id, which is the key; no credentials,
 * no validation, no headers; no audit, or a record of each request. 200 once all in-sync replicas of both topics have it.
 */
const [, script, path] = process.argv;
if (path === undefined) throw new Error(`usage: ${script} FILE`);
process.once('SIGTERM', () => process.exit());
const { port, brokers, topics, coalesces, records }: BareOptions = JSON.parse(readFileSync(path, 'utf8'));
const keep = records && shortestRecords(records);
const producer = new Kafka({ brokers, clientId: 'bare', logLevel: logLevel.ERROR }).producer({
  allowAutoTopicCreation: false,
  createPartitioner: Partitioners.DefaultPartitioner,
});
await producer.connect();

interface Waiting {
  message: Message;
  settle(status: number): void;
}

let waiting: Waiting[] = [];
let isSending = false;

async function send(batch: readonly Waiting[]): Promise<void> {
  const messages = batch.map(({ message }) => message);
  let status = 200;
  try {
    await producer.sendBatch({ acks: -1, topicMessages: topics.map((topic) => ({ topic, messages })) });
  } catch {
    status = 500;
  }
  for (const { settle } of batch) settle(status);
}

async function drain(): Promise<void> {
  isSending = true;
  while (waiting.length > 0) {
    const batch = waiting;
    waiting = [];
    await send(batch);
  }
  isSending = false;
}

createServer((req, res) => {
  const answer = (status: number) => void res.writeHead(status, { 'content-length': 0 }).end();
  if (req.method !== 'POST') return answer(200);
  const startedTick = performance.now();
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => {
    const value = Buffer.concat(chunks);
    const requestBody = value.toString();
    const settle = (status: number) => {
      if (keep) keep({ req, startedTick, requestBody, responseBody: '' }, () => answer(status));
      else answer(status);
    };
    const one: Waiting = { message: { key: JSON.parse(requestBody).id, value }, settle };
    if (!coalesces) return void send([one]);
    waiting.push(one);
    if (!isSending) void drain();
  });
}).listen(port, '127.0.0.1');
