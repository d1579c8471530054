import { describe, expect, it } from 'vitest';
import { type HeldResults, ResultBudgets } from '../../src/platform/database/held-results.ts';

const MIB = 1024 * 1024;
const NODE = 'node';

function budgets(waitMs = 10_000) {
  const results = new ResultBudgets();
  Object.assign(results.limits, { maxBytes: 64 * MIB, waitMs });
  return { results, request: (nodeId = NODE) => results.begin(() => nodeId) };
}

/** A read of so many rows of a mebibyte, as a connection gives them; it counts how often it is begun. */
function reader(held: HeldResults, rows: number) {
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

describe('the results that the requests of a tenant hold', () => {
  it('D7-13: a request that alone would hold more than 64 MiB is refused, and none of its further reads begins', async () => {
    const { results, request } = budgets();
    const held = request();
    await expect(reader(held, 65).result).rejects.toThrow(expect.objectContaining({ code: 'page_too_large' }));
    const later = reader(held, 1);
    await expect(later.result).rejects.toThrow(expect.objectContaining({ code: 'page_too_large' }));
    expect(later.begun).toBe(0);
    held.end();
    expect(results.held(NODE)).toBe(0);
    expect(await reader(request(), 64).result).toBe(64);
  });

  it('D7-13: a read that meets what others hold is given up and repeated once they have ended', async () => {
    const { results, request } = budgets();
    const [first, second, third] = [request(), request(), request()];
    expect(await reader(first, 40).result).toBe(40);
    // It meets the limit first, and goes on: otherwise requests could wait for each other.
    expect(await reader(second, 30).result).toBe(30);
    const waiting = reader(third, 30);
    await settled();
    expect(waiting.begun).toBe(0);
    expect(results.held(NODE)).toBe(70 * MIB);
    second.end();
    expect(await waiting.result).toBe(30);
    third.end();
    first.end();
    expect(results.held(NODE)).toBe(0);
  });

  it('D7-13: small results are let through while larger ones fill three quarters of the limit', async () => {
    const { request } = budgets();
    const large = [request(), request(), request()];
    for (const held of large) await reader(held, 17).result;
    const blocked = reader(request(), 8);
    await settled();
    expect(await request().read(async () => 'small')).toBe('small');
    expect(blocked.begun).toBe(1);
    for (const held of large) held.end();
    expect(await blocked.result).toBe(8);
  });

  it('D7-13: what waits for too long is refused with 503, and what ends while it waits at once', async () => {
    const { results, request } = budgets(20);
    const first = request();
    await reader(first, 64).result;
    await expect(reader(request(), 1).result).rejects.toMatchObject({ code: 'service_unavailable' });
    Object.assign(results.limits, { waitMs: 60_000 });
    const left = request();
    const waiting = reader(left, 1);
    await settled();
    left.end();
    await expect(waiting.result).rejects.toMatchObject({ code: 'service_unavailable' });
    first.end();
    expect(results.held(NODE)).toBe(0);
  });

  it('D7-13: a request whose client has left holds what it reads until that has ended, and reads nothing more', async () => {
    const { results, request } = budgets();
    const held = request();
    const gate = Promise.withResolvers<void>();
    const reading = held.read(async () => {
      held.add(10 * MIB, true);
      await gate.promise;
    });
    await settled();
    held.end();
    expect(results.held(NODE)).toBe(10 * MIB);
    await expect(held.read(async () => 'nested')).rejects.toMatchObject({ code: 'service_unavailable' });
    gate.resolve();
    await reading;
    await expect(held.read(async () => 'nested')).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(results.held(NODE)).toBe(0);
    held.add(MIB, false);
    expect(results.held(NODE)).toBe(0);
  });
});
