import { describe, expect, it } from 'vitest';
import { emptyState, hasConflict, joinNotification } from '../../../src/features/transactions/join.rules.ts';
import type { Notification } from '../../../src/features/transactions/notification.input.ts';
import type { TransactionCollection } from '../../../src/tables/transaction-content.ts';
import { notification, time } from '../../support/transactions/rules/notifications.ts';

function joinOf(notifications: readonly Notification[], collection: TransactionCollection = 'token_transactions') {
  const empty = emptyState({ collection, registeredType: 7 });
  return notifications.reduce((state, next) => joinNotification(state, next).state, empty);
}

const earlier = time('2026-11-21T10:29:59Z');
const later = time('2026-11-21T10:30:01Z');

describe('the state of a transaction', () => {
  it('D6-13: before any notification the status is null and the type is the registered one', () => {
    expect(joinOf([])).toMatchObject({
      status: null,
      type: 7,
      transactionHash: '',
      contractAddress: '',
      gasUsed: 0n,
      error: null,
    });
  });

  it('3-04: a notification sets status, hash, error, type and times', () => {
    const given = notification({ status: 4, error: 'reverted', type: 2, updatedAt: later });
    const { id: _, ...members } = given;
    expect(joinOf([given])).toMatchObject({ ...members, registeredType: 7 });
  });

  it('3-03: an InProgress after a Done does not change Done', () => {
    expect(joinOf([notification(), notification({ status: 2, updatedAt: later })]).status).toBe(3);
  });

  it('D6-03: hash, contract and gas come from the highest notification that has a value', () => {
    const none = { transactionHash: '', contractAddress: '', gasUsed: 0n };
    const state = joinOf([
      notification({ ...none, status: 3 }),
      notification({ ...none, status: 5, transactionHash: '0xpending' }),
      notification({ ...none, status: 2, transactionHash: '0xprogress', contractAddress: '0xprogress' }),
      notification({ ...none, status: 2, contractAddress: '0xearlier', updatedAt: earlier }),
      notification({ ...none, status: 1, gasUsed: 1n }),
    ]);
    expect(state).toMatchObject({
      status: 3,
      transactionHash: '0xpending',
      contractAddress: '0xprogress',
      gasUsed: 1n,
    });
  });

  it('D6-03: status, error and type come from the highest notification, which can also clear an error', () => {
    const state = joinOf([
      notification({ status: 4, error: 'reverted', type: 2 }),
      notification({ status: 3, error: null, type: 1, updatedAt: later }),
    ]);
    expect(state).toMatchObject({ status: 3, error: null, type: 1 });
  });

  it.each<[string, readonly Notification[], boolean]>([
    ['Done alone', [notification()], false],
    ['Error alone', [notification({ status: 4 })], false],
    ['Done, then Error', [notification(), notification({ status: 4, updatedAt: later })], true],
    ['Done, then an earlier Error', [notification(), notification({ status: 4, updatedAt: earlier })], true],
    ['Error, then Done', [notification({ status: 4 }), notification({ updatedAt: later })], true],
  ])('D6-04: whether there is a conflict after %s', (_, notifications, conflict) => {
    expect(hasConflict(joinOf(notifications))).toBe(conflict);
  });

  it('D6-05, 3-02: a PendingReceipt for user_transactions changes nothing, whatever it contains', () => {
    const pending = notification({ status: 5, updatedAt: later, transactionHash: '0xpending', gasUsed: 9n });
    const state = joinOf([notification({ status: 1 })], 'user_transactions');
    expect(joinNotification(state, pending)).toEqual({ state, changed: false, visible: false, previousStatus: 1 });
    expect(joinOf([notification({ status: 1 }), pending], 'otc_transactions').status).toBe(5);
  });
});

describe('the result of applying a notification', () => {
  it('D6-02: a repeat changes nothing and returns the same object', () => {
    const state = joinOf([notification({ status: 2 }), notification()]);
    for (const repeat of [notification({ status: 2 }), notification()]) {
      const joined = joinNotification(state, repeat);
      expect(joined).toEqual({ state, changed: false, visible: false, previousStatus: 3 });
      expect(joined.state).toBe(state);
    }
  });

  it('3-03: a higher status is a visible change and names the previous status', () => {
    const first = joinNotification(joinOf([]), notification({ status: 1 }));
    expect(first).toMatchObject({ changed: true, visible: true, previousStatus: null });
    expect(joinNotification(first.state, notification())).toMatchObject({
      changed: true,
      visible: true,
      previousStatus: 1,
    });
  });

  it('D6-03: a late notification that adds a hash is a visible change with the same status', () => {
    const state = joinOf([notification({ transactionHash: '' })]);
    const joined = joinNotification(state, notification({ status: 2, transactionHash: '0xlate' }));
    expect(joined).toMatchObject({
      changed: true,
      visible: true,
      previousStatus: 3,
      state: { status: 3, transactionHash: '0xlate' },
    });
  });

  it('D6-03: a higher notification with the same values changes the state, but not visibly', () => {
    const state = joinOf([notification({ transactionHash: '' }), notification({ status: 1 })]);
    const joined = joinNotification(state, notification({ status: 2 }));
    expect(joined).toMatchObject({ changed: true, visible: false });
  });

  it('D6-04: an Error that causes a conflict is a visible change, though the status remains Done', () => {
    const joined = joinNotification(joinOf([notification()]), notification({ status: 4, updatedAt: earlier }));
    expect(joined).toMatchObject({ changed: true, visible: true, state: { status: 3 } });
  });
});
