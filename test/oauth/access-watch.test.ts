import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { InvalidTokenError, type Principal } from '../../src/access/identity/callers.ts';
import type { GuardedRequest } from '../../src/access/limits/client-guards.ts';
import type { LimitVerdict } from '../../src/access/limits/limits.rules.ts';
import { storedTokenId } from '../../src/access/revocation/access-cache.ts';
import type { AccessChange } from '../../src/access/revocation/access-changes.ts';
import { AccessWatch } from '../../src/access/revocation/access-watch.ts';
import { Refusal, serviceUnavailable } from '../../src/platform/errors.ts';
import { ManualClock, settle } from '../support/realtime/model.ts';

const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
const CLIENT = 'cccccccc-0000-4000-8000-000000000001';
const LONG_ID = 'j'.repeat(300);

function principal(changes: Partial<Principal> = {}): Principal {
  return {
    tokenClass: 'user',
    tokenUse: 'api',
    subject: 'somebody',
    nodeId: NODE,
    clientId: CLIENT,
    sessionId: undefined,
    tokenId: 't',
    familyId: 'f',
    issuedAt: undefined,
    permissions: new Set(),
    expiresAtMs: undefined,
    ...changes,
  };
}

const ended = (kind: AccessChange['kind'], subject: string, item: string | null): AccessChange => {
  return { kind, nodeId: NODE, subject, item };
};
const CLIENT_CHANGED = ended('client', CLIENT, null);

/** A watch whose clients are all good until they are told not to be. */
function watching() {
  const bad = new Set<string | undefined>();
  const faults: unknown[] = [];
  const clock = new ManualClock();
  const judged = vi.fn((judged: Principal) => !bad.has(judged.clientId));
  const check = async (principal: Principal) => {
    if (!judged(principal)) throw new InvalidTokenError('revoked');
  };
  const guards = { check: vi.fn(async (): Promise<LimitVerdict> => ({ headers: [] })) };
  const onError = (error: unknown) => void faults.push(error);
  const watch = new AccessWatch({ check, recheck: check, guards, nowMs: () => clock.nowMs(), onError });
  const told: string[] = [];
  /** Applies changes, and lets the watchers be called back. */
  const apply = async (changes: AccessChange[]) => {
    watch.apply(changes);
    await settle();
  };
  const begin = (name: string, changes: Partial<Principal> = {}, request?: GuardedRequest) =>
    watch.watch(principal(changes), request, (refusal) => {
      told.push(`${name} ${refusal instanceof InvalidTokenError ? refusal.end : refusal.code}`);
    });
  return { watch, apply, bad, faults, clock, judged, guards, told, begin };
}

const DAY_MS = 24 * 3_600_000;

describe('watchers of a token', () => {
  it.each<[string, AccessChange, Partial<Principal>]>([
    ['its client, named in capitals', ended('token', CLIENT, 't'), { clientId: CLIENT.toUpperCase() }],
    ['its session', ended('session', 'somebody', 's'), { tokenUse: 'login', sessionId: 's' }],
    ['its family, of a long id', ended('token', CLIENT, storedTokenId(LONG_ID)), { familyId: LONG_ID }],
  ])('D6-12 D3-23: a watcher is notified once of the revocation of %s', async (_name, change, changes) => {
    const { watch, apply, told, begin } = watching();
    begin('it', changes);
    begin('other', { tokenId: 'x', familyId: 'x', sessionId: 'x' });
    await apply([change, change]);
    await apply([change]);
    expect(told).toEqual(['it revoked']);
    expect(watch.size).toBe(1);
  });

  it.each([
    ['a second', 1_000],
    ['a year', 365 * DAY_MS],
    ['the maximum date', 8.64e15],
  ])('D2-29: a watcher is notified when the token expires, %s after its issue', async (_name, lifetimeMs) => {
    const { watch, clock, told, begin } = watching();
    begin('it', { expiresAtMs: lifetimeMs });
    begin('endless');
    await nextTurn();
    for (let day = 0; day < 30; day += 1) clock.advance(Math.min(20 * DAY_MS, lifetimeMs - 1 - clock.nowMs()));
    expect(told).toEqual([]);
    if (lifetimeMs > 600 * DAY_MS) return;
    clock.advance(1);
    await settle();
    expect(told).toEqual(['it expired']);
    expect([watch.size, clock.timers]).toEqual([1, 0]);
  });

  it('D2-29: a watcher of an expired token is notified once, even if the token is revoked afterwards', async () => {
    const { apply, clock, told, begin } = watching();
    clock.advance(10_000);
    begin('it', { expiresAtMs: 1 });
    expect(told).toEqual([]);
    clock.advance(0);
    await apply([ended('token', CLIENT, 't')]);
    expect(told).toEqual(['it expired']);
  });

  it('D2-29: a watcher leaves no timer when it stops or is notified of a revocation', async () => {
    const { watch, apply, clock, begin } = watching();
    begin('it', { expiresAtMs: 1_000 })();
    begin('other', { expiresAtMs: 1_000 });
    await apply([ended('token', CLIENT, 't')]);
    expect([watch.size, clock.timers]).toEqual([0, 0]);
  });

  const REQUEST: GuardedRequest = { fingerprint: undefined, address: '192.0.2.1' };

  it.each(['ip_not_allowed', 'mtls_required'] as const)(
    'D2-29 5.3-03: a watcher is notified of %s at each change of its client, and of the end of its token after that',
    async (code) => {
      const { watch, apply, guards, told, begin } = watching();
      begin('it', {}, REQUEST);
      begin('guarded elsewhere');
      await settle();
      guards.check.mockRejectedValue(new Refusal(code));
      await apply([CLIENT_CHANGED]);
      await apply([CLIENT_CHANGED]);
      expect(told).toEqual([`it ${code}`, `it ${code}`]);
      expect(guards.check).toHaveBeenLastCalledWith(principal(), REQUEST, false);
      guards.check.mockResolvedValue({ headers: [] });
      await apply([CLIENT_CHANGED]);
      await apply([ended('token', CLIENT, 't')]);
      expect(told.slice(2)).toEqual(['it revoked', 'guarded elsewhere revoked']);
      expect(watch.size).toBe(0);
    },
  );

  it('D2-29: a watcher is notified of a guard that refuses it since its request was admitted', async () => {
    const { watch, guards, told, begin } = watching();
    guards.check.mockRejectedValue(new Refusal('ip_not_allowed'));
    const stop = begin('it', {}, REQUEST);
    await settle();
    expect([told, watch.size]).toEqual([['it ip_not_allowed'], 1]);
    stop();
    expect(watch.size).toBe(0);
  });

  it('D2-29: a change whose guards cannot be checked ends no watcher, and is applied again', async () => {
    const { apply, guards, faults, told, begin } = watching();
    begin('it', {}, REQUEST);
    await settle();
    guards.check.mockRejectedValueOnce(serviceUnavailable()).mockRejectedValueOnce(new Refusal('ip_not_allowed'));
    await apply([CLIENT_CHANGED]);
    expect([told, faults]).toEqual([[], [serviceUnavailable()]]);
    await apply([]);
    expect(told).toEqual(['it ip_not_allowed']);
    await apply([]);
    expect(guards.check).toHaveBeenCalledTimes(3);
  });

  it("D6-12: a watcher is not notified of the revocation of another client's token with the same id", async () => {
    const { apply, told, begin } = watching();
    begin('it');
    await apply([ended('token', 'another', 't'), ended('session', 'another', 's')]);
    expect(told).toEqual([]);
  });

  it('D6-12: a watcher of a revoked token is notified after watch() has returned', async () => {
    const { watch, bad, told, begin } = watching();
    bad.add(CLIENT);
    begin('it');
    expect(told).toEqual([]);
    await settle();
    expect(told).toEqual(['it revoked']);
    expect(watch.size).toBe(0);
  });

  it('D6-12: a watcher is notified with 503 when the state of the token cannot be read', async () => {
    const { watch, faults, judged, told, begin } = watching();
    judged.mockImplementation(() => {
      throw new Error('away');
    });
    begin('it');
    await settle();
    expect([told, faults, watch.size]).toEqual([['it service_unavailable'], [new Error('away')], 0]);
  });

  it('D2-29: watchers are notified in slices, so that thousands with one token do not block other work', async () => {
    const { watch, told, begin } = watching();
    for (let at = 0; at < 20; at += 1) {
      watch.watch(principal(), undefined, () => {
        for (const until = performance.now() + 2; performance.now() < until; );
        told.push('slow');
      });
    }
    begin('last');
    await nextTurn();
    watch.apply([ended('token', CLIENT, 't')]);
    // The change waits for none of them, and other work runs in between; none is told twice.
    await nextTurn();
    await nextTurn();
    expect(told.length).toBeLessThan(20);
    watch.apply([ended('token', CLIENT, 't'), ended('token', CLIENT, 'f')]);
    await vi.waitFor(() => expect(watch.size).toBe(0));
    expect(told).toEqual([...Array.from({ length: 20 }, () => 'slow'), 'last revoked']);
  });

  it('D6-24 D2-29: a change of a client with many connections checks them in slices, so that other work runs in between', async () => {
    const { watch, judged, begin } = watching();
    for (let at = 0; at < 200; at += 1) begin(`w${at}`);
    await settle();
    judged.mockClear();
    judged.mockImplementation(() => {
      for (const until = performance.now() + 1; performance.now() < until; );
      return true;
    });
    const checked: number[] = [];
    watch.apply([CLIENT_CHANGED]);
    while (checked.at(-1) !== 200) {
      checked.push(judged.mock.calls.length);
      await nextTurn();
    }
    const atOnce = checked.map((count, at) => count - (checked[at - 1] ?? 0));
    expect(Math.max(...atOnce)).toBeLessThan(50);
    expect([judged.mock.calls.length, watch.size]).toEqual([200, 200]);
  });

  it('D6-12: a watcher whose state cannot be read does not block others, and a failed change can be applied again', async () => {
    const { apply, bad, faults, judged, told, begin } = watching();
    begin('first');
    begin('second');
    await nextTurn();
    bad.add(CLIENT);
    judged.mockImplementationOnce(() => {
      throw new Error('away');
    });
    await apply([CLIENT_CHANGED]);
    expect([told, faults]).toEqual([['second revoked'], [new Error('away')]]);
    await apply([]);
    expect(told).toEqual(['second revoked', 'first revoked']);
  });

  it('D6-12: watchers are looked up by key: of 10,000, a change checks only those it concerns', async () => {
    const { watch, apply, judged, told, begin } = watching();
    for (let i = 0; i < 10_000; i += 1) begin(`w${i}`, { clientId: `c${i % 1_000}`, tokenId: `t${i}` });
    await nextTurn();
    judged.mockClear();
    await apply([ended('token', 'c7', 't7'), ended('client', 'c8', null)]);
    expect(told).toEqual(['w7 revoked']);
    expect(judged).toHaveBeenCalledTimes(10);
    expect(watch.size).toBe(9_999);
  });
});
