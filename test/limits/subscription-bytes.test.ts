import { parse } from 'graphql';
import { expect, it } from 'vitest';
import { subscriptionBytes } from '../../src/api/graphql/execution/engine.ts';
import { MemoryAccounts, REQUEST_BYTES, totalBytesOf } from '../../src/platform/held-memory.ts';
import { HEAPS } from '../support/limits/heaps.ts';

const SMALL =
  'subscription ($after: String) { transactionUpdates(after: $after) { cursor correlationId transaction { id status } } }';
/** What a head with a token of usual length and the small body are charged. */
const HEAD_AND_BODY_BYTES = 2_800;

it.each(Object.entries(HEAPS))(
  'D6-25: 10,000 subscriptions of one small document fit the heap of %s',
  (_what, mebibytes) => {
    const memory = new MemoryAccounts(totalBytesOf(mebibytes * 1024 * 1024));
    const bytes =
      REQUEST_BYTES + HEAD_AND_BODY_BYTES + subscriptionBytes({ document: parse(SMALL), rawVariableValues: {} });
    const open = Array.from({ length: 10_000 }, () => memory.open('node'));
    expect(open.every((held) => held.charge(bytes))).toBe(true);
  },
);

it('D6-25: a subscription is charged for the tokens and the text of its document, and for its variables', () => {
  const bytes = (query: string, rawVariableValues = {}) =>
    subscriptionBytes({ document: parse(query), rawVariableValues });
  const fields = (count: number) => `subscription { transactionUpdates { ${'cursor '.repeat(count)} } }`;
  expect(bytes(fields(400)) - bytes(fields(200))).toBeGreaterThan(200 * 280);
  expect(bytes(`${SMALL} # ${'表'.repeat(1_000)}`) - bytes(SMALL)).toBeGreaterThan(3 * 2_000);
  expect(bytes(SMALL, { after: 'x'.repeat(1_000) }) - bytes(SMALL, { after: '' })).toBeGreaterThanOrEqual(3 * 1_000);
  // A short one holds nearly as much as one of some fields.
  expect(bytes('subscription { transactionUpdates { cursor } }')).toBeGreaterThan(bytes(SMALL) - 1_000);
});
