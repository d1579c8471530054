import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HeldMemory, MemoryAccounts, totalBytesOf } from '../../src/platform/held-memory.ts';

const MIB = 1024 * 1024;
const NODE = 'node';

/** Accounts of which one that is active alone may hold 64 MiB of rows. */
function accounts(waitMs = 10_000) {
  const memory = new MemoryAccounts(128 * MIB);
  memory.limits.waitMs = waitMs;
  return { memory, request: (nodeId = NODE) => memory.open(nodeId) };
}

/** A read of so many rows of a mebibyte, as a connection gives them; it counts how often it is begun. */
function reader(held: HeldMemory, rows: number) {
  const told = { begun: 0 };
  const read = async () => {
    told.begun += 1;
    for (let row = 1; row <= rows; row += 1) {
      const error = held.add(MIB, true);
      if (!error) continue;
      held.subtract(row * MIB);
      throw error;
    }
    return rows;
  };
  return Object.assign(told, { result: held.read(read) });
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('the memory limit for all requests', () => {
  it('D6-25: is a quarter of the heap, at most 256 MiB', () => {
    expect(totalBytesOf(400 * MIB)).toBe(100 * MIB);
    expect(totalBytesOf(4_000 * MIB)).toBe(256 * MIB);
  });
});

describe('memory held by requests', () => {
  it('D6-25: over the total, the newest request of the largest account is rejected first', () => {
    const { memory } = accounts();
    const [old, fresh] = [memory.open('large'), memory.open('large')];
    const small = memory.open('small');
    old.charge(60 * MIB);
    fresh.charge(30 * MIB);
    expect(small.charge(40 * MIB)).toBe(true);
    expect([old, fresh, small].map(({ refusal }) => refusal?.code)).toEqual([
      undefined,
      'service_unavailable',
      undefined,
    ]);
    expect([memory.bytes, memory.held('large'), memory.refusals.tenant]).toEqual([100 * MIB, 60 * MIB, 1]);
    expect(fresh.refusal?.details.retryAfterSeconds).toBe(1);
  });

  it('D6-25: of callers without a token, the address that holds the most is rejected first', () => {
    const { memory } = accounts();
    const modest = memory.open('unidentified', '10.0.0.1');
    modest.charge(10 * MIB);
    const flood = Array.from({ length: 13 }, () => memory.open('unidentified', '10.0.0.2'));
    for (const one of flood) one.charge(10 * MIB);
    const late = memory.open('unidentified', '10.0.0.3');
    late.charge(10 * MIB);
    expect([modest, late].map(({ refusal }) => refusal)).toEqual([undefined, undefined]);
    expect(flood.filter(({ refusal }) => refusal)).toEqual(flood.slice(-3));
  });

  it('D6-25: a rejected request aborts its waits and its reads', async () => {
    const { memory, request } = accounts();
    const held = request();
    const reasons: unknown[] = [];
    held.giveUp = (refusal) => reasons.push(refusal);
    held.signal.addEventListener('abort', ({ target }) => reasons.push((target as AbortSignal).reason));
    held.charge(129 * MIB);
    expect(reasons).toEqual([held.refusal, held.refusal]);
    expect(held.add(1, true)).toBe(held.refusal);
    await expect(held.read(async () => 'more')).rejects.toBe(held.refusal);
    expect(memory.bytes).toBe(0);
  });

  it('D6-25: memory of a rejected request stays charged until its work ends; then other requests may use it', async () => {
    const { memory, request } = accounts();
    const [held, gate] = [request(), Promise.withResolvers<void>()];
    const work = held.during(() => gate.promise);
    held.charge(130 * MIB);
    expect([held.refusal?.code, memory.bytes, memory.refusedBytes]).toEqual(['service_unavailable', 0, 130 * MIB]);
    // Its response has been sent: its work has not ended.
    held.end();
    expect(memory.refusedBytes).toBe(130 * MIB);
    const other = memory.open('other');
    expect(other.charge(60 * MIB)).toBe(true);
    // The tenant whose refused work holds so much gets no more; the other keeps what it has.
    const next = request();
    expect([next.charge(20 * MIB), other.refusal]).toEqual([false, undefined]);
    gate.resolve();
    await work;
    expect([memory.bytes, memory.refusedBytes]).toEqual([60 * MIB, 0]);
    expect(request().charge(20 * MIB)).toBe(true);
  });

  it('D6-25: a request whose client disconnected stays charged until its work ends, and stops waiting', async () => {
    const { memory, request } = accounts();
    const [working, waiting] = [request(), request()];
    const gate = Promise.withResolvers<void>();
    const work = working.during(() => gate.promise);
    working.charge(MIB);
    const { signal } = waiting;
    for (const held of [working, waiting]) held.end();
    expect([signal.aborted, memory.held(NODE)]).toEqual([true, MIB]);
    gate.resolve();
    await work;
    expect(memory.held(NODE)).toBe(0);
  });

  it('D6-25: requests without a tenant are aborted after the wait limit; requests of a tenant are not', async () => {
    const { memory } = accounts(20);
    const [tenant, unknown] = [memory.open(NODE), memory.open('authentication', '10.0.0.1')];
    expect(tenant.signal.aborted).toBe(false);
    const { signal } = unknown;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    expect(signal.reason).toMatchObject({ code: 'service_unavailable' });
    expect(tenant.signal.aborted).toBe(false);
  });

  /** What happens to requests: each names one of those that are open. */
  const events = fc.array(
    fc.oneof(
      fc.record({
        kind: fc.constant('open' as const),
        key: fc.constantFrom('a', 'b', 'c', 'unidentified'),
        part: fc.constantFrom('', 'x', 'y'),
      }),
      fc.record({ kind: fc.constant('charge' as const), at: fc.nat(), bytes: fc.integer({ min: 1, max: 40 }) }),
      fc.record({ kind: fc.constant('rows' as const), at: fc.nat(), bytes: fc.integer({ min: 1, max: 40 }) }),
      fc.record({ kind: fc.constant('lower' as const), at: fc.nat(), bytes: fc.nat(40) }),
      fc.record({ kind: fc.constant('move' as const), at: fc.nat(), key: fc.constantFrom('a', 'b', 'c', 'webhook') }),
      fc.record({ kind: fc.constant('end' as const), at: fc.nat() }),
    ),
    { maxLength: 120 },
  );

  it('D6-25: after any events accounts match open requests within the total; no account below its guarantee loses one', () => {
    fc.assert(
      fc.property(events, (history) => {
        const memory = new MemoryAccounts(100);
        memory.limits.rowBytes = 1_000;
        const open: HeldMemory[] = [];
        const sumOf = (key?: string) =>
          open
            .filter((held) => !held.refusal && (key === undefined || held.key === key))
            .reduce((sum, { bytes }) => sum + bytes, 0);
        for (const event of history) {
          const held = 'at' in event ? open[event.at % Math.max(1, open.length)] : undefined;
          const wasRefused = new Set(open.filter(({ refusal }) => refusal));
          const before = new Map(open.map((one) => [one.key, sumOf(one.key)]));
          const { guaranteedBytes } = memory;
          if (event.kind === 'open') open.push(memory.open(event.key, event.part));
          else if (!held) continue;
          else if (event.kind === 'charge') held.charge(event.bytes);
          else if (event.kind === 'rows') held.add(event.bytes, false);
          else if (event.kind === 'lower') held.lowerTo(event.bytes);
          else if (event.kind === 'move') held.moveTo(event.key);
          else {
            held.end();
            open.splice(open.indexOf(held), 1);
          }
          expect(memory.bytes).toBe(sumOf());
          expect(memory.bytes).toBeLessThanOrEqual(100);
          for (const key of ['a', 'b', 'c', 'webhook', 'unidentified']) expect(memory.held(key)).toBe(sumOf(key));
          for (const one of open) {
            if (!one.refusal || wasRefused.has(one)) continue;
            const added = 'bytes' in event && one.key === held?.key ? event.bytes : 0;
            expect((before.get(one.key) ?? 0) + added).toBeGreaterThan(guaranteedBytes);
          }
        }
        for (const held of open) held.end();
        expect(memory.bytes).toBe(0);
        expect(memory.summaryOf('tenant')).toEqual({ near: 0, bytes: 0 });
      }),
    );
  });
});

describe('rows held by the requests of a tenant', () => {
  it('D7-13: a request that alone would hold more than 64 MiB is rejected, and starts no further reads', async () => {
    const { memory, request } = accounts();
    const held = request();
    await expect(reader(held, 65).result).rejects.toThrow(expect.objectContaining({ code: 'page_too_large' }));
    const later = reader(held, 1);
    await expect(later.result).rejects.toThrow(expect.objectContaining({ code: 'page_too_large' }));
    expect(later.begun).toBe(0);
    held.end();
    expect(memory.held(NODE)).toBe(0);
    expect(await reader(request(), 64).result).toBe(64);
  });

  it('D7-13: a read over the limit of its tenant is discarded, and repeated once other requests have released rows', async () => {
    const { memory, request } = accounts();
    const [first, second, third] = [request(), request(), request()];
    expect(await reader(first, 40).result).toBe(40);
    // It meets the limit first, and goes on: otherwise requests could wait for each other.
    expect(await reader(second, 30).result).toBe(30);
    const waiting = reader(third, 30);
    await settled();
    expect(waiting.begun).toBe(0);
    expect(memory.held(NODE)).toBe(70 * MIB);
    second.end();
    expect(await waiting.result).toBe(30);
    third.end();
    first.end();
    expect(memory.held(NODE)).toBe(0);
  });

  it('D7-13: small results pass while larger ones fill three quarters of the limit', async () => {
    const { request } = accounts();
    const large = [request(), request(), request()];
    for (const held of large) await reader(held, 17).result;
    const blocked = reader(request(), 8);
    await settled();
    expect(await request().read(async () => 'small')).toBe('small');
    expect(blocked.begun).toBe(1);
    for (const held of large) held.end();
    expect(await blocked.result).toBe(8);
  });

  it('D7-13: what has read little and stays open, as a stream does, does not keep others of its tenant from reading', async () => {
    const { request } = accounts(100);
    const streams = Array.from({ length: 100 }, request);
    for (const held of streams) held.charge(MIB);
    for (const held of streams) expect(await held.read(async () => 'events')).toBe('events');
    const replays = await Promise.all(streams.map((held) => held.read(async () => 'events')));
    expect(new Set(replays)).toEqual(new Set(['events']));
    for (const held of streams) held.end();
  });

  it('D7-13: a read that waits too long is rejected with 503, and one whose request ends is rejected at once', async () => {
    const { memory, request } = accounts(20);
    const first = request();
    await reader(first, 64).result;
    first.charge(MIB);
    await expect(reader(request(), 1).result).rejects.toMatchObject({ code: 'service_unavailable' });
    memory.limits.waitMs = 60_000;
    const left = request();
    const waiting = reader(left, 1);
    await settled();
    left.end();
    await expect(waiting.result).rejects.toMatchObject({ code: 'service_unavailable' });
    first.end();
    expect(memory.held(NODE)).toBe(0);
  });

  it('D7-13: a request whose client disconnected holds its rows until the read ends, and starts no further reads', async () => {
    const { memory, request } = accounts();
    const held = request();
    const gate = Promise.withResolvers<void>();
    const reading = held.read(async () => {
      held.add(10 * MIB, true);
      await gate.promise;
    });
    await settled();
    held.end();
    expect(memory.held(NODE)).toBe(10 * MIB);
    await expect(held.read(async () => 'nested')).rejects.toMatchObject({ code: 'service_unavailable' });
    gate.resolve();
    await reading;
    await expect(held.read(async () => 'nested')).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(memory.held(NODE)).toBe(0);
    held.add(MIB, false);
    expect(memory.held(NODE)).toBe(0);
  });
});
