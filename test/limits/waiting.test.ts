import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  ConsoleSessions,
  MAX_SIGN_INS,
  MAX_WAITING_SIGN_INS,
} from '../../src/features/oauth/console-sessions.service.ts';
import { MAX_WAITING_MIGRATIONS } from '../../src/features/user-migrations/user-migrations.service.ts';
import { serviceUnavailable } from '../../src/platform/errors.ts';
import { inRequest, MemoryAccounts } from '../../src/platform/held-memory.ts';
import { usePortcullis } from '../support/harness.ts';

const UNAVAILABLE = { code: 'service_unavailable', details: { retryAfterSeconds: 1 } };
/** For a machine in use. */
const PATIENCE = { timeout: 10_000 };
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Counts what is pending of promises, and what they were refused with. */
function watched(promises: Promise<unknown>[]) {
  const refused: unknown[] = [];
  for (const promise of promises) promise.catch((error: unknown) => refused.push(error));
  return refused;
}

describe('waiting sign-ins', () => {
  it('D6-25 D3-40: of sign-ins from many addresses a few are checked and a few wait; the others are rejected', async () => {
    const never = new Promise<never>(() => undefined);
    const find = vi.fn(() => never);
    const sessions = new ConsoleSessions({
      throttle: { requireAttemptsLeft: async () => undefined, failed: async () => undefined },
      directory: { client: find },
    } as never);
    const signIn = (at: number) =>
      sessions.signIn({ client_id: 'c', username: 'u', password: 'p' }, [], `10.0.0.${at}`);
    const refused = watched(Array.from({ length: 200 }, (_, at) => signIn(at)));
    await vi.waitFor(() => expect(refused).toHaveLength(200 - MAX_SIGN_INS - MAX_WAITING_SIGN_INS));
    expect(find).toHaveBeenCalledTimes(MAX_SIGN_INS);
    for (const error of refused) expect(error).toMatchObject(UNAVAILABLE);
  });
});

describe('requests waiting for the database', () => {
  const p = usePortcullis();
  const memory = () => p.service.context.memory;
  /** Transactions that hold every connection until this is disposed. */
  function hanging(): AsyncDisposable {
    const gate = Promise.withResolvers<void>();
    const { db } = p.service.context.database;
    const holding = Array.from({ length: 10 }, () => db.transaction(() => gate.promise));
    return {
      async [Symbol.asyncDispose]() {
        gate.resolve();
        await Promise.all(holding);
      },
    };
  }
  afterEach(() => {
    memory().limits.waitMs = 10_000;
  });

  it('D6-25: few user migrations of a tenant wait, and one rejected to free memory leaves the queue', async () => {
    const { userMigrations: migrations } = p.service.context;
    const accounts = new MemoryAccounts();
    const gate = Promise.withResolvers<void>();
    const ran: string[] = [];
    const running = migrations.exclusively('node', () => gate.promise);
    const helds = Array.from({ length: MAX_WAITING_MIGRATIONS + 1 }, () => accounts.open('node'));
    const waiting = helds.map((held, at) =>
      inRequest(held, () => migrations.exclusively('node', async () => void ran.push(String(at)))),
    );
    const refused = watched(waiting);
    await settled();
    expect(refused).toEqual([expect.objectContaining(UNAVAILABLE)]);
    helds[3]?.refuse(serviceUnavailable());
    await vi.waitFor(() => expect(refused).toHaveLength(2));
    // Another tenant does not wait.
    await migrations.exclusively('other', async () => undefined);
    gate.resolve();
    await running;
    await vi.waitFor(() => expect(ran).toHaveLength(MAX_WAITING_MIGRATIONS - 1));
    expect(ran).not.toContain('3');
  });

  it('D6-25: token requests get 503 when they have waited too long, and hold no memory afterwards', async () => {
    memory().limits.waitMs = 2_000;
    const { connections } = p.service.context.database;
    await using database = hanging();
    const ask = () =>
      p.call('POST', '/v2/oauth/token', {
        json: {
          grant_type: 'client_credentials',
          client_id: p.demo.client.client_id,
          client_secret: crypto.randomUUID(),
        },
      });
    const asked = Array.from({ length: 20 }, ask);
    await vi.waitFor(() => expect(connections.waiting('unidentified')).toBeGreaterThan(10), PATIENCE);
    expect(memory().held('authentication')).toBeGreaterThan(0);
    const answers = await Promise.all(asked);
    expect(answers.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual(
      answers.map(() => [503, '1']),
    );
    expect(connections.waiting('unidentified')).toBe(0);
    await database[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(memory().bytes).toBe(0), PATIENCE);
    expect((await ask()).status).toBe(401);
  });
});
