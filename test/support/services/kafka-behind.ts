import { connect } from 'node:net';
import { Kafka, logLevel } from 'kafkajs';
import { type FaultProxy, faultProxy } from './fault-proxy.ts';
import { type KafkaServer, startKafka } from './kafka.ts';

/** A broker whose clients come by way of a proxy. */
export interface KafkaBehindProxy {
  proxy: FaultProxy;
  /** The one that is there, or was the last. */
  readonly server: KafkaServer;
  /** A client past the proxy: it sees what is there while others meet faults. */
  directly: Kafka;
  /** Starts one on the data of the last, which has ended. */
  startAgain(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a broker that tells its clients the port of a proxy in front of it. */
export async function startKafkaBehindProxy(dataDir: string): Promise<KafkaBehindProxy> {
  const proxy = await faultProxy();
  let server: KafkaServer;
  const startAgain = async () => {
    server = await startKafka({ dataDir, advertisedPort: proxy.port });
    proxy.targetPort = server.port;
  };
  await startAgain();
  const directly = new Kafka({
    brokers: [`127.0.0.1:${proxy.port}`],
    logLevel: logLevel.NOTHING,
    socketFactory: ({ host, port, onConnect }) =>
      connect({ host, port: port === proxy.port ? proxy.targetPort : port }, onConnect),
  });
  const stop = async () => {
    await proxy[Symbol.asyncDispose]();
    await server.stop();
  };
  return {
    proxy,
    get server() {
      return server;
    },
    directly,
    startAgain,
    stop,
  };
}

/** The keys of everything that a topic has now, those of one partition in their order. */
export async function keysInLog(kafka: Kafka, topic: string): Promise<string[]> {
  const end = await endOf(kafka, topic);
  const keys: string[] = [];
  if (end === 0) return keys;
  const consumer = kafka.consumer({ groupId: `reader-${crypto.randomUUID()}`, maxWaitTimeInMs: 100 });
  const complete = Promise.withResolvers<void>();
  try {
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ message }) => {
        keys.push(message.key?.toString() ?? '');
        if (keys.length >= end) complete.resolve();
      },
    });
    await complete.promise;
  } finally {
    await consumer.disconnect();
  }
  return keys;
}

/** How many messages a topic has taken that has never lost one to its age. */
export async function endOf(kafka: Kafka, topic: string): Promise<number> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const partitions = await admin.fetchTopicOffsets(topic);
    return partitions.reduce((sum, { high }) => sum + Number(high), 0);
  } finally {
    await admin.disconnect();
  }
}
