import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareKeys, NO_KEY, orderKeyOf } from '../../../src/features/transactions/join.rules.ts';
import type { Notification } from '../../../src/features/transactions/notification.input.ts';
import { compareInstants } from '../../../src/lib/instants.ts';
import { anyNotification, notification, time } from '../../support/transactions/rules/notifications.ts';

const RANK = { 1: 1, 2: 2, 5: 3, 3: 4, 4: 4 };

/** The order in words of its own: members of the key from the first to the last. */
function compareByMembers(a: Notification, b: Notification): number {
  return (
    RANK[a.status] - RANK[b.status] ||
    compareInstants(a.updatedAt, b.updatedAt) ||
    compareInstants(a.createdAt, b.createdAt) ||
    Number(a.status === 3) - Number(b.status === 3) ||
    a.type - b.type ||
    compareTexts(a.transactionHash, b.transactionHash) ||
    compareTexts(a.contractAddress, b.contractAddress) ||
    Number(a.gasUsed > b.gasUsed) - Number(a.gasUsed < b.gasUsed) ||
    Number(a.error !== null) - Number(b.error !== null) ||
    compareTexts(a.error ?? '', b.error ?? '') ||
    compareTexts(a.createdAt.text, b.createdAt.text) ||
    compareTexts(a.updatedAt.text, b.updatedAt.text)
  );
}

function compareTexts(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

describe('the order key', () => {
  it('D6-02: keys are ordered by rank, updated_at, created_at, Done above Error, then the remaining members', () => {
    const text = fc.oneof(
      fc.constantFrom('', '\u0001', 'a', 'a\u0001', 'aa', '\uFFFD', '𝄞'),
      fc.string({ unit: 'grapheme' }),
    );
    const wide = fc.tuple(anyNotification, fc.integer(), text, text, fc.bigInt(0n, 2n ** 64n - 1n), fc.option(text));
    const any = fc.oneof(
      anyNotification,
      wide.map(([base, type, transactionHash, contractAddress, gasUsed, error]) => ({
        ...base,
        type,
        transactionHash: transactionHash.replaceAll('\0', ''),
        contractAddress: contractAddress.replaceAll('\0', ''),
        gasUsed,
        error: error?.replaceAll('\0', '') ?? null,
      })),
    );
    fc.assert(
      fc.property(any, any, (a, b) => {
        expect(Math.sign(compareKeys(orderKeyOf(a), orderKeyOf(b)))).toBe(Math.sign(compareByMembers(a, b)));
        expect(compareKeys(NO_KEY, orderKeyOf(a))).toBe(-1);
      }),
      { numRuns: 5_000 },
    );
  });

  const later = time('2026-11-21T10:30:00.000000001Z');
  const zero = time('0001-01-01T00:00:00Z');
  it.each<[string, Partial<Notification>, Partial<Notification>]>([
    ['InProgress above a later Started', { status: 2 }, { status: 1, updatedAt: later }],
    ['Done above a later PendingReceipt', { status: 3, updatedAt: zero }, { status: 5 }],
    ['a later Error above Done', { status: 4, updatedAt: later }, { status: 3 }],
    ['Done above Error of the same times', { status: 3, type: 1 }, { status: 4, type: 2 }],
    ['time by instant, not by text', { updatedAt: later }, { updatedAt: time('2026-11-21T11:30:00+01:00') }],
    ['a text above its own prefix', { transactionHash: 'ab', contractAddress: '' }, { transactionHash: 'a' }],
    ['any error text above none', { error: '' }, { error: null }],
  ])('D6-02: the order is: %s', (_, higher, lower) => {
    expect(orderKeyOf(notification(higher)) > orderKeyOf(notification(lower))).toBe(true);
  });
});
