import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { OPERATOR } from '../../src/access/administration/administration.ts';
import { LoginLocks } from '../../src/access/credentials/login-locks.ts';
import { AccessChanges } from '../../src/access/revocation/access-changes.ts';
import { Sessions } from '../../src/access/revocation/sessions.ts';
import { SupervisorAdministration } from '../../src/features/supervisors/supervisor-administration.service.ts';
import { Refusal } from '../../src/platform/errors.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';

const ROUNDS = 10;

describeReal('postgres', 'the last active admin of a node, under concurrency', () => {
  const database = beforeTests(realDatabase);
  let administration: SupervisorAdministration;

  beforeAll(async () => {
    const { db } = database;
    const nowMs = Date.now;
    const generation = () => 0;
    const clock = { nowMs, note: () => undefined };
    const changes = new AccessChanges({ db, clock, generation, nowMs, onError: () => undefined });
    const sessions = new Sessions({ db, generation, changes, maxSessions: 10, clock });
    const passwords = { hash: async () => 'none' };
    administration = new SupervisorAdministration({
      db,
      changes,
      sessions,
      passwords,
      passwordCheck: { check: async () => ({ subject: '', reason: 'wrong_password', lockedUntilMs: undefined }) },
      locks: new LoginLocks({ db, nowMs }),
      nowMs,
    });
  });

  /** A node of its own with two admins. */
  async function twoAdmins() {
    const nodeId = randomUUID();
    await database.db.unscoped('test').run((k) => k.insertInto('nodes').values({ id: nodeId, name: 'Test' }));
    const make = (username: string) =>
      administration.create(nodeId, OPERATOR, { username, password: 'correct horse battery', role: 'admin' });
    return { nodeId, first: (await make('first')).id, second: (await make('second')).id };
  }

  it.each([
    ['disable', 'disable'],
    ['demote', 'demote'],
    ['disable', 'demote'],
  ] as const)('D3-26: concurrent requests to %s and to %s the two admins leave exactly one', async (...deeds) => {
    const doTo = (deed: (typeof deeds)[number], nodeId: string, id: string) =>
      deed === 'disable'
        ? administration.setStatus(nodeId, OPERATOR, id, 'disabled')
        : administration.setRole(nodeId, OPERATOR, id, 'viewer');
    for (let round = 0; round < ROUNDS; round += 1) {
      const { nodeId, first, second } = await twoAdmins();
      const settled = await Promise.allSettled([doTo(deeds[0], nodeId, second), doTo(deeds[1], nodeId, first)]);
      const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      expect(refused).toHaveLength(1);
      expect(refused[0]).toBeInstanceOf(Refusal);
      expect(refused[0].code).toBe('precondition_failed');
      const admins = await database.db
        .forNode(nodeId)
        .run((k) =>
          k.selectFrom('supervisors').select('id').where('role', '=', 'admin').where('status', '=', 'active'),
        );
      expect(admins).toHaveLength(1);
    }
  });

  it('D3-26: of concurrent creations with one username exactly one succeeds', async () => {
    const { nodeId } = await twoAdmins();
    const make = (username: string) =>
      administration.create(nodeId, OPERATOR, { username, password: 'correct horse battery', role: 'viewer' });
    const settled = await Promise.allSettled([make('Grace'), make('GRACE'), make('grace')]);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason.details] : []));
    expect(refused.map(({ taken }) => taken)).toEqual(['duplicate_username', 'duplicate_username']);
  });
});
