import { spawn } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { EmbeddedBus } from '../../src/events/bus/embedded-bus.ts';
import { OutboxRelay } from '../../src/events/outbox/outbox.ts';
import { UserMigrations } from '../../src/features/user-migrations/user-migrations.service.ts';
import { silentLog } from '../../src/lib/log.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';

const CHILD = join(import.meta.dirname, '../support/outbox/killed-child.ts');
const AT_ONCE = 3;
/** The steps before which a child is killed: in a quick run every so many and the last, beginning with another one at each. */
function pointsOf(steps: number, quickEvery: number): number[] {
  const every = inject('isThorough') ? 1 : quickEvery;
  const first = randomInt(every);
  const all = Array.from({ length: steps }, (_, index) => index + 1);
  return all.filter((point) => point % every === first || point === steps);
}

interface ChildEnd {
  signal: NodeJS.Signals | null;
  /** How many steps it had, where it lived through all of them. */
  steps: number;
}

async function runChild(url: string, role: 'migrate' | 'relay', nodeId: string, killedAt: number): Promise<ChildEnd> {
  const child = spawn(process.execPath, [CHILD, url, role, nodeId, String(killedAt)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  const [, signal] = await once(child, 'close');
  return { signal, steps: Number(out) };
}

describeReal('postgres', 'users and their events, whatever dies between', () => {
  const database = beforeTests(realDatabase);

  const test = () => database.db.unscoped('test');
  const addNode = async () => {
    const id = randomUUID();
    await test().run((k) => k.insertInto('nodes').values({ id, name: 'Node' }));
    return id;
  };
  const migrateSome = async () => {
    const migrations = new UserMigrations({
      db: database.db,
      log: silentLog,
      nowMs: Date.now,
      notify: () => undefined,
    });
    const rows = Array.from({ length: 5 }, () => ({
      wallet_address: randomUUID(),
      email: randomUUID(),
      kyc_sent: false,
    }));
    await migrations.migrateMany({ nodeId: await addNode(), subject: 'test', correlationId: 'c' }, rows);
  };
  const usersOf = (nodeId: string) =>
    database.db.forNode(nodeId).run((k) => k.selectFrom('users').select(['id', 'kyc_token_sent']));
  const waiting = async (nodeId: string) => {
    const found = await test().run((k) => k.selectFrom('outbox').select(['key', 'payload']));
    return found.filter(({ payload }) => JSON.parse(payload).node_id === nodeId).map(({ key }) => key);
  };

  it('D7-08 6-02: with a process killed between any two steps, every stored user has its event and every event its user', async () => {
    const { signal, steps } = await runChild(database.url, 'migrate', await addNode(), 0);
    expect({ signal, isCounted: steps > 5 }).toEqual({ signal: null, isCounted: true });
    const points = pointsOf(steps, 6).values();
    const written: number[] = [];
    const lanes = Array.from({ length: AT_ONCE }, async () => {
      for (const point of points) {
        const nodeId = await addNode();
        expect((await runChild(database.url, 'migrate', nodeId, point)).signal).toBe('SIGKILL');
        const users = await usersOf(nodeId);
        const unsent = users.filter((user) => !user.kyc_token_sent).map(({ id }) => id);
        expect((await waiting(nodeId)).sort()).toEqual(unsent.sort());
        expect([0, 20]).toContain(users.length);
        expect(unsent).toHaveLength(users.length * 0.75);
        written.push(users.length);
      }
    });
    await Promise.all(lanes);
    // All but the last step come before the commit.
    expect(written.filter((users) => users === 20)).toHaveLength(1);

    const uncut = await runChild(database.url, 'relay', '', 99);
    expect(uncut).toMatchObject({ signal: null, steps: expect.any(Number) });
    await migrateSome();
    // One of three steps in a row: some die with what they have published, and have not yet removed it.
    for (const point of pointsOf(uncut.steps, 3)) {
      expect((await runChild(database.url, 'relay', '', point)).signal).toBe('SIGKILL');
      await migrateSome();
    }
    const bus = new EmbeddedBus(database.db, () => undefined);
    const relay = new OutboxRelay({ db: database.db, bus, isAlone: false, log: silentLog });
    while ((await relay.relayBatch()) > 0);
    await bus.stop();
    expect(await test().run((k) => k.selectFrom('outbox').select('id'))).toEqual([]);
    const unsent = await test().run((k) => k.selectFrom('users').select('id').where('kyc_token_sent', '=', false));
    const told = await test().run((k) => k.selectFrom('bus_messages').select(['key', 'headers']));
    expect([...new Set(told.map(({ key }) => key))].sort()).toEqual(unsent.map(({ id }) => id).sort());
    expect(new Set(told.map(({ headers }) => headers['event-id'])).size).toBe(unsent.length);
    expect(told.length).toBeGreaterThan(unsent.length);
  });
});
