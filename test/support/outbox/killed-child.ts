import { once } from 'node:events';
import { EmbeddedBus } from '../../../src/events/bus/embedded-bus.ts';
import { OutboxRelay } from '../../../src/events/outbox/outbox.ts';
import { UserMigrations } from '../../../src/features/user-migrations/user-migrations.service.ts';
import { silentLog } from '../../../src/lib/log.ts';
import { openDatabase } from '../../../src/platform/database/open-database.ts';
import { steppedDb } from '../user-migrations/stepped-db.ts';

/** A process that migrates users of a node, or relays what waits, and kills itself before its nth step. */
const [, , url = '', role, nodeId = '', killedAt = ''] = process.argv;

let steps = 0;

async function step(): Promise<void> {
  steps += 1;
  if (steps !== Number(killedAt)) return;
  process.kill(process.pid, 'SIGKILL');
  await once(process, 'never');
}

async function migrate(): Promise<void> {
  const migrations = new UserMigrations({ db, log: silentLog, nowMs: Date.now, notify: () => undefined });
  const rows = Array.from({ length: 20 }, (_, index) => ({
    wallet_address: `${nodeId}-${index}`,
    email: `${nodeId}-${index}@x.y`,
    kyc_sent: index % 4 === 0,
  }));
  await migrations.migrateMany({ nodeId, subject: 'child', correlationId: 'c' }, rows);
  await step();
}

async function relay(): Promise<void> {
  const bus = new EmbeddedBus(database.db, () => undefined);
  const publish: EmbeddedBus['publish'] = async (messages, options) => {
    await step();
    await bus.publish(messages, options);
    await step();
  };
  await new OutboxRelay({ db, bus: { publish }, isAlone: false, log: silentLog }).relayBatch();
  await step();
  await bus.stop();
}

const database = await openDatabase({ url });
const db = steppedDb(database.db, step);
await (role === 'migrate' ? migrate() : relay());
await database[Symbol.asyncDispose]();
process.stdout.write(String(steps));
