import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  IdempotentResponses,
  type KeyedRequest,
  type StoredResponse,
} from '../../src/domain/idempotency/idempotent-responses.ts';
import type { Db } from '../../src/platform/database/database.ts';
import { notFound, serviceUnavailable } from '../../src/platform/errors.ts';
import { type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';

const NODE = randomUUID();
const CREATED: StoredResponse = { status: 201, headers: { Location: '/there', ETag: '"1"' }, body: null };

describeReal('postgres', 'answers under a key, on PostgreSQL', () => {
  let database: RealDatabase;
  let db: Db;

  beforeAll(async () => {
    database = await realDatabase();
    db = database.db;
    await db.unscoped('test').run((k) => k.insertInto('nodes').values({ id: NODE, name: 'Node' }));
  });
  afterAll(() => database[Symbol.asyncDispose]());

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
  const addAccount = async (name: string) => {
    const at = new Date().toISOString();
    const row = { id: randomUUID(), name, type: 'organisation', status: 1, created_at: at, updated_at: at };
    await db.forNode(NODE).run((k) => k.insertInto('accounts').values(row));
  };
  const accounts = async (name: string) =>
    (await db.forNode(NODE).run((k) => k.selectFrom('accounts').select('id').where('name', '=', name))).length;

  it('D7-06 D7-07: gives status, body and headers again', async () => {
    const given = request();
    expect(await answers().respond(given, async () => CREATED)).toEqual(CREATED);
    const again = await answers().respond(given, async () => {
      throw new Error('once is enough');
    });
    expect(again).toEqual(CREATED);
  });

  it('D7-14: what is thrown undoes the work, and the key is free', async () => {
    const given = request();
    const work = (error: Error) => async (): Promise<StoredResponse> => {
      await addAccount(given.key);
      throw error;
    };
    await expect(answers().respond(given, work(new Error('fault')))).rejects.toThrow('fault');
    const unavailable = serviceUnavailable();
    await expect(answers().respond(given, work(unavailable))).rejects.toBe(unavailable);
    const refusal = notFound();
    await expect(answers().respond(given, work(refusal))).rejects.toBe(refusal);
    expect(await accounts(given.key)).toBe(0);
    expect(await answers().respond({ ...given, bytes: Buffer.from('[]') }, async () => CREATED)).toEqual(CREATED);
  });

  it('D7-06: a second request at once waits for the first and gets its answer', async () => {
    const given = request();
    const works = Array.from({ length: 8 }, () =>
      answers().respond(given, async () => {
        await addAccount(given.key);
        return CREATED;
      }),
    );
    expect(await Promise.all(works)).toEqual(works.map(() => CREATED));
    expect(await accounts(given.key)).toBe(1);
  });

  it('D7-06: a second request at once that does its work itself, since the first has failed', async () => {
    const given = request();
    const held = Promise.withResolvers<StoredResponse>();
    const entered = Promise.withResolvers<void>();
    const first = answers().respond(given, () => {
      entered.resolve();
      return held.promise;
    });
    await entered.promise;
    const second = answers().respond(given, async () => CREATED);
    held.reject(new Error('fault'));
    await expect(first).rejects.toThrow('fault');
    expect(await second).toEqual(CREATED);
  });

  it('D7-06: a second request that has waited its time is a 409', async () => {
    const given = request();
    const held = Promise.withResolvers<StoredResponse>();
    const entered = Promise.withResolvers<void>();
    const first = answers().respond(given, () => {
      entered.resolve();
      return held.promise;
    });
    await entered.promise;
    await expect(answers(200).respond(given, async () => CREATED)).rejects.toMatchObject({
      code: 'idempotency_conflict',
      message: 'idempotency_conflict',
    });
    held.resolve(CREATED);
    expect(await first).toEqual(CREATED);
  });

  it('D7-06: in one process a second request waits for the first one whatever that waits for, then is a 409', async () => {
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

  it('D7-06: another body is a 409 also while it waits', async () => {
    const given = request();
    await answers().respond(given, async () => CREATED);
    const other = { ...given, bytes: Buffer.from('{ }') };
    await expect(answers().respond(other, async () => CREATED)).rejects.toMatchObject({ code: 'idempotency_conflict' });
    expect(await answers().respond(given, async () => CREATED)).toEqual(CREATED);
  });
});
