import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it, type MockInstance, vi } from 'vitest';
import { DenyList } from '../../src/access/revocation/access-cache.ts';
import type { AccessChange } from '../../src/access/revocation/access-changes.ts';
import type { Db } from '../../src/platform/database/database.ts';
import { usePortcullis } from '../support/harness.ts';
import { rows, supervisorId } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';

const MAX_ENTRIES = 3;
const LOOK_UPS = ['revoked tokens of all nodes', 'sessions of all nodes'];
const HOUR_MS = 3_600_000;
const TOKEN = { subject: '', sessionId: undefined, tokenId: undefined, familyId: undefined, issuedAt: 0 };

/** How often something was looked up; the instance reads other things meanwhile. */
function lookUpsOf({ mock }: MockInstance<Db['unscoped']>): number {
  return mock.calls.filter(([reason]) => LOOK_UPS.includes(reason)).length;
}

describeReal('postgres', 'the list of what has ended', () => {
  const p = usePortcullis();
  let nodeId: string;
  let clientId: string;
  beforeAll(async () => {
    nodeId = p.demo.node_id;
    clientId = p.demo.client.client_id;
  });

  async function revoked(expiresAtMs: number): Promise<AccessChange> {
    const item = randomUUID();
    const expires_at = new Date(expiresAtMs).toISOString();
    const row = { client_id: clientId, token_id: item, node_id: nodeId, expires_at };
    await rows(p).run((k) => k.insertInto('revoked_tokens').values(row));
    return { kind: 'token', nodeId, subject: clientId, item };
  }

  async function ended(): Promise<AccessChange> {
    const subject = await supervisorId(p);
    const item = randomUUID();
    const now = new Date().toISOString();
    const ids = { id: item, node_id: nodeId, supervisor_id: subject, client_id: clientId };
    const row = { ...ids, expires_at: now, revoked_at: now };
    await rows(p).run((k) => k.insertInto('sessions').values(row));
    return { kind: 'session', nodeId, subject, item };
  }

  const allowed = (list: DenyList, { kind, subject, item }: AccessChange) =>
    kind === 'session'
      ? list.allows(clientId, { ...TOKEN, nodeId, subject, sessionId: item ?? '' })
      : list.allows(clientId, { ...TOKEN, nodeId, tokenId: item ?? '' });

  const listOf = (nowMs = Date.now) =>
    new DenyList({ db: p.service.context.database.db, waitUntilFresh: () => undefined, nowMs }, MAX_ENTRIES);

  it('D3-36: keeps up to its maximum of entries, and queries the database for others, at most once a second each', async () => {
    const list = listOf();
    const changes = [await ended(), await revoked(Date.now() + HOUR_MS), await ended(), await ended(), await ended()];
    await list.apply(changes.slice(0, 2));
    await list.apply(changes.slice(2));
    expect(list.size).toBe(MAX_ENTRIES);
    const statements = vi.spyOn(p.service.context.database.db, 'unscoped');
    expect(await Promise.all(changes.slice(2).map((change) => allowed(list, change)))).toEqual([false, false, false]);
    expect(statements).not.toHaveBeenCalled();
    expect(await Promise.all(changes.slice(0, 2).map((change) => allowed(list, change)))).toEqual([false, false]);
    const other: AccessChange = { kind: 'session', nodeId, subject: await supervisorId(p), item: randomUUID() };
    expect(await allowed(list, other)).toBe(true);
    const { length } = statements.mock.calls;
    expect(await allowed(list, other)).toBe(true);
    expect(statements.mock.calls).toHaveLength(length);
    statements.mockRestore();
  });

  it('D3-36: stops querying the database once the dropped entries have expired', async () => {
    let nowMs = Date.now();
    const list = listOf(() => nowMs);
    await list.apply([await ended(), await ended(), await ended(), await ended()]);
    const other = await revoked(nowMs);
    const statements = vi.spyOn(p.service.context.database.db, 'unscoped');
    expect(await allowed(list, other)).toBe(false);
    const length = lookUpsOf(statements);
    expect(length).toBeGreaterThan(0);
    nowMs += HOUR_MS;
    expect(await allowed(list, other)).toBe(true);
    expect(lookUpsOf(statements)).toBe(length);
    statements.mockRestore();
    await list.apply([await ended()]);
    expect(list.size).toBe(1);
  });

  it('D3-22: loads the revoked tokens that expire last, up to its maximum, and finds the others in the database', async () => {
    const changes = await Promise.all([9, 3, 8, 2, 7].map((hours) => revoked(Date.now() + hours * HOUR_MS)));
    const list = listOf();
    await list.load();
    expect(list.size).toBe(MAX_ENTRIES);
    const statements = vi.spyOn(p.service.context.database.db, 'unscoped');
    const asked: number[] = [];
    for (const change of changes) {
      expect(await allowed(list, change)).toBe(false);
      asked.push(lookUpsOf(statements));
    }
    expect(asked).toEqual([0, 1, 1, 2, 2]);
    statements.mockRestore();
  });
});
