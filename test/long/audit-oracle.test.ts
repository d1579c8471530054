import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { compareRecords } from '../graphql/audit-oracle.ts';

const AT_MOST_MS = 3_600_000;

it(
  'D2-21: no secret of 100,000 operations is in a record or the log, and no record shows what the first masker masked',
  async () => {
    const seed = randomInt(2 ** 31);
    const { faults, ...counts } = await compareRecords(100_000, seed);
    process.stdout.write(`seed ${seed}: ${JSON.stringify(counts)}\n`);
    expect({ seed, faults }).toEqual({ seed, faults: [] });
  },
  AT_MOST_MS,
);
