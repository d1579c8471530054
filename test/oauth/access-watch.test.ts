import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { Principal } from '../../src/access/identity/principal.ts';
import type { AccessChange } from '../../src/access/sessions/access-changes.ts';
import { storedTokenId } from '../../src/access/sessions/access-directory.ts';
import { AccessWatch } from '../../src/access/sessions/access-watch.ts';

const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
const LONG_ID = 't'.repeat(300);
const CLIENT = 'cccccccc-0000-4000-8000-000000000001';

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
  const judged = vi.fn((judged: Principal) => !bad.has(judged.clientId));
  const watch = new AccessWatch({ isGood: async (principal) => judged(principal), admits: judged });
  const told: string[] = [];
  const begin = (name: string, changes: Partial<Principal> = {}) =>
    watch.watch(principal(changes), (error) => told.push(error === undefined ? name : `${name}: ${error}`));
  return { watch, bad, judged, told, begin };
}

describe('those who watch a token', () => {
  it.each<[string, AccessChange, Partial<Principal>]>([
    ['itself', ended('token', CLIENT, 't'), {}],
    ['its family', ended('token', CLIENT, 'f'), {}],
    ['its client, named in capitals', ended('token', CLIENT, 't'), { clientId: CLIENT.toUpperCase() }],
    ['itself, by an id too long to store', ended('token', CLIENT, storedTokenId(LONG_ID)), { tokenId: LONG_ID }],
    ['its session', ended('session', 'somebody', 's'), { tokenUse: 'login', sessionId: 's' }],
  ])('D6-12 D3-23: are told of the end of %s, once', async (_name, change, changes) => {
    const { watch, told, begin } = watching();
    begin('it', changes);
    begin('other', { tokenId: 'x', familyId: 'x', sessionId: 'x' });
    await watch.apply([change, change]);
    await watch.apply([change]);
    expect(told).toEqual(['it']);
    expect(watch.size).toBe(1);
  });

  it('D6-12 D3-07: are told when their client is not good any more, and not of its other changes', async () => {
    const { watch, bad, told, begin } = watching();
    begin('it');
    begin('other', { clientId: 'another' });
    await watch.apply([CLIENT_CHANGED]);
    expect(told).toEqual([]);
    bad.add(CLIENT);
    await watch.apply([CLIENT_CHANGED]);
    expect(told).toEqual(['it']);
  });

  it("D6-12: are not told of the end of another client's token with the same id", async () => {
    const { watch, told, begin } = watching();
    begin('it');
    await watch.apply([ended('token', 'another', 't'), ended('session', 'another', 's')]);
    expect(told).toEqual([]);
  });

  it('D6-12: are told of what has ended before they began, after they know how to stop', async () => {
    const { watch, bad, told, begin } = watching();
    bad.add(CLIENT);
    begin('it');
    expect(told).toEqual([]);
    await nextTurn();
    expect(told).toEqual(['it']);
    expect(watch.size).toBe(0);
  });

  it('D6-12: are told why, where that cannot be judged', async () => {
    const watch = new AccessWatch({ isGood: () => Promise.reject(new Error('away')), admits: () => true });
    const told: unknown[] = [];
    watch.watch(principal(), (error) => told.push(error));
    await nextTurn();
    expect(told).toEqual([new Error('away')]);
    expect(watch.size).toBe(0);
  });

  it('D6-12: hold nobody up who cannot be judged, and a failed change can be told again', async () => {
    const { watch, bad, judged, told, begin } = watching();
    begin('first');
    begin('second');
    await nextTurn();
    bad.add(CLIENT);
    judged.mockImplementationOnce(() => {
      throw new Error('away');
    });
    await expect(watch.apply([CLIENT_CHANGED])).rejects.toThrow('away');
    expect(told).toEqual(['second']);
    await watch.apply([CLIENT_CHANGED]);
    expect(told).toEqual(['second', 'first']);
  });

  it('D6-12: are forgotten when they stop, whatever their token names', async () => {
    const { watch, told, begin } = watching();
    const stops = [
      begin('all', { sessionId: 's' }),
      begin('none', { clientId: undefined, tokenId: undefined, familyId: undefined }),
    ];
    expect(watch.size).toBe(2);
    for (const stop of [...stops, ...stops]) stop();
    expect(watch.size).toBe(0);
    await watch.apply([CLIENT_CHANGED, ended('token', CLIENT, 't')]);
    await nextTurn();
    expect(told).toEqual([]);
  });

  it('D6-12: are looked up, not gone through: of 10,000 a change judges those whom it is about', async () => {
    const { watch, judged, told, begin } = watching();
    for (let i = 0; i < 10_000; i += 1) begin(`w${i}`, { clientId: `c${i % 1_000}`, tokenId: `t${i}` });
    await nextTurn();
    judged.mockClear();
    await watch.apply([ended('token', 'c7', 't7'), ended('client', 'c8', null)]);
    expect(told).toEqual(['w7']);
    expect(judged).toHaveBeenCalledTimes(10);
    expect(watch.size).toBe(9_999);
  });
});
