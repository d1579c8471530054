import { expect, it, vi } from 'vitest';
import type { GasPrices } from '../../src/features/gas-fee/fee-history.rules.ts';
import { GasFees } from '../../src/features/gas-fee/gas-fee.service.ts';
import { silentLog } from '../../src/lib/log.ts';

const PRICES: GasPrices = {
  chainId: 1,
  baseFee: '10',
  priorityFee: { slow: '1', standard: '2', fast: '3' },
  gasPrice: '12',
  blockNumber: 7,
};

/** A network that answers when it is told to, and a clock that stands. */
function fixture(count = 1) {
  const clock = { nowMs: 1_000_000 };
  const sources = Array.from({ length: count }, () => {
    const asked: PromiseWithResolvers<GasPrices>[] = [];
    const gasPrices = () => {
      const question = Promise.withResolvers<GasPrices>();
      asked.push(question);
      return question.promise;
    };
    return { asked, gasPrices };
  });
  const byId = new Map(sources.map((source, index) => [`network-${index}`, source]));
  const fees = new GasFees({ sources: byId, nowMs: () => clock.nowMs, log: silentLog });
  const [first] = sources;
  if (!first) throw new Error('there is one');
  return { fees, clock, first, sources };
}

const soon = () => new Promise((resolve) => setImmediate(resolve));

it('4.9-05 D8-03: 1,000 concurrent calls request a network once', async () => {
  const { fees, first } = fixture();
  const lists = Array.from({ length: 1_000 }, () => fees.list());
  expect(first.asked).toHaveLength(1);
  first.asked[0]?.resolve(PRICES);
  for (const list of await Promise.all(lists))
    expect(list).toEqual([{ networkId: 'network-0', ...PRICES, updatedAtMs: 1_000_000 }]);
  await fees.list();
  expect(first.asked).toHaveLength(1);
});

it('4.9-05 D8-03: after 5 s the known price is returned while it is refreshed, and after a minute it is not', async () => {
  const { fees, clock, first } = fixture();
  const list = fees.list();
  first.asked[0]?.resolve(PRICES);
  await list;
  clock.nowMs += 4_999;
  await fees.list();
  expect(first.asked).toHaveLength(1);
  clock.nowMs += 1;
  expect(await fees.list()).toMatchObject([{ blockNumber: 7 }]);
  expect(await fees.list()).toMatchObject([{ blockNumber: 7 }]);
  expect(first.asked).toHaveLength(2);
  first.asked[1]?.resolve({ ...PRICES, blockNumber: 8 });
  await soon();
  expect(await fees.list()).toMatchObject([{ blockNumber: 8 }]);
  clock.nowMs += 60_000;
  const shown = vi.fn();
  const waiting = fees.list().then(shown);
  await soon();
  expect(shown).not.toHaveBeenCalled();
  first.asked[2]?.resolve({ ...PRICES, blockNumber: 9 });
  await waiting;
  expect(shown).toHaveBeenCalledWith([expect.objectContaining({ blockNumber: 9 })]);
});

it('4.9-05 D8-03: a network that fails is unavailable for 5 s, and others are not affected', async () => {
  const { fees, clock, sources } = fixture(2);
  const list = fees.list();
  sources[0]?.asked[0]?.reject(new Error('gone'));
  sources[1]?.asked[0]?.resolve(PRICES);
  expect(await list).toEqual([
    { networkId: 'network-0', error: 'unavailable' },
    { networkId: 'network-1', ...PRICES, updatedAtMs: clock.nowMs },
  ]);
  expect(await fees.list()).toMatchObject([{ error: 'unavailable' }, { blockNumber: 7 }]);
  expect(sources[0]?.asked).toHaveLength(1);
  clock.nowMs += 5_000;
  const again = fees.list();
  sources[0]?.asked[1]?.resolve(PRICES);
  expect((await again)[0]).toMatchObject({ blockNumber: 7 });
});

it('4.9-05 D8-03: an outage is not returned after its 5 s: the next caller waits for a new response', async () => {
  const { fees, clock, first } = fixture();
  const list = fees.list();
  first.asked[0]?.reject(new Error('gone'));
  expect(await list).toMatchObject([{ error: 'unavailable' }]);
  clock.nowMs += 5_000;
  const again = fees.list();
  first.asked[1]?.resolve(PRICES);
  expect(await again).toMatchObject([{ blockNumber: 7 }]);
});

it('4.9-05 D8-03: after the clock was set back, known prices count as stale', async () => {
  const { fees, clock, first } = fixture();
  const list = fees.list();
  first.asked[0]?.resolve(PRICES);
  await list;
  clock.nowMs -= 3_600_000;
  expect(fees.states()).toMatchObject({ fresh: 0, stale: 1 });
  const again = fees.list();
  expect(first.asked).toHaveLength(2);
  first.asked[1]?.resolve({ ...PRICES, blockNumber: 8 });
  expect(await again).toMatchObject([{ blockNumber: 8 }]);
});

it('a failure is reported for a minute, and then the fee counts as not requested until the next call', async () => {
  const { fees, clock, first } = fixture();
  const list = fees.list();
  first.asked[0]?.reject(new Error('down'));
  await list;
  clock.nowMs += 59_999;
  expect(fees.states()).toMatchObject({ unavailable: 1, unasked: 0 });
  clock.nowMs += 1;
  expect(fees.states()).toMatchObject({ unavailable: 0, unasked: 1 });
});
