import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import {
  IdempotentResponses,
  type KeyedRequest,
  type StoredResponse,
} from '../../src/idempotency/idempotent-responses.ts';
import type { Db } from '../../src/platform/database/database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';

const NODE = randomUUID();
const CREATED: StoredResponse = { status: 201, headers: { Location: '/there', ETag: '"1"' }, body: null };

describeReal('postgres', 'answers under a key, on PostgreSQL', () => {
  const database = beforeTests(realDatabase);
  let db: Db;

  beforeAll(async () => {
    db = database.db;
    await db.unscoped('test').run((k) => k.insertInto('nodes').values({ id: NODE, name: 'Node' }));
  });

  const answers = (maxWaitMs?: number) => {
    const given = { db, nowMs: Date.now };
    return new IdempotentResponses(maxWaitMs === undefined ? given : { ...given, maxWaitMs });
  };
  const request = (more: Partial<KeyedRequest> = {}): KeyedRequest => ({
    nodeId: NODE,
    subject: 'sub',
    clientId: 'client',
    method: 'POST',
    path: '/path',
    key: randomUUID(),
    bytes: Buffer.from('{}'),
    ...more,
  });
  /** A request whose work has begun, and ends as `held` does. */
  async function begun(given: KeyedRequest) {
    const held = Promise.withResolvers<StoredResponse>();
    const entered = Promise.withResolvers<void>();
    const first = answers().respond(given, () => {
      entered.resolve();
      return held.promise;
    });
    await entered.promise;
    return { held, first };
  }

  it('D7-06: a concurrent second request runs the work itself when the first one fails', async () => {
    const given = request();
    const { held, first } = await begun(given);
    const second = answers().respond(given, async () => CREATED);
    held.reject(new Error('fault'));
    await expect(first).rejects.toThrow('fault');
    expect(await second).toEqual(CREATED);
  });

  it('D7-06: a concurrent second request is rejected with 409 when it has waited for its time limit', async () => {
    const given = request();
    const { held, first } = await begun(given);
    await expect(answers(200).respond(given, async () => CREATED)).rejects.toMatchObject({
      code: 'idempotency_conflict',
      message: 'idempotency_conflict',
    });
    held.resolve(CREATED);
    expect(await first).toEqual(CREATED);
  });

  it('D7-06: in one process a second request waits until the first one has finished, and is a 409 after its time limit', async () => {
    const given = request();
    const said = (body: string): StoredResponse => ({ status: 200, headers: {}, body });
    const alone = (on: IdempotentResponses, of: KeyedRequest, around: () => Promise<StoredResponse>) =>
      on.respond(of, async () => CREATED, around);
    const patient = answers();
    const held = Promise.withResolvers<StoredResponse>();
    const first = alone(patient, given, () => held.promise);
    const others = [
      alone(patient, given, async () => said('second')),
      alone(patient, given, async () => said('third')),
    ];
    expect(await alone(patient, { ...given, key: 'another' }, async () => said('free'))).toEqual(said('free'));
    held.resolve(said('first'));
    expect(await Promise.all([first, ...others])).toEqual([said('first'), said('second'), said('third')]);

    const hasty = answers(50);
    const stuck = Promise.withResolvers<StoredResponse>();
    const slow = alone(hasty, given, () => stuck.promise);
    await expect(alone(hasty, given, async () => said('never'))).rejects.toMatchObject({
      code: 'idempotency_conflict',
    });
    stuck.reject(new Error('fault'));
    await expect(slow).rejects.toThrow('fault');
    expect(await alone(hasty, given, async () => said('after'))).toEqual(said('after'));
  });
});
