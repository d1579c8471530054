import { expect, inject, it } from 'vitest';
import { sendMutatedRequests } from '../support/oauth/mutated-requests.ts';

const REQUESTS = inject('isThorough') ? 400 : 160;

it('7.2-01 7.2-02: requests changed at random get no 5xx, and nothing kept has a part of a secret', async () => {
  const { statuses, failed, leaked } = await sendMutatedRequests(REQUESTS, 20_261_121);
  expect(failed).toEqual([]);
  expect(leaked).toEqual([]);
  expect([200, 400, 401].every((status) => (statuses.get(status) ?? 0) > 5)).toBe(true);
});
