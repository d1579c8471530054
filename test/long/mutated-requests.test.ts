import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { sendMutatedRequests } from '../support/oauth/mutated-requests.ts';

const REQUESTS = 10_000;

it('7.2-01 7.2-02: 10,000 requests changed at random get no 5xx, and nothing kept has a part of a secret', async () => {
  const seed = randomInt(2 ** 31);
  const { statuses, failed, leaked } = await sendMutatedRequests(REQUESTS, seed);
  process.stdout.write(`seed ${seed}: ${JSON.stringify(Object.fromEntries([...statuses].sort()))}\n`);
  expect({ seed, failed, leaked }).toEqual({ seed, failed: [], leaked: [] });
});
