import { beforeEach, expect, inject, it, vi } from 'vitest';
import { deadLetterTopicOf } from '../../src/events/bus/event-bus.ts';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { beforeEachTest } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal } from '../support/services/real.ts';
import { spawnCli } from '../support/start/process.ts';

// Each test starts processes, on machines that are busy with other tests.
/** A dozen batches at least: a run is ended in their midst. */
const LETTERS = inject('isThorough') ? 20_000 : 6_000;
const DLQ = ['transactions', 'replay', '--dlq', '--topic', TOPICS.admin];

describeReal('postgres', 'transactions replay, interrupted', () => {
  const database = beforeEachTest(realDatabase);
  let env: Record<string, string>;
  beforeEach(async () => {
    env = { DATABASE_URL: database.url };
    await database.db.unscoped('test').raw(
      (text) => text`
        insert into bus_messages (topic, key, value, headers)
        select ${deadLetterTopicOf(TOPICS.admin)}, 'key-' || number, 'x'::bytea, '{}'::jsonb
        from generate_series(1, ${LETTERS}::integer) number`,
    );
  });

  /** How many messages are on the topic, and how many different ones. */
  async function published(): Promise<{ messages: number; keys: number }> {
    const rows = await database.db.unscoped('test').raw<{ messages: string; keys: string }>(
      (text) => text`
        select count(*)::text as messages, count(distinct key)::text as keys
        from bus_messages where topic = ${TOPICS.admin}`,
    );
    return { messages: Number(rows[0]?.messages), keys: Number(rows[0]?.keys) };
  }

  /** How many messages are on the topic: cheap, since the processes that are waited for need the machine. */
  async function messagesNow(): Promise<number> {
    const [row] = await database.db
      .unscoped('test')
      .raw<{ messages: number }>(
        (text) => text`select count(*)::integer as messages from bus_messages where topic = ${TOPICS.admin}`,
      );
    return row?.messages ?? 0;
  }

  const begun = () => expect.poll(messagesNow, { interval: 5 }).toBeGreaterThan(0);

  it('D6-18: an interrupted run finishes its batch and prints its progress and how to continue; all is published once', async () => {
    const spawned = spawnCli(DLQ, env);
    await begun();
    const { code, stderr } = await spawned.kill('SIGINT');
    expect(code).toBe(1);
    expect(stderr).toMatch(
      new RegExp(`interrupted after [\\d,]+ of ${LETTERS.toLocaleString('en')} messages: run it again`),
    );
    const { messages } = await published();
    expect(messages).toBeLessThan(LETTERS);
    const { out } = await portcullis([...DLQ, '--json'], env);
    expect(JSON.parse(out).replayed).toBe(LETTERS - messages);
    expect(await published()).toEqual({ messages: LETTERS, keys: LETTERS });
  });

  it('D6-18: an interrupted run without --to prints the end to continue with, which excludes what it published itself', async () => {
    await database.db.unscoped('test').raw(
      (text) => text`
        insert into bus_messages (topic, key, value, headers)
        select ${TOPICS.admin}, 'key-' || number, 'x'::bytea, '{}'::jsonb from generate_series(1, ${LETTERS}::integer) number`,
    );
    const from = ['transactions', 'replay', '--from', '2000-01-01T00:00:00Z', '--topic', TOPICS.admin];
    const spawned = spawnCli(from, env);
    await vi.waitFor(async () => expect(await messagesNow()).toBeGreaterThan(LETTERS), { interval: 5 });
    const { code, stderr } = await spawned.kill('SIGINT');
    expect(code).toBe(1);
    const [, to = ''] = /run it again, with --to (\S+)$/m.exec(stderr) ?? [];
    const { out } = await portcullis([...from, '--to', to, '--json'], env);
    expect(JSON.parse(out).replayed).toBe(LETTERS);
  });

  it('D6-18: after a kill the next run publishes the rest, and repeats at most one batch', async () => {
    const spawned = spawnCli(DLQ, env);
    await begun();
    expect((await spawned.kill('SIGKILL')).signal).toBe('SIGKILL');
    expect((await portcullis(DLQ, env)).code).toBe(0);
    const { messages, keys } = await published();
    expect(keys).toBe(LETTERS);
    expect(messages).toBeLessThanOrEqual(LETTERS + 500);
    expect(JSON.parse((await portcullis([...DLQ, '--json'], env)).out).replayed).toBe(0);
  });

  it('D1-12: without a broker it exits with 1 and one sentence', async () => {
    const [port] = await freePorts(1);
    const { code, err } = await portcullis(DLQ, { ...env, KAFKA_BROKERS: `127.0.0.1:${port}` });
    expect(code).toBe(1);
    expect(err).toMatch(/^portcullis: Kafka at 127\.0\.0\.1:\d+ cannot be used \(.*\): start it, .*\n$/);
  });
});
