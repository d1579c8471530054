import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import {
  assetContractAddress,
  emptyState,
  joinNotification,
  joinStates,
  orderKeyOf,
  type TransactionState,
} from '../../../src/features/transactions/join.rules.ts';
import type { Notification } from '../../../src/features/transactions/notification.input.ts';
import { TRANSACTION_COLLECTIONS, type TransactionStatus } from '../../../src/tables/transaction-content.ts';
import { anyNotification, notification } from '../../support/transactions/rules/notifications.ts';

const collection = fc.constantFrom(...TRANSACTION_COLLECTIONS);
const notifications = fc.array(anyNotification, { maxLength: 6 });
/** How many sets of notifications are tried, and in how many orders each. */
const HISTORIES = inject('isThorough') ? 1_000 : 100;
const ORDERS = inject('isThorough') ? 100 : 40;
const RANK = { 1: 1, 2: 2, 5: 3, 3: 4, 4: 4 };

function apply(empty: TransactionState, deliveries: readonly Notification[]): TransactionState {
  return deliveries.reduce((state, next) => joinNotification(state, next).state, empty);
}

/** Every notification at least once, some again, in an order of the generator's. */
function shuffledWithRepeats(set: readonly Notification[], next: () => number): Notification[] {
  const deliveries = [...set, ...set.filter(() => next() < 0.4)];
  for (let end = deliveries.length - 1; end > 0; end -= 1) {
    const pick = Math.floor(next() * (end + 1));
    const [a, b] = [deliveries[end], deliveries[pick]];
    if (a !== undefined && b !== undefined) [deliveries[end], deliveries[pick]] = [b, a];
  }
  return deliveries;
}

/** Numbers from 0 to 1 (mulberry32): cheap, and the same for the same seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe('joining notifications', () => {
  it(`3-03, D6-02, D6-21: ${HISTORIES * ORDERS} orders with repeats end in the same state and effect`, () => {
    const set = fc.array(anyNotification, { minLength: 2, maxLength: 5 });
    const differing = new Set<string>();
    fc.assert(
      fc.property(set, collection, fc.integer(), (given, name, seed) => {
        const empty = emptyState({ collection: name, registeredType: 1 });
        const expected = apply(empty, given);
        const next = generator(seed);
        for (let order = 0; order < ORDERS; order += 1) {
          const state = apply(empty, shuffledWithRepeats(given, next));
          if (!isDeepStrictEqual(state, expected)) expect(state).toEqual(expected);
        }
        if (expected.doneSeen && expected.errorSeen) differing.add('conflict');
        differing.add(assetContractAddress([expected]) === undefined ? 'no effect' : 'effect');
        expect(assetContractAddress([apply(empty, given.toReversed())])).toBe(assetContractAddress([expected]));
      }),
      // One set in thirty has an effect by chance: this one has, and is a conflict too.
      { numRuns: HISTORIES, examples: [[[notification(), notification({ status: 4 })], 'token_transactions', 0]] },
    );
    expect([...differing].sort()).toEqual(['conflict', 'effect', 'no effect']);
  });

  it('3-03: is commutative, associative and idempotent, with the empty state as identity', () => {
    fc.assert(
      fc.property(collection, notifications, notifications, notifications, (name, one, two, three) => {
        const empty = emptyState({ collection: name, registeredType: 1 });
        const [a, b, c] = [apply(empty, one), apply(empty, two), apply(empty, three)];
        expect(joinStates(a, b)).toEqual(joinStates(b, a));
        expect(joinStates(joinStates(a, b), c)).toEqual(joinStates(a, joinStates(b, c)));
        expect(joinStates(a, a)).toEqual(a);
        expect(joinStates(empty, a)).toEqual(a);
        expect(joinStates(a, b)).toEqual(apply(empty, [...one, ...two]));
      }),
      { numRuns: HISTORIES },
    );
  });

  it('3-03: never lowers the rank of the status, and `changed` says whether the state differs', () => {
    const rank = (status: TransactionStatus | null) => (status === null ? 0 : RANK[status]);
    fc.assert(
      fc.property(collection, notifications, anyNotification, (name, before, next) => {
        const state = apply(emptyState({ collection: name, registeredType: 1 }), before);
        const joined = joinNotification(state, next);
        expect(rank(joined.state.status)).toBeGreaterThanOrEqual(rank(state.status));
        expect(joined.state.statusKey >= state.statusKey).toBe(true);
        expect(joined.changed).toBe(!isDeepStrictEqual(joined.state, state));
        expect(joined.previousStatus).toBe(state.status);
      }),
      { numRuns: 2 * HISTORIES },
    );
  });

  it('D6-02, D6-03, D6-04: takes each value from the highest notification that has one', () => {
    fc.assert(
      fc.property(notifications, (given) => {
        const state = apply(emptyState({ collection: 'node_transactions', registeredType: 1 }), given);
        const falling = given.toSorted((a, b) => (orderKeyOf(a) > orderKeyOf(b) ? -1 : 1));
        expect(state.status).toBe(falling[0]?.status ?? null);
        expect(state.type).toBe(falling[0]?.type ?? 1);
        expect(state.error).toBe(falling[0]?.error ?? null);
        expect(state.updatedAt).toEqual(falling[0]?.updatedAt ?? null);
        expect(state.transactionHash).toBe(falling.find((n) => n.transactionHash !== '')?.transactionHash ?? '');
        expect(state.contractAddress).toBe(falling.find((n) => n.contractAddress !== '')?.contractAddress ?? '');
        expect(state.gasUsed).toBe(falling.find((n) => n.gasUsed !== 0n)?.gasUsed ?? 0n);
        expect(state.doneSeen).toBe(given.some((n) => n.status === 3));
        expect(state.errorSeen).toBe(given.some((n) => n.status === 4));
      }),
      { numRuns: HISTORIES },
    );
  });

  it('3-02: ignores PendingReceipt for user_transactions, in any order', () => {
    fc.assert(
      fc.property(notifications, (given) => {
        const empty = emptyState({ collection: 'user_transactions', registeredType: 1 });
        const others = given.filter((n) => n.status !== 5);
        expect(apply(empty, given)).toEqual(apply(empty, others));
      }),
    );
  });
});
