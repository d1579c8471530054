import { expect, inject, it } from 'vitest';
import { compareRecords } from './audit-oracle.ts';

const SEED = 20_261_123;
const OPERATIONS = inject('isThorough') ? 500 : 100;

it(`D2-21: no secret of ${OPERATIONS} operations is in a record or the log, and no record shows what the first masker masked`, async () => {
  const { faults, valid, invalid, masked } = await compareRecords(OPERATIONS, SEED);
  expect(faults).toEqual([]);
  for (const count of [valid, invalid, masked]) expect(count).toBeGreaterThan(OPERATIONS / 4);
}, 300_000);
