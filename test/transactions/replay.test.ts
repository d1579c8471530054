import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { EmbeddedBus, EmbeddedLogReader } from '../../src/events/bus/embedded-bus.ts';
import { Replay, ReplayPositions } from '../../src/events/bus/replay.ts';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { startTransactionConsumers } from '../../src/features/transactions/transaction-messages.service.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import {
  delivery,
  eventsOf,
  type Fixture,
  fixtureOn,
  mirrorOn,
  rowOf,
  transactionOf,
} from '../support/transactions/fixture.ts';
import { watchedDb } from '../support/transactions/watched-db.ts';

/** Consumers on a bus, over a database that refuses every value until it is mended. */
async function consuming(open: () => Promise<Database>) {
  const fixture = await fixtureOn(await open());
  const bus = new EmbeddedBus(fixture.db, () => undefined);
  const state = { isBroken: true };
  const statement = () => {
    if (state.isBroken) throw Object.assign(new Error('a value too long'), { code: '22001' });
  };
  const transactions = mirrorOn(watchedDb(fixture.db, { statement }));
  await startTransactionConsumers({ bus, transactions });
  onTestFinished(async () => {
    await bus.stop();
    await fixture.database[Symbol.asyncDispose]();
  });
  return { fixture, bus, state };
}

function replayOn({ db }: Fixture, bus: EmbeddedBus): Replay {
  return new Replay({ bus, reader: new EmbeddedLogReader(db), positions: new ReplayPositions(db, '') });
}

const options = { signal: new AbortController().signal, onReplayed: () => undefined };

function replayContract(open: () => Promise<Database>): void {
  it('D6-18: dead letters are applied by a replay, and a second replay changes nothing', async () => {
    const { fixture, bus, state } = await consuming(open);
    const [dead, passed] = [new Recorder(), new Recorder()];
    const transaction = transactionOf(fixture);
    const { id } = transaction;
    await fixture.mirror.register(transaction);
    await dead.follow(bus, [`${TOPICS.admin}.dlq`, `${TOPICS.user}.dlq`]);
    const startMs = Date.now() - 60_000;
    const bodies = [2, 3].map((status, second) => Buffer.from(delivery({ id, status, second }).body));
    for (const value of bodies) {
      const headers = { 'correlation-id': randomUUID() };
      await bus.publish([TOPICS.admin, TOPICS.user].map((topic) => message(topic, id, { value, headers })));
    }
    await dead.count(4);
    expect(await rowOf(fixture, id)).toMatchObject({ status: null });

    state.isBroken = false;
    const replay = replayOn(fixture, bus);
    for (const topic of [TOPICS.admin, TOPICS.user]) await replay.run(await replay.deadLetters(topic), options);
    await expect.poll(() => rowOf(fixture, id)).toMatchObject({ status: 3 });
    await passed.follow(bus, [TOPICS.admin, TOPICS.user], 'portcullis.after');
    await passed.count(8);
    const [row, events] = [await rowOf(fixture, id), await eventsOf(fixture, id)];

    for (const topic of [TOPICS.admin, TOPICS.user]) {
      await replay.run(await replay.between(topic, startMs, Date.now() + 60_000), options);
    }
    // What is behind the repeats in the log of each topic has been applied: so have they.
    for (const [topic, collection] of [
      [TOPICS.admin, 'token_transactions'],
      [TOPICS.user, 'user_transactions'],
    ] as const) {
      const last = transactionOf(fixture, { collection });
      await fixture.mirror.register(last);
      const value = Buffer.from(delivery({ id: last.id, status: 1 }).body);
      await bus.publish([message(topic, last.id, { value })]);
      await expect.poll(() => rowOf(fixture, last.id)).toMatchObject({ status: 1 });
    }
    expect([await rowOf(fixture, id), await eventsOf(fixture, id)]).toEqual([row, events]);
    expect(events.map(({ status }) => status)).toEqual(expect.arrayContaining([3]));
    expect(dead.messages).toHaveLength(4);
  });
}

describeEmbedded('replay into the mirror, embedded', () => replayContract(embeddedDatabase));
describeReal('postgres', 'replay into the mirror, on PostgreSQL', () => replayContract(realDatabase));
