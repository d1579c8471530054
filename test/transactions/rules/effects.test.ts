import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assetContractAddress, emptyState, joinNotification } from '../../../src/features/transactions/join.rules.ts';
import type { Notification } from '../../../src/features/transactions/notification.input.ts';
import { TRANSACTION_COLLECTIONS, type TransactionCollection } from '../../../src/tables/transaction-content.ts';
import { anyNotification, notification, time } from '../../support/transactions/rules/notifications.ts';

function joinOf(notifications: readonly Notification[], collection: TransactionCollection = 'token_transactions') {
  const empty = emptyState({ collection, registeredType: 1 });
  return notifications.reduce((state, next) => joinNotification(state, next).state, empty);
}

const earlier = time('2026-11-21T10:29:59Z');
const later = time('2026-11-21T10:30:01Z');

describe('the effect of one transaction', () => {
  it('D6-08: a Done CreateTokenization gives the asset its contract address', () => {
    expect(assetContractAddress([joinOf([notification()])])).toBe('0xcontract');
  });

  it('D6-08: the address may be in another notification than the Done, before or after it', () => {
    const bare = notification({ contractAddress: '' });
    const pending = notification({ status: 5, contractAddress: '0xpending' });
    for (const order of [
      [bare, pending],
      [pending, bare],
    ]) {
      expect(assetContractAddress([joinOf(order)])).toBe('0xpending');
    }
  });

  it('D6-21: an Error does not undo the effect of a Done, in either order', () => {
    const failed = notification({ status: 4, updatedAt: later, contractAddress: '' });
    for (const order of [
      [notification(), failed],
      [failed, notification()],
    ]) {
      expect(assetContractAddress([joinOf(order)])).toBe('0xcontract');
    }
  });

  it.each<[string, readonly Notification[]]>([
    ['no notification', []],
    ['Started', [notification({ status: 1 })]],
    ['InProgress', [notification({ status: 2 })]],
    ['PendingReceipt', [notification({ status: 5 })]],
    ['Error', [notification({ status: 4 })]],
    ['a Done without an address', [notification({ contractAddress: '' })]],
    ['the Done of a Burn', [notification({ type: 2 })]],
    [
      'a Done whose highest notification is of another type',
      [notification(), notification({ type: 2, updatedAt: later })],
    ],
  ])('D6-08: %s has no effect', (_, notifications) =>
    expect(assetContractAddress([joinOf(notifications)])).toBeUndefined(),
  );

  it.each(TRANSACTION_COLLECTIONS.filter((name) => name !== 'token_transactions'))(
    'D6-08: type 1 of %s is not CreateTokenization',
    (collection) => expect(assetContractAddress([joinOf([notification()], collection)])).toBeUndefined(),
  );
});

describe('the contract address of an asset', () => {
  it('D6-08: comes from the transaction with the highest order key', () => {
    const first = joinOf([notification({ contractAddress: '0xfirst', updatedAt: earlier })]);
    const second = joinOf([notification({ contractAddress: '0xsecond' })]);
    const third = joinOf([notification({ contractAddress: '0xthird', status: 5, updatedAt: later })]);
    expect(assetContractAddress([first, second, third])).toBe('0xsecond');
    expect(assetContractAddress([third, second, first])).toBe('0xsecond');
    expect(assetContractAddress([third])).toBeUndefined();
  });

  it('D6-21: comes from the highest notification with an address, if transactions are otherwise equal', () => {
    const done = notification({ contractAddress: '' });
    const low = joinOf([done, notification({ status: 2, contractAddress: '0xlow', updatedAt: earlier })]);
    const high = joinOf([done, notification({ status: 2, contractAddress: '0xhigh', updatedAt: later })]);
    expect([assetContractAddress([low, high]), assetContractAddress([high, low])]).toEqual(['0xhigh', '0xhigh']);
  });

  it('D6-21: is the same for any order of the notifications of several transactions', () => {
    const ids = ['tx-1', 'tx-2', 'tx-3'];
    const delivery = fc.record({ id: fc.constantFrom(...ids), told: anyNotification });
    const orders = fc
      .array(delivery, { maxLength: 8 })
      .chain((given) =>
        fc.tuple(
          fc.constant(given),
          fc.shuffledSubarray([...given, ...given], { minLength: given.length * 2 }),
          fc.shuffledSubarray(ids, { minLength: 3 }),
        ),
      );
    const address = (deliveries: readonly { id: string; told: Notification }[], transactions: readonly string[]) =>
      assetContractAddress(
        transactions.map((id) => joinOf(deliveries.filter((one) => one.id === id).map(({ told }) => told))),
      );
    fc.assert(
      fc.property(orders, ([given, shuffled, transactions]) => {
        expect(address(shuffled, transactions)).toBe(address(given, ids));
      }),
      { numRuns: 2_000 },
    );
  });
});
