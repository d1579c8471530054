import { Counter } from 'prom-client';
import { appendEvents, type NewEvent, removeEventsOf } from '../../events/streams/event-log.ts';
import type { Db } from '../../platform/database/database.ts';
import { notFound, Refusal } from '../../platform/errors.ts';
import { TRANSACTION_COLLECTIONS, type TransactionSnapshot } from '../../tables/transaction-content.ts';
import { settleAssets } from './asset-settlement.service.ts';
import {
  compareKeys,
  emptyState,
  hasConflict,
  joinNotification,
  orderKeyOf,
  snapshotOf,
  type TransactionState,
} from './join.rules.ts';
import { type Delivery, type NewTransaction, type ParsedDelivery, parseDelivery } from './notification.input.ts';
import {
  LookupStore,
  type RegisteredTransaction,
  type RegistrationRow,
  registeredOfRow,
  type TransactionRow,
  TransactionStore,
} from './transactions.store.ts';
import { collectionsOf, otherTopic, type TransactionTopic, topicOf, typeFlagged } from './type-codes.rules.ts';

const REGISTRATION_OFF = {
  permission: 'transactions:write',
  message: 'registration by mutation is off: the owner of the transaction must register it first',
};
const ID_TAKEN = { taken: 'duplicate_id', message: 'the id is already registered' } as const;

/**
 * Maintains the mirror, the local copy of transactions: applies notifications to registered transactions and parks
 * notifications of unknown ids.
 */
export class Transactions {
  /**
   * The counter of applied notifications with a type that their collection does not know; to be registered with the
   * metrics of the process.
   */
  readonly flagged = new Counter<'collection'>({
    name: 'portcullis_transactions_flagged_total',
    help: 'Applied notifications whose type is unknown in their collection.',
    labelNames: ['collection'],
    registers: [],
  });
  readonly #deps;
  readonly #store: TransactionStore;
  readonly #lookups: LookupStore;

  constructor(deps: {
    db: Db;
    /** Called after a commit; `seq` is the last sequence number in the tenant's event log. */
    wake(nodeId: string, seq: bigint): void;
    /** Called when a transaction has both Done and Error, which an operator must resolve. */
    conflicted?(transactionId: string): void;
    /** Called when the owner has moved a transaction that a mutation had registered to another tenant. */
    moved?(transactionId: string): void;
    /** Whether `registerByMutation` accepts ids that the owner has not registered; true by default. */
    registersByMutation?: boolean;
  }) {
    this.#deps = deps;
    for (const collection of TRANSACTION_COLLECTIONS) this.flagged.inc({ collection }, 0);
    this.#store = new TransactionStore(deps.db);
    this.#lookups = new LookupStore(deps.db);
  }

  /**
   * Applies a batch of one topic's notifications in one database transaction. Repeats change nothing, and a batch that
   * fails leaves no trace. Returns whether any concerns this topic.
   * @throws PoisonError when a message is not a notification.
   */
  async applyBatch(topic: TransactionTopic, deliveries: readonly Delivery[]): Promise<boolean> {
    const parsedDeliveries = deliveries.map(parseDelivery);
    // The consumer group of the other topic applies these; leaving them out here avoids waiting for its locks.
    const otherTopicIds = await this.#store.idsOwnedByOtherTopic(
      collectionsOf(otherTopic(topic)),
      parsedDeliveries.map(({ notification }) => notification.id),
    );
    const ownDeliveries = parsedDeliveries.filter(({ notification }) => !otherTopicIds.has(notification.id));
    if (ownDeliveries.length === 0) return false;
    const ids = [...new Set(ownDeliveries.map(({ notification }) => notification.id))];
    await this.#committing(async () => {
      await this.#store.lockIds(ids);
      const known = await this.#store.load(ids);
      const applicable: ParsedDelivery[] = [];
      const parked: ParsedDelivery[] = [];
      for (const delivery of ownDeliveries) {
        const transaction = known.get(delivery.notification.id);
        if (transaction && isOfTopic(transaction, topic)) applicable.push(delivery);
        // Its id is unknown, or its registration by mutation can still change and it would change the state.
        else if (
          !transaction ||
          (transaction.isProvisional && joinNotification(transaction.state, delivery.notification).changed)
        )
          parked.push(delivery);
      }
      await this.#store.park(parked);
      await this.#lookups.add(ids.filter((id) => !known.has(id)));
      const provisional = known
        .values()
        .filter((transaction) => transaction.isProvisional && isOfTopic(transaction, topic));
      return this.#apply(known, [...applicable, ...(await this.#takeParked([...provisional]))]);
    });
    return true;
  }

  /**
   * Registers a transaction for its tenant and applies its parked notifications. Repeating a registration returns
   * `registered`; `duplicate` means that the id exists with another tenant, collection or type.
   */
  async register(transaction: NewTransaction): Promise<'registered' | 'duplicate'> {
    let outcome: 'registered' | 'duplicate' = 'registered';
    await this.#committing(async () => {
      await this.#store.lockIds([transaction.id]);
      const existing = (await this.#store.load([transaction.id])).get(transaction.id);
      if (!existing) return this.#insert([transaction], 'mutation');
      outcome = isSame(existing, transaction) ? 'registered' : 'duplicate';
      return new Map();
    });
    return outcome;
  }

  /**
   * Registers a transaction for a caller with an access token of the tenant, and returns its current state.
   * @throws Refusal `duplicate` when the id exists with another tenant, collection or type; `forbidden` when
   * registration by mutation is off and the id is not registered; `not_found` when the owner moves it to another tenant
   * meanwhile.
   */
  async registerByMutation(transaction: NewTransaction): Promise<TransactionSnapshot> {
    const { registersByMutation = true } = this.#deps;
    if (registersByMutation && (await this.register(transaction)) === 'duplicate')
      throw new Refusal('duplicate', ID_TAKEN);
    const storedTransaction = (await this.#store.load([transaction.id])).get(transaction.id);
    if (!registersByMutation) {
      if (!storedTransaction) throw new Refusal('forbidden', REGISTRATION_OFF);
      if (!isSame(storedTransaction, transaction)) throw new Refusal('duplicate', ID_TAKEN);
    }
    if (storedTransaction?.nodeId !== transaction.nodeId) throw notFound();
    return snapshotOf(storedTransaction.id, storedTransaction.state);
  }

  /**
   * Registers a transaction as the owner states it, which outranks a registration by mutation: the row moves to the
   * owner's tenant, and the events under the old tenant are removed.
   */
  registerByOwner(transaction: NewTransaction): Promise<void> {
    return this.registerAllByOwner([transaction]);
  }

  /**
   * Does the same as `registerByOwner` for a batch. New ids are inserted in one transaction; each registration by
   * mutation is replaced in a separate transaction, since it writes to the event logs of two tenants. The first
   * registration of an id counts.
   */
  async registerAllByOwner(transactions: readonly NewTransaction[]): Promise<void> {
    const byId = new Map(transactions.toReversed().map((transaction) => [transaction.id, transaction]));
    const ids = [...byId.keys()];
    let registered: TransactionRow[] = [];
    await this.#committing(async () => {
      await this.#store.lockIds(ids);
      registered = await this.#store.rows(ids);
      const known = new Set(registered.map(({ id }) => id));
      return this.#insert(
        [...byId.values()].filter(({ id }) => !known.has(id)),
        'topic',
      );
    });
    for (const { id, registered_by } of registered) {
      const transaction = byId.get(id);
      if (transaction && registered_by !== 'topic') await this.#outrank(transaction);
    }
  }

  /** Replaces a registration by mutation with the owner's. */
  async #outrank(transaction: NewTransaction): Promise<void> {
    let moved = false;
    await this.#committing(async () => {
      await this.#store.lockIds([transaction.id]);
      const [row] = await this.#store.rows([transaction.id]);
      if (!row || row.registered_by === 'topic') return new Map();
      moved = row.node_id !== transaction.nodeId;
      return this.#takeOver(row, transaction);
    });
    if (moved) this.#deps.moved?.(transaction.id);
  }

  async #insert(
    transactions: readonly NewTransaction[],
    registeredBy: 'mutation' | 'topic',
  ): Promise<Map<string, bigint>> {
    if (transactions.length === 0) return new Map();
    await this.#store.register(
      transactions.map((transaction) => registrationRow(transaction, registeredBy, transaction.type)),
    );
    await this.#lookups.remove(transactions.map(({ id }) => id));
    const known = transactions.map(({ id, nodeId, collection, type, assetId }): RegisteredTransaction => {
      const state = emptyState({ collection, registeredType: type });
      return { id, nodeId, assetId, isProvisional: registeredBy === 'mutation', state };
    });
    return this.#apply(
      new Map(known.map((transaction) => [transaction.id, transaction])),
      await this.#takeParked(known),
    );
  }

  /** Replaces a registration. An event informs the subscribers of the new tenant of the transaction's present state. */
  async #takeOver(row: TransactionRow, transaction: NewTransaction): Promise<Map<string, bigint>> {
    const { id, nodeId, collection, assetId } = transaction;
    const before = registeredOfRow(row);
    const type = before.state.status === null ? transaction.type : before.state.type;
    const state: TransactionState = { ...before.state, collection, registeredType: transaction.type, type };
    const isNews = before.nodeId !== nodeId || before.state.collection !== collection;
    if (before.nodeId !== nodeId) await removeEventsOf(this.#deps.db, id);
    await this.#store.register([registrationRow(transaction, 'topic', type)]);
    await settleAssets(this.#deps.db, [before.assetId, assetId]);
    const known: RegisteredTransaction = { id, nodeId, assetId, isProvisional: false, state };
    const news = isNews ? eventsOf(known, null, { correlationId: '' }) : [];
    return this.#apply(new Map([[id, known]]), await this.#takeParked([known]), news);
  }

  async #apply(
    known: ReadonlyMap<string, RegisteredTransaction>,
    deliveries: readonly ParsedDelivery[],
    earlier: readonly NewEvent[] = [],
  ): Promise<Map<string, bigint>> {
    const events = [...earlier];
    const changed = new Set<RegisteredTransaction>();
    for (const { notification, correlationId, traceparent } of deliveries) {
      const transaction = known.get(notification.id);
      if (!transaction) continue;
      const joined = joinNotification(transaction.state, notification);
      if (!joined.changed) continue;
      if (hasConflict(joined.state) && !hasConflict(transaction.state)) this.#deps.conflicted?.(transaction.id);
      const { collection } = joined.state;
      if (typeFlagged(collection, notification.type)) this.flagged.inc({ collection });
      transaction.state = joined.state;
      changed.add(transaction);
      if (joined.visible) events.push(...eventsOf(transaction, joined.previousStatus, { correlationId, traceparent }));
    }
    await this.#store.save([...changed]);
    await settleAssets(
      this.#deps.db,
      [...changed].map(({ assetId }) => assetId),
    );
    return appendEvents(this.#deps.db, events);
  }

  /**
   * Removes and returns parked notifications by order key, lowest first. Their arrival order is unknown; in this order
   * each one that changes the visible state makes an event.
   */
  async #takeParked(transactions: readonly RegisteredTransaction[]): Promise<ParsedDelivery[]> {
    const parked = (await this.#store.takeParked(transactions.map(({ id }) => id))).map(parseDelivery);
    const keyed = parked.map((delivery) => ({ delivery, key: orderKeyOf(delivery.notification) }));
    return keyed.toSorted((a, b) => compareKeys(a.key, b.key)).map(({ delivery }) => delivery);
  }

  /**
   * Runs `work` in a transaction, and after the commit wakes the subscribers of the tenants whose event log has grown.
   */
  async #committing(work: () => Promise<Map<string, bigint>>): Promise<void> {
    const grown = await this.#deps.db.transaction(work);
    for (const [nodeId, seq] of grown) this.#deps.wake(nodeId, seq);
  }
}

function registrationRow(
  transaction: NewTransaction,
  registeredBy: 'mutation' | 'topic',
  type: number,
): RegistrationRow {
  const { id, nodeId, collection, assetId } = transaction;
  const registered = { registered_type: transaction.type, registered_by: registeredBy, asset_id: assetId };
  return { id, node_id: nodeId, collection, type, ...registered };
}

function eventsOf(
  { id, nodeId, state }: RegisteredTransaction,
  previous: NewEvent['previous_status'],
  { correlationId, traceparent }: Pick<Delivery, 'correlationId' | 'traceparent'>,
): NewEvent[] {
  if (state.status === null) return [];
  return [
    {
      node_id: nodeId,
      transaction_id: id,
      status: state.status,
      previous_status: previous,
      correlation_id: correlationId,
      traceparent: traceparent ?? null,
      transaction: snapshotOf(id, state),
    },
  ];
}

function isSame(known: RegisteredTransaction, { nodeId, collection, type }: NewTransaction): boolean {
  return known.nodeId === nodeId && known.state.collection === collection && known.state.registeredType === type;
}

function isOfTopic({ state }: RegisteredTransaction, topic: TransactionTopic): boolean {
  return topicOf(state.collection) === topic;
}
