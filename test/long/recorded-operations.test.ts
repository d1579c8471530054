import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { checkRecords } from '../support/graphql/recorded-operations.ts';

const AT_MOST_MS = 3_600_000;

it(
  'D2-21: the records of 100,000 operations and the log show no secret, and of valid operations all else',
  async () => {
    const seed = randomInt(2 ** 31);
    const { faults, ...counts } = await checkRecords(100_000, seed);
    process.stdout.write(`seed ${seed}: ${JSON.stringify(counts)}\n`);
    expect({ seed, faults }).toEqual({ seed, faults: [] });
  },
  AT_MOST_MS,
);
