import { Counter } from 'prom-client';
import type { Db } from '../../platform/database/database.ts';
import { notFoundRefusal, RefusalError } from '../../platform/errors.ts';
import {
  compareKeys,
  emptyState,
  hasConflict,
  joinNotification,
  orderKeyOf,
  type TransactionState,
} from './join.rules.ts';
import { type Delivery, type NewTransaction, type ParsedDelivery, parseDelivery } from './notification.input.ts';
import { LookupStore } from './transaction-lookups.ts';
import {
  appendEvents,
  type NewEvent,
  type RegistrationRow,
  settleAssets,
  TransactionStore,
} from './transaction-store.ts';
import {
  type RegisteredTransaction,
  registeredOfRow,
  snapshotOf,
  type TransactionRow,
  type TransactionSnapshot,
} from './transaction-view.ts';
import {
  collectionsOf,
  otherTopic,
  TRANSACTION_COLLECTIONS,
  type TransactionTopic,
  topicOf,
  typeFlagged,
} from './type-codes.rules.ts';

interface TransactionsParts {
  db: Db;
  /** Told after the commit that a node's log reaches up to `seq`. */
  wake(nodeId: string, seq: bigint): void;
  /** Told when Done meets Error: two outcomes of one transaction, which an operator has to look at. */
  conflicted?(transactionId: string): void;
  /** Whether `registerByMutation` takes ids that their owner has not named; so where it is absent. */
  registersByMutation?: boolean;
}

const REGISTRATION_OFF = {
  kind: 'forbidden',
  permission: 'transactions:write',
  message: 'registration by mutation is off: whoever owns the transaction registers it first',
} as const;

/** The mirror: applies notifications to registered transactions and parks those of ids that are not known yet. */
export class Transactions {
  /** For the registry of the process. */
  readonly flagged = new Counter<'collection'>({
    name: 'portcullis_transactions_flagged_total',
    help: 'Notifications that were applied and tell a type that their collection does not know.',
    labelNames: ['collection'],
    registers: [],
  });
  readonly #db: Db;
  readonly #wake: TransactionsParts['wake'];
  readonly #conflicted: (transactionId: string) => void;
  readonly #registersByMutation: boolean;
  readonly #store: TransactionStore;
  readonly #lookups: LookupStore;

  constructor({ db, wake, conflicted = () => undefined, registersByMutation = true }: TransactionsParts) {
    this.#db = db;
    this.#wake = wake;
    this.#conflicted = conflicted;
    for (const collection of TRANSACTION_COLLECTIONS) this.flagged.inc({ collection }, 0);
    this.#registersByMutation = registersByMutation;
    this.#store = new TransactionStore(db);
    this.#lookups = new LookupStore(db);
  }

  /**
   * Applies a batch of one topic in one transaction. Repeats change nothing; a delivery cut anywhere is as if it had
   * not been.
   * @throws PoisonError where a message is no notification.
   */
  async applyBatch(topic: TransactionTopic, deliveries: readonly Delivery[]): Promise<void> {
    const all = deliveries.map(parseDelivery);
    // The other group applies these, and is not to wait for this one.
    const others = await this.#store.settledIn(
      collectionsOf(otherTopic(topic)),
      all.map(({ notification }) => notification.id),
    );
    const parsed = all.filter(({ notification }) => !others.has(notification.id));
    if (parsed.length === 0) return;
    const ids = [...new Set(parsed.map(({ notification }) => notification.id))];
    await this.#committing(async () => {
      await this.#store.lockIds(ids);
      const known = await this.#store.load(ids);
      const applicable: ParsedDelivery[] = [];
      const parked: ParsedDelivery[] = [];
      for (const delivery of parsed) {
        const transaction = known.get(delivery.notification.id);
        if (transaction && isOfTopic(transaction, topic)) applicable.push(delivery);
        else if (isToBeParked(delivery, transaction)) parked.push(delivery);
      }
      await this.#store.park(parked.map((delivery) => ({ ...delivery, id: delivery.notification.id })));
      await this.#lookups.add(ids.filter((id) => !known.has(id)));
      const provisional = known.values().filter((found) => found.isProvisional && isOfTopic(found, topic));
      return this.#apply(known, [...applicable, ...(await this.#takeParked([...provisional]))]);
    });
  }

  /**
   * Registers a transaction for its node and applies what was parked for it. The same again is as good as the first;
   * an id that another node, collection or type has is a duplicate, and nothing more is told of it.
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
   * The same for whoever holds a token of the tenant. Returns the transaction as it is then.
   * @throws RefusalError `forbidden` where that is off and nobody has named the id, whether it was notified or not;
   * `not_found` where the owner moves it to another tenant meanwhile.
   */
  async registerByMutation(transaction: NewTransaction): Promise<TransactionSnapshot | 'duplicate'> {
    if (this.#registersByMutation && (await this.register(transaction)) === 'duplicate') return 'duplicate';
    const found = (await this.#store.load([transaction.id])).get(transaction.id);
    if (!this.#registersByMutation) {
      if (!found) throw new RefusalError(REGISTRATION_OFF);
      if (!isSame(found, transaction)) return 'duplicate';
    }
    if (found?.nodeId !== transaction.nodeId) throw notFoundRefusal();
    return snapshotOf(found.id, found.state);
  }

  /**
   * Registers what the owning service says, which outranks a registration by mutation: the row moves to its node and
   * the events written under the other are removed. Gives whether a row moved.
   */
  async registerByOwner(transaction: NewTransaction): Promise<{ moved: boolean }> {
    const moved = await this.registerAllByOwner([transaction]);
    return { moved: moved.length > 0 };
  }

  /**
   * The same for a batch: what is new in one transaction, what outranks a mutation one by one, since each of those writes
   * to logs of two nodes. Of several for one id the first counts. Gives the ids whose rows moved.
   */
  async registerAllByOwner(transactions: readonly NewTransaction[]): Promise<string[]> {
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
    const moved: string[] = [];
    for (const { id, registered_by } of registered) {
      const transaction = byId.get(id);
      if (transaction && registered_by !== 'topic' && (await this.#outrank(transaction))) moved.push(id);
    }
    return moved;
  }

  /** @returns whether its row moved to another node. */
  async #outrank(transaction: NewTransaction): Promise<boolean> {
    let moved = false;
    await this.#committing(async () => {
      await this.#store.lockIds([transaction.id]);
      const [row] = await this.#store.rows([transaction.id]);
      if (!row || row.registered_by === 'topic') return new Map();
      moved = row.node_id !== transaction.nodeId;
      return this.#takeOver(row, transaction);
    });
    return moved;
  }

  async #insert(transactions: readonly NewTransaction[], by: 'mutation' | 'topic'): Promise<Map<string, bigint>> {
    if (transactions.length === 0) return new Map();
    await this.#store.registerNew(
      transactions.map((transaction) => registrationRow(transaction, by, transaction.type)),
    );
    await this.#lookups.remove(transactions.map(({ id }) => id));
    const known = transactions.map(({ id, nodeId, collection, type, assetId }): RegisteredTransaction => {
      const state = emptyState({ collection, registeredType: type });
      return { id, nodeId, assetId, isProvisional: by === 'mutation', state };
    });
    return this.#apply(new Map(known.map((one) => [one.id, one])), await this.#takeParked(known));
  }

  /** The readers of the new node are told by an event of the state that the transaction already has. */
  async #takeOver(row: TransactionRow, transaction: NewTransaction): Promise<Map<string, bigint>> {
    const { id, nodeId, collection, assetId } = transaction;
    const before = registeredOfRow(row);
    const type = before.state.status === null ? transaction.type : before.state.type;
    const state: TransactionState = { ...before.state, collection, registeredType: transaction.type, type };
    const isNews = before.nodeId !== nodeId || before.state.collection !== collection;
    if (before.nodeId !== nodeId) await this.#store.removeEvents(id);
    await this.#store.register(registrationRow(transaction, 'topic', type));
    await settleAssets(this.#db, [before.assetId, assetId]);
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
      if (hasConflict(joined.state) && !hasConflict(transaction.state)) this.#conflicted(transaction.id);
      const { collection } = joined.state;
      if (typeFlagged(collection, notification.type)) this.flagged.inc({ collection });
      transaction.state = joined.state;
      changed.add(transaction);
      if (joined.visible) events.push(...eventsOf(transaction, joined.previousStatus, { correlationId, traceparent }));
    }
    await this.#store.save([...changed]);
    await settleAssets(
      this.#db,
      [...changed].map(({ assetId }) => assetId),
    );
    return appendEvents(this.#db, events);
  }

  /** They came in an order that nobody knows any more: in their total order each that can tell something new does. */
  async #takeParked(transactions: readonly RegisteredTransaction[]): Promise<ParsedDelivery[]> {
    const parked = (await this.#store.takeParked(transactions.map(({ id }) => id))).map(parseDelivery);
    const keyed = parked.map((delivery) => ({ delivery, key: orderKeyOf(delivery.notification) }));
    return keyed.toSorted((a, b) => compareKeys(a.key, b.key)).map(({ delivery }) => delivery);
  }

  /** Runs `work` in a transaction, and after its commit wakes the readers of the nodes whose log has grown. */
  async #committing(work: () => Promise<Map<string, bigint>>): Promise<void> {
    const grown = await this.#db.transaction(work);
    for (const [nodeId, seq] of grown) this.#wake(nodeId, seq);
  }
}

function registrationRow(of: NewTransaction, by: 'mutation' | 'topic', type: number): RegistrationRow {
  const { id, nodeId, collection, assetId } = of;
  const registered = { registered_type: of.type, registered_by: by, asset_id: assetId };
  return { id, node_id: nodeId, collection, type, ...registered };
}

function eventsOf(
  known: RegisteredTransaction,
  previousStatus: NewEvent['previousStatus'],
  cause: Pick<NewEvent, 'correlationId' | 'traceparent'>,
): NewEvent[] {
  const { id, nodeId, state } = known;
  if (state.status === null) return [];
  const transaction = snapshotOf(id, state);
  return [{ nodeId, transactionId: id, status: state.status, previousStatus, ...cause, transaction }];
}

function isSame(known: RegisteredTransaction, { nodeId, collection, type }: NewTransaction): boolean {
  const { state } = known;
  return known.nodeId === nodeId && state.collection === collection && state.registeredType === type;
}

function isOfTopic({ state }: RegisteredTransaction, topic: TransactionTopic): boolean {
  return topicOf(state.collection) === topic;
}

/**
 * Whether a notification that its group does not apply is kept: that of an unknown id, and of one whose registration
 * by mutation can still change, unless the group that applies it has done so.
 */
function isToBeParked({ notification }: ParsedDelivery, known: RegisteredTransaction | undefined): boolean {
  return !known || (known.isProvisional && joinNotification(known.state, notification).changed);
}
