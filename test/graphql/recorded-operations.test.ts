import { randomInt } from 'node:crypto';
import { expect, inject, it } from 'vitest';
import { checkRecords } from '../support/graphql/recorded-operations.ts';

const [OPERATIONS, SEED] = inject('isThorough') ? [100_000, randomInt(2 ** 31)] : [100, 20_261_123];

it(`D2-21: the records of ${OPERATIONS} operations and the log show no secret, and everything else of valid operations`, async () => {
  const { faults, valid, masked } = await checkRecords(OPERATIONS, SEED);
  expect({ seed: SEED, faults }).toEqual({ seed: SEED, faults: [] });
  for (const count of [valid, masked]) expect(count).toBeGreaterThan(OPERATIONS / 4);
}, 3_600_000);
