import fc from 'fast-check';
import type { Notification, ReceivedTime } from '../../../../src/features/transactions/notification.input.ts';
import { parseInstant } from '../../../../src/lib/instants.ts';
import type { TransactionStatus } from '../../../../src/tables/transaction-content.ts';

export function time(text: string): ReceivedTime {
  const instant = parseInstant(text);
  if (instant === undefined) throw new Error(`no time: ${text}`);
  return { text, ...instant };
}

/** A Done at half past ten, with whatever the test says otherwise. */
export function notification(change: Partial<Notification> = {}): Notification {
  return {
    id: 'tx-1',
    type: 1,
    status: 3,
    transactionHash: '0xhash',
    contractAddress: '0xcontract',
    gasUsed: 21_000n,
    error: null,
    createdAt: time('2026-11-21T10:30:00Z'),
    updatedAt: time('2026-11-21T10:30:00Z'),
    ...change,
  };
}

// Two spellings of one instant, so that the known texts decide too.
const times = [
  '0001-01-01T00:00:00Z',
  '2026-11-21T10:30:00Z',
  '2026-11-21T11:30:00+01:00',
  '2026-11-21T10:30:00.000000001Z',
];

/** Notifications of one transaction out of tiny domains, so that ties on every member are frequent. */
export const anyNotification: fc.Arbitrary<Notification> = fc.record({
  id: fc.constant('tx-1'),
  type: fc.constantFrom(1, 2),
  status: fc.constantFrom<TransactionStatus>(1, 2, 3, 4, 5),
  transactionHash: fc.constantFrom('', '0x1', '0x12'),
  contractAddress: fc.constantFrom('', 'a', 'b'),
  gasUsed: fc.constantFrom(0n, 1n, 2n ** 64n - 1n),
  error: fc.constantFrom(null, '', 'reverted'),
  createdAt: fc.constantFrom(...times).map(time),
  updatedAt: fc.constantFrom(...times).map(time),
});
