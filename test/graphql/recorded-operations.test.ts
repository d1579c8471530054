import { expect, inject, it } from 'vitest';
import { checkRecords } from '../support/graphql/recorded-operations.ts';

const SEED = 20_261_123;
const OPERATIONS = inject('isThorough') ? 500 : 100;

it(`D2-21: the records of ${OPERATIONS} operations and the log show no secret, and of valid operations all else`, async () => {
  const { faults, valid, invalid, masked } = await checkRecords(OPERATIONS, SEED);
  expect(faults).toEqual([]);
  for (const count of [valid, invalid, masked]) expect(count).toBeGreaterThan(OPERATIONS / 4);
}, 300_000);
