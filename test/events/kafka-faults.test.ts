import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, beforeEach, expect, inject, it } from 'vitest';
import { type BusLog, BusUnavailableError } from '../../src/events/bus/event-bus.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import {
  ADMIN_GROUP,
  changesOf,
  committed,
  deadLetters,
  notify,
  registered,
  sequenceOf,
  workerHere,
  workerProcess,
} from '../support/events/worker-fixture.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startOnRealServers } from '../support/harness.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { freeze } from '../support/services/freeze.ts';
import { kafkaConnection, topicPrefix } from '../support/services/isolation.ts';
import { endOf, type KafkaBehindProxy, keysInLog, startKafkaBehindProxy } from '../support/services/kafka-behind.ts';
import { describeReal } from '../support/services/real.ts';
import { webhookWhileKafkaFails } from '../webhook/failing-kafka.contract.ts';

const REQUEST_TIMEOUT_MS = 500;
/** A message of which nobody learns that it has arrived: its sender gives up within this time. */
const PATIENCE_MS = 700;
/** Until then nobody waits for that reply any more: the bus lets a request wait for 2 s. */
const GIVEN_UP_MS = 2_000;
/** Each way: a request is answered after more than a second. */
const SLOWLY_MS = 600;
/** How long a commit of offsets is on its way: long enough to break it off there. */
const ON_THE_WAY_MS = 500;
/** The fault is one of timing: where a machine is too busy for it, it is tried again. */
const ATTEMPTS = 5;

/** What a sender was told of its messages, by their keys. */
interface Told {
  acknowledged: string[];
  refused: string[];
}

describeReal('kafka', 'broker faults', () => {
  let dataDir: string;
  let kafka: KafkaBehindProxy;
  beforeAll(async () => {
    dataDir = await temporaryFolder();
    kafka = await startKafkaBehindProxy(dataDir);
  });
  afterAll(async () => {
    await kafka?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
  beforeEach(() => {
    kafka.proxy.set('passing');
    kafka.proxy.delayMs = 0;
  });

  /** A topic of one partition: the sequence numbers of a producer are counted for each by itself. */
  async function newTopic(): Promise<{ topic: string; prefix: string; name: string }> {
    const [topic, prefix] = ['replies', topicPrefix()];
    const name = prefix + topic;
    const admin = kafka.directly.admin();
    await admin.connect();
    await admin.createTopics({ topics: [{ topic: name, numPartitions: 1 }], waitForLeaders: true });
    await admin.disconnect();
    return { topic, prefix, name };
  }

  /** Sends keys one by one. The broker takes the second one, but its reply stays away, and then the connection breaks, too. */
  async function sendWithLostReply(name: string, send: (key: string) => Promise<unknown>): Promise<Told> {
    const told: Told = { acknowledged: [], refused: [] };
    const sent = (key: string) =>
      send(key).then(
        () => told.acknowledged.push(key),
        () => told.refused.push(key),
      );
    await sent('first');
    kafka.proxy.set('mute');
    const lost = sent('reply lost');
    await expect.poll(() => endOf(kafka.directly, name), { interval: 20 }).toBe(2);
    await lost;
    await setTimeout(GIVEN_UP_MS);
    kafka.proxy.set('cut');
    kafka.proxy.set('passing');
    for (const key of ['third', 'fourth']) await sent(key);
    return told;
  }

  async function idempotently(): Promise<{ told: Told; log: string[] }> {
    const { name } = await newTopic();
    const retry = { retries: 1, initialRetryTime: 50, maxRetryTime: 50 };
    const client = new Kafka({
      brokers: [kafka.server.brokers],
      requestTimeout: REQUEST_TIMEOUT_MS,
      logLevel: logLevel.NOTHING,
      retry,
    });
    const producer = client.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      retry,
    });
    await producer.connect();
    const told = await sendWithLostReply(name, (key) =>
      producer.send({ topic: name, acks: -1, messages: [{ key, value: key }] }),
    );
    await producer.disconnect();
    return { told, log: await keysInLog(kafka.directly, name) };
  }

  async function byTheBus(): Promise<{ told: Told; log: string[] }> {
    const { topic, prefix, name } = await newTopic();
    const bus = busOn(kafka.server, prefix);
    const told = await sendWithLostReply(name, (key) =>
      bus.publish([message(topic, key)], key === 'reply lost' ? { deadlineMs: PATIENCE_MS } : {}),
    );
    await bus.stop();
    return { told, log: await keysInLog(kafka.directly, name) };
  }

  // It is why the bus has another producer; how the product fares is tested below.
  it.runIf(inject('isThorough'))(
    '(an idempotent producer of kafkajs acknowledges a message that is missing in the topic)',
    async () => {
      for (let attempt = 1; ; attempt += 1) {
        const { told, log } = await idempotently();
        const missing = told.acknowledged.filter((key) => !log.includes(key));
        if (missing.length === 0 && attempt < ATTEMPTS) continue;
        // The sequence number of the one that was refused is that of the next, which the broker takes for its repeat.
        expect({ missing, ...told, log }).toEqual({
          missing: ['third'],
          acknowledged: ['first', 'third', 'fourth'],
          refused: ['reply lost'],
          log: ['first', 'reply lost', 'fourth'],
        });
        break;
      }
    },
  );

  it('7.3-01: under the same fault, every message that the bus acknowledges is in the topic', async () => {
    const { told, log } = await byTheBus();
    expect(told).toEqual({ acknowledged: ['first', 'third', 'fourth'], refused: ['reply lost'] });
    expect(log).toEqual(expect.arrayContaining(told.acknowledged));
  });

  it('7.3-01: a broker that is slow to accept a new connection is retried, and gets the message', async () => {
    const { topic, prefix, name } = await newTopic();
    const lines: string[] = [];
    const bus = busOn(kafka.server, prefix, (_level, line) => lines.push(line));
    kafka.proxy.set('mute');
    const publishing = bus.publish([message(topic, 'first')], { deadlineMs: 10_000 });
    await expect.poll(() => lines).toContainEqual(expect.stringContaining('ApiVersions'));
    kafka.proxy.set('passing');
    await publishing;
    expect(await keysInLog(kafka.directly, name)).toEqual(['first']);
    await bus.stop();
  });

  it('7.3-01: a slow acknowledgement before the deadline counts', async () => {
    const { topic, prefix, name } = await newTopic();
    const bus = busOn(kafka.server, prefix);
    await bus.publish([message(topic, 'before')]);
    kafka.proxy.delayMs = SLOWLY_MS;
    // On a busy machine the reply may take so long that the bus sends it once more.
    await bus.publish([message(topic, 'slowly')], { deadlineMs: 30_000 });
    kafka.proxy.delayMs = 0;
    expect(new Set(await keysInLog(kafka.directly, name))).toEqual(new Set(['before', 'slowly']));
    await bus.stop();
  });

  it('7.3-01: no connection to a broker that never answers the handshake is left open', async () => {
    const open = new Set<Socket>();
    const silent = createServer((socket) => {
      open.add(socket);
      socket
        .on('error', () => undefined)
        .on('close', () => open.delete(socket))
        .resume();
    });
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const { port } = silent.address() as AddressInfo;
    const bus = busOn({ brokers: `127.0.0.1:${port}` }, topicPrefix());
    await expect(bus.publish([message('t', 'k')])).rejects.toThrow(BusUnavailableError);
    await expect(bus.checkHealth()).rejects.toThrow(BusUnavailableError);
    expect(open.size).toBeGreaterThan(0);
    await bus.stop();
    await expect.poll(() => open.size).toBe(0);
    silent.close();
  });

  it('7.3-01: under load, with lost replies and repeatedly broken connections, every acknowledged message is in the topic', async () => {
    const { topic, prefix, name } = await newTopic();
    const bus = busOn(kafka.server, prefix);
    const told: Told = { acknowledged: [], refused: [] };
    let isOver = false;
    const sender = async (id: number) => {
      for (let number = 0; !isOver; number += 1) {
        const key = `${id}-${number}`;
        await bus.publish([message(topic, key)], { deadlineMs: PATIENCE_MS }).then(
          () => told.acknowledged.push(key),
          () => told.refused.push(key),
        );
        await setTimeout(2);
      }
    };
    const senders = Array.from({ length: 20 }, (_, id) => sender(id));
    for (const fault of ['mute', 'cut', 'mute', 'cut'] as const) {
      const before = told.acknowledged.length;
      kafka.proxy.set('passing');
      await expect.poll(() => told.acknowledged.length).toBeGreaterThan(before + 50);
      const refused = told.refused.length;
      kafka.proxy.set(fault);
      await expect.poll(() => told.refused.length).toBeGreaterThan(refused + 10);
    }
    isOver = true;
    kafka.proxy.set('passing');
    await Promise.all(senders);
    await bus.stop();
    const log = new Set(await keysInLog(kafka.directly, name));
    expect(told.acknowledged.length).toBeGreaterThan(200);
    expect(told.acknowledged.filter((key) => !log.has(key))).toEqual([]);
  });

  describeReal(['postgres', 'redis'], 'a worker killed between an effect and its offset commit', () => {
    const gateway = beforeTests(() =>
      startOnRealServers({
        env: { KAFKA_BROKERS: kafka.server.brokers, PORTCULLIS_ROLE: 'gateway' },
      }),
    );

    it('D6-02 D6-17: the next worker gets the notification again, and no event is duplicated', async () => {
      const { proxy, directly } = kafka;
      const offsets = () =>
        committed(directly, `${gateway.env.TOPIC_PREFIX}${ADMIN_GROUP}`, `${gateway.env.TOPIC_PREFIX}${TOPICS.admin}`);
      const changes = () => changesOf(gateway, id);
      const id = await registered(gateway);
      await using worker = await workerProcess(gateway);
      expect(await notify(gateway, id, 1)).toBe(200);
      await expect.poll(offsets).toBe(1);

      proxy.delayMs = ON_THE_WAY_MS;
      const told = notify(gateway, id, 2);
      await expect.poll(changes, { interval: 5 }).toEqual(['null 1', '1 2']);
      proxy.set('cut');
      await worker.kill('SIGKILL');
      await told;
      expect(await offsets()).toBe(1);

      proxy.delayMs = 0;
      proxy.set('passing');
      await using _next = await workerHere(gateway);
      await expect.poll(() => notify(gateway, id, 3)).toBe(200);
      await expect.poll(changes).toContain('2 3');
      expect(await changes()).toEqual(['null 1', '1 2', '2 3']);
      expect(await sequenceOf(gateway)).toEqual({ seqs: [1, 2, 3], counter: 3 });
      expect(await deadLetters(directly, gateway)).toBe(0);
    });
  });

  webhookWhileKafkaFails(() => kafka, inject('isThorough'));

  it('7.3-01: a frozen and then dead broker rejects in time; afterwards all work continues, and a consumer started without it works', async () => {
    const prefix = topicPrefix();
    const [bus, recorder] = [busOn(kafka.server, prefix), new Recorder()];
    await bus.ensureTopics(['t']);
    await recorder.follow(bus, 't', 'readers');
    await bus.publish([message('t', 'before')]);
    await recorder.count(1);

    await freeze(kafka.server.pid);
    await Promise.all([
      isRefused(bus.publish([message('t', 'frozen')])),
      isRefused(bus.publish([message('t', 'short')], { deadlineMs: 1_000 })),
      expect(bus.checkHealth()).rejects.toThrow(BusUnavailableError),
    ]);
    kafka.proxy.set('cut');
    // To its clients it is dead all the same; another start of Kafka takes half a minute.
    if (inject('isThorough')) await kafka.server.stop();
    else process.kill(kafka.server.pid, 'SIGCONT');
    await isRefused(bus.publish([message('t', 'dead')]));
    const [started, waiting] = [busOn(kafka.server, prefix), new Recorder()];
    await waiting.follow(started, 'later', 'waiting');
    await expect(started.checkHealth()).rejects.toThrow(BusUnavailableError);

    if (inject('isThorough')) await kafka.startAgain();
    kafka.proxy.set('passing');
    await expect.poll(() => isDone(bus.publish([message('t', 'after')]))).toBe(true);
    await expect.poll(() => recorder.keys).toContain('after');
    await expect.poll(() => isDone(bus.checkHealth())).toBe(true);
    await started.ensureTopics(['later']);
    await started.publish([message('later', 'a')]);
    await waiting.count(1);
    await started.stop();
    await bus.stop();
  });
});

/** Whether the bus has given the message up: while the fault lasts, its deadline alone can have ended it. */
function isRefused(publishing: Promise<void>): Promise<void> {
  return expect(publishing).rejects.toThrow(BusUnavailableError);
}

function isDone(promise: Promise<void>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}

function busOn({ brokers }: { brokers: string }, topicPrefix: string, log: BusLog = () => undefined): KafkaBus {
  return new KafkaBus(kafkaConnection(topicPrefix, brokers), log);
}
