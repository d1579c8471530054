import { rm } from 'node:fs/promises';
import { expect, inject, it, onTestFinished } from 'vitest';
import { type BusDatabase, EmbeddedBus } from '../../src/events/bus/embedded-bus.ts';
import { type IncomingMessage, MAX_BATCH_MESSAGES } from '../../src/events/bus/event-bus.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { embeddedClusterCopy, embeddedDatabase } from '../support/harness/databases.ts';

const MESSAGES = inject('isThorough') ? 100_000 : 10_000;
const AT_ONCE = 1_000;
const quiet = () => undefined;

/** A database, and how many messages were read from it. */
function countedReads(database: BusDatabase): BusDatabase & { read: number } {
  const counted = {
    read: 0,
    unscoped(reason: string): ReturnType<BusDatabase['unscoped']> {
      const door = database.unscoped(reason);
      return {
        raw: async (build) => {
          const rows = await door.raw(build);
          counted.read += rows.filter((row) => 'timestamp_ms' in Object(row)).length;
          return rows;
        },
      };
    },
  };
  return counted;
}

it(`a consumer that lags by ${MESSAGES.toLocaleString('en')} messages holds one batch in memory, and gets all messages in order`, async () => {
  await using database = await embeddedDatabase();
  const counted = countedReads(database.db);
  const bus = new EmbeddedBus(counted, quiet);
  const [entered, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let handled = 0;
  let mostHeld = 0;
  let isInOrder = true;
  const handle = async (batch: IncomingMessage[]): Promise<void> => {
    entered.resolve();
    await gate.promise;
    mostHeld = Math.max(mostHeld, counted.read - handled);
    for (const { key } of batch) {
      isInOrder &&= key === String(handled);
      handled += 1;
    }
  };
  await bus.subscribe({ groupId: 'slow', topics: ['lag'], handle });
  for (let first = 0; first < MESSAGES; first += AT_ONCE) {
    await bus.publish(Array.from({ length: AT_ONCE }, (_, index) => message('lag', String(first + index))));
  }
  await entered.promise;
  expect(counted.read).toBeGreaterThan(0);
  expect(counted.read).toBeLessThanOrEqual(MAX_BATCH_MESSAGES);
  gate.resolve();
  await expect.poll(() => handled).toBe(MESSAGES);
  expect({ isInOrder, read: counted.read }).toEqual({ isInOrder: true, read: MESSAGES });
  expect(mostHeld).toBeLessThanOrEqual(MAX_BATCH_MESSAGES);
  await bus.stop();
});

it('acknowledged messages survive a restart of the database, and processed ones are not delivered again', async () => {
  const dataDir = await embeddedClusterCopy();
  onTestFinished(() => rm(dataDir, { recursive: true }));
  const database = await openDatabase({ dataDir });
  const [before, after] = [new Recorder(), new Recorder()];
  const first = new EmbeddedBus(database.db, quiet);
  const member = await before.follow(first, 'kept', 'readers');
  await first.publish([message('kept', 'a')]);
  await before.count(1);
  await member.stop();
  await first.publish([message('kept', 'b'), message('kept', 'c')]);
  await first.stop();
  await database[Symbol.asyncDispose]();

  await using again = await openDatabase({ dataDir });
  const second = new EmbeddedBus(again.db, quiet);
  await after.follow(second, 'kept', 'readers');
  await after.count(2);
  expect([before.keys, after.keys]).toEqual([['a'], ['b', 'c']]);
  await second.stop();
});
