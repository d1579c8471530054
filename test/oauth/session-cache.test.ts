import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import { AccessChanges } from '../../src/access/revocation/access-changes.ts';
import { followEnds } from '../../src/access/revocation/access-watch.ts';
import { Sessions } from '../../src/access/revocation/sessions.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { limitedClient } from '../support/oauth/limits-fixture.ts';
import { interceptSessionReads } from '../support/oauth/session-reads.ts';

const NOW = Date.UTC(2026, 10, 28);
const MINUTE_MS = 60_000;

const database = beforeTests(scratchDatabase);
const subject = randomUUID();
let nodeId: string;
let clientId: string;

beforeAll(async () => {
  ({ nodeId, clientId } = await limitedClient(database.db));
  const supervisor = { id: subject, username: subject, password_hash: 'none', role: 'admin' };
  await database.db.forNode(nodeId).run((k) => k.insertInto('supervisors').values(supervisor));
});
afterEach(() => vi.restoreAllMocks());

/** The sessions as one process has them. */
function process(maxKnown?: number) {
  const { db } = database;
  const at = { generation: 0, nowMs: NOW };
  const generation = () => at.generation;
  const clock = { nowMs: () => at.nowMs, note: () => undefined };
  const changes = new AccessChanges({ db, clock, generation, nowMs: clock.nowMs, onError: () => undefined });
  const sessions = new Sessions({ db, generation, changes, maxSessions: 10, clock }, maxKnown);
  const isLive = (sessionId: string, of: object = {}) => sessions.isLive({ nodeId, subject, sessionId, ...of });
  const ignored = { apply: async () => undefined, forget: () => undefined };
  const others = { denied: ignored, directory: ignored, watch: ignored };
  const follow = () => followEnds({ changes, sessions, ...others });
  return { at, changes, sessions, isLive, follow };
}

async function stored(count = 1, expiresAtMs = NOW + MINUTE_MS): Promise<[string, ...string[]]> {
  const ids: [string, ...string[]] = [randomUUID(), ...Array.from({ length: count - 1 }, () => randomUUID())];
  const expires_at = new Date(expiresAtMs).toISOString();
  const values = ids.map((id) => ({ id, supervisor_id: subject, client_id: clientId, expires_at }));
  await database.db.forNode(nodeId).run((k) => k.insertInto('sessions').values(values));
  return ids;
}

const changed = (id: string, to: { expires_at?: string; revoked_at?: string }) =>
  database.db.forNode(nodeId).run((k) => k.updateTable('sessions').set(to).where('id', '=', id));

/** Counts the reads, and holds the next one between the answer of the database and the process. */
function watchedReads() {
  const holds: PromiseWithResolvers<void>[] = [];
  const answered = Promise.withResolvers<void>();
  let count = 0;
  interceptSessionReads(database.db, async (real) => {
    count += 1;
    const rows = await real();
    answered.resolve();
    await holds.shift()?.promise;
    return rows;
  });
  return {
    count: () => count,
    hold() {
      const held = Promise.withResolvers<void>();
      holds.push(held);
      return { answered: answered.promise, goOn: held.resolve };
    },
  };
}

it('5.1-05: a session is read once, and later checks run no statement', async () => {
  const { isLive } = process();
  const [id] = await stored();
  const reads = watchedReads();
  expect([await isLive(id), await isLive(id), await isLive(id)]).toEqual([true, true, true]);
  expect(reads.count()).toBe(1);
});

it('5.1-05: a thousand concurrent checks share one read, and those that arrive during it share the next', async () => {
  const { isLive } = process();
  const ids = await stored(1_001);
  const reads = watchedReads();
  const { answered, goOn } = reads.hold();
  const first = isLive(ids[0]);
  await answered;
  const others = Promise.all(ids.slice(1).map((id) => isLive(id)));
  goOn();
  expect([await first, new Set(await others)]).toEqual([true, new Set([true])]);
  expect(reads.count()).toBe(2);
});

it('5.1-05: the cache holds up to its maximum; an evicted session is read again, and not treated as absent', async () => {
  const { isLive } = process(2);
  const ids = await stored(3);
  const reads = watchedReads();
  for (let round = 0; round < 2; round += 1) for (const id of ids) expect(await isLive(id)).toBe(true);
  expect(reads.count()).toBe(6);
});

it('5.1-05: an absent session is not cached', async () => {
  const { isLive } = process();
  const id = randomUUID();
  expect(await isLive(id)).toBe(false);
  const row = { id, supervisor_id: subject, client_id: clientId, expires_at: new Date(NOW + MINUTE_MS).toISOString() };
  await database.db.forNode(nodeId).run((k) => k.insertInto('sessions').values(row));
  expect(await isLive(id)).toBe(true);
});

it('5.1-05: a session is live only for its own tenant and subject, cached or not', async () => {
  const { isLive } = process();
  const [id] = await stored();
  for (const of of [{ nodeId: randomUUID() }, { subject: randomUUID() }, { subject: 'no uuid' }]) {
    expect(await isLive(id, of)).toBe(false);
    expect(await isLive(id)).toBe(true);
    expect(await isLive(id, of)).toBe(false);
  }
  expect(await isLive('no uuid')).toBe(false);
});

it('D3-19: once the cached expiry has passed, the session is read again, since another process may have extended it', async () => {
  const { at, isLive } = process();
  const [prolonged, other] = await stored(2);
  expect([await isLive(prolonged), await isLive(other ?? '')]).toEqual([true, true]);
  await changed(prolonged, { expires_at: new Date(NOW + 2 * MINUTE_MS).toISOString() });
  at.nowMs = NOW + MINUTE_MS - 1;
  expect([await isLive(prolonged), await isLive(other ?? '')]).toEqual([true, true]);
  at.nowMs = NOW + MINUTE_MS;
  expect([await isLive(prolonged), await isLive(other ?? '')]).toEqual([true, false]);
});

it('5.1-05: a failed read is a 503, does not affect cached sessions, and is repeated by the next check', async () => {
  const { isLive } = process();
  const [known, cold] = await stored(2);
  await isLive(known);
  interceptSessionReads(database.db, () => Promise.reject(new Error('the connection is lost')));
  await expect(isLive(cold ?? '')).rejects.toMatchObject({ code: 'service_unavailable' });
  expect(await isLive(known)).toBe(true);
  vi.restoreAllMocks();
  expect(await isLive(cold ?? '')).toBe(true);
});

it('5.1-05: a read without a response is a 503 after a timeout, and the next check succeeds', async () => {
  const { isLive } = process();
  const [id] = await stored();
  const { answered, goOn } = watchedReads().hold();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const waiting = expect(isLive(id)).rejects.toMatchObject({ code: 'service_unavailable' });
  await answered;
  await vi.advanceTimersByTimeAsync(3_000);
  await waiting;
  vi.useRealTimers();
  goOn();
  expect(await isLive(id)).toBe(true);
});

it('D3-36: a session revoked while it is read is not live, and is not cached', async () => {
  const { sessions, isLive } = process();
  const [id] = await stored();
  const reads = watchedReads();
  const { answered, goOn } = reads.hold();
  const reading = isLive(id);
  await answered;
  await changed(id, { revoked_at: new Date(NOW).toISOString() });
  sessions.forget([{ kind: 'session', nodeId, subject, item: id }]);
  goOn();
  expect(await reading).toBe(false);
  expect(await isLive(id)).toBe(false);
  expect(reads.count()).toBe(2);
});

it('D3-36: a cached session is not live once it is revoked', async () => {
  const { sessions, isLive } = process();
  const [id, other] = await stored(2);
  expect([await isLive(id), await isLive(other ?? '')]).toEqual([true, true]);
  await changed(id, { revoked_at: new Date(NOW).toISOString() });
  sessions.forget([{ kind: 'session', nodeId, subject, item: id }]);
  expect([await isLive(id), await isLive(other ?? '')]).toEqual([false, true]);
});

it('D3-36: a session that another process has revoked is removed from the cache by the follower', async () => {
  const [here, there] = [process(), process()];
  there.follow();
  const [id] = await stored();
  expect(await there.isLive(id)).toBe(true);
  await here.changes.commit((ended) => here.sessions.end(nodeId, { id }, ended));
  await there.changes.poll();
  expect([await here.isLive(id), await there.isLive(id)]).toEqual([false, false]);
});

it('5.1-05: sessions cached from the previous database server are dropped when the server changes', async () => {
  const { at, isLive } = process();
  const [lost, held] = await stored(2);
  expect(await isLive(lost)).toBe(true);
  const reads = watchedReads();
  const { answered, goOn } = reads.hold();
  const reading = isLive(held ?? '');
  await answered;
  // The next server lacks both.
  at.generation += 1;
  await database.db.forNode(nodeId).run((k) => k.deleteFrom('sessions').where('id', 'in', [lost, held ?? '']));
  goOn();
  expect(await reading).toBe(true);
  expect([await isLive(lost), await isLive(held ?? '')]).toEqual([false, false]);
});
