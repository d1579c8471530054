import { expect, it } from 'vitest';
import { compareRecords } from './audit-oracle.ts';

const SEED = 20_261_123;

it('D2-21: no secret of 500 operations is in a record or the log, and no record shows what the first masker masked', async () => {
  const { faults, valid, invalid, masked } = await compareRecords(500, SEED);
  expect(faults).toEqual([]);
  for (const count of [valid, invalid, masked]) expect(count).toBeGreaterThan(125);
}, 300_000);
