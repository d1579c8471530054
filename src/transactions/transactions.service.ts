import { createHash } from 'node:crypto';
import type { Db } from '../db.ts';
import { settleAssets } from './asset-effects.ts';
import { appendEvents, type NewEvent } from './event-log.ts';
import { emptyState, joinNotification, type TransactionState } from './join.rules.ts';
import { type Notification, parseNotification } from './notification.input.ts';
import {
  columnsOfState,
  type NewTransactionRow,
  snapshotOf,
  stateOfRow,
  type TransactionRow,
} from './transaction-rows.ts';
import { collectionsOf, type TransactionCollection, type TransactionTopic } from './type-codes.rules.ts';

/** A notification as it was received: the body's bytes and the correlation id of the request that brought it. */
export interface Delivery {
  body: Uint8Array;
  correlationId: string;
}

/** What registration says: whose the transaction is, and what it is. */
export interface NewTransaction {
  id: string;
  nodeId: string;
  collection: TransactionCollection;
  type: number;
  assetId: string | null;
}

/** A message that no repeat makes applicable: it goes to the dead letters. */
export class PoisonError extends Error {
  override name = 'PoisonError';
}

interface TransactionsParts {
  db: Db;
  /** Told after the commit that a node's log reaches up to `seq`. */
  wake(nodeId: string, seq: bigint): void;
}

interface Known {
  id: string;
  nodeId: string;
  assetId: string | null;
  state: TransactionState;
}

interface ParsedDelivery extends Delivery {
  notification: Notification;
}

/** The mirror: applies notifications to registered transactions and parks those of ids that are not known yet. */
export class Transactions {
  readonly #parts: TransactionsParts;

  constructor(parts: TransactionsParts) {
    this.#parts = parts;
  }

  /**
   * Applies a batch of one topic in one transaction. Repeats change nothing; a delivery cut anywhere is as if it had
   * not been.
   * @throws PoisonError where a message is no notification.
   */
  async applyBatch(topic: TransactionTopic, deliveries: readonly Delivery[]): Promise<void> {
    const parsed = deliveries.map(parseDelivery);
    const ids = [...new Set(parsed.map(({ notification }) => notification.id))].sort();
    await this.#committing(async () => {
      await this.#lockIds(ids);
      const known = await this.#load(ids);
      await this.#park(parsed.filter(({ notification }) => !known.has(notification.id)));
      const applicable = parsed.filter(({ notification }) => {
        const collection = known.get(notification.id)?.state.collection;
        return collection !== undefined && collectionsOf(topic).includes(collection);
      });
      return this.#apply(known, applicable);
    });
  }

  /**
   * Registers a transaction for its node and applies what was parked for it. The same again is as good as the first;
   * an id that another node, collection or type has is a duplicate, and nothing more is told of it.
   */
  async register(transaction: NewTransaction): Promise<'registered' | 'duplicate'> {
    let outcome: 'registered' | 'duplicate' = 'registered';
    await this.#committing(async () => {
      await this.#lockIds([transaction.id]);
      const existing = (await this.#load([transaction.id])).get(transaction.id);
      if (existing) {
        outcome = isSame(existing, transaction) ? 'registered' : 'duplicate';
        return new Map();
      }
      return this.#insert(transaction, 'mutation');
    });
    return outcome;
  }

  /**
   * Registers what the owning service says, which outranks a registration by mutation: the row moves to its node and
   * the events written under the other are removed. Gives whether a row moved.
   */
  async registerByOwner(transaction: NewTransaction): Promise<{ moved: boolean }> {
    let moved = false;
    await this.#committing(async () => {
      await this.#lockIds([transaction.id]);
      const [row] = await this.#rows([transaction.id]);
      if (!row) return this.#insert(transaction, 'topic');
      if (row.registered_by === 'topic') return new Map();
      moved = row.node_id !== transaction.nodeId;
      await this.#takeOver(row, transaction);
      return new Map();
    });
    return { moved };
  }

  async #insert(transaction: NewTransaction, by: 'mutation' | 'topic'): Promise<Map<string, bigint>> {
    const { id, nodeId, collection, type, assetId } = transaction;
    const state = emptyState({ collection, registeredType: type });
    const row = { id, node_id: nodeId, registered_by: by, asset_id: assetId, ...columnsOfState(state) };
    await this.#door().run((k) => k.insertInto('transactions').values(row));
    const parked = await this.#door().run((k) =>
      k.deleteFrom('parked_notifications').where('id', '=', id).returningAll(),
    );
    const deliveries = parked.map((found) => parseDelivery({ body: found.body, correlationId: found.correlation_id }));
    return this.#apply(new Map([[id, { id, nodeId, assetId, state }]]), deliveries);
  }

  async #takeOver(row: TransactionRow, { id, nodeId, collection, type, assetId }: NewTransaction): Promise<void> {
    if (row.node_id !== nodeId) {
      await this.#door().run((k) => k.deleteFrom('transaction_events').where('transaction_id', '=', id));
    }
    await this.#door().run((k) =>
      k
        .updateTable('transactions')
        .set({ node_id: nodeId, collection, registered_type: type, asset_id: assetId, registered_by: 'topic' })
        .set(row.status === null ? { type } : {})
        .where('id', '=', id),
    );
    await settleAssets(this.#parts.db, [row.asset_id, assetId]);
  }

  async #apply(known: Map<string, Known>, deliveries: readonly ParsedDelivery[]): Promise<Map<string, bigint>> {
    const events: NewEvent[] = [];
    const changed = new Set<Known>();
    for (const { notification, correlationId } of deliveries) {
      const transaction = known.get(notification.id);
      if (!transaction) continue;
      const joined = joinNotification(transaction.state, notification);
      if (!joined.changed) continue;
      transaction.state = joined.state;
      changed.add(transaction);
      const { status } = joined.state;
      if (!joined.visible || status === null) continue;
      const { id, nodeId } = transaction;
      const snapshot = snapshotOf(id, joined.state);
      const { previousStatus } = joined;
      events.push({ nodeId, transactionId: id, status, previousStatus, correlationId, transaction: snapshot });
    }
    await this.#save([...changed]);
    await settleAssets(
      this.#parts.db,
      [...changed].map(({ assetId }) => assetId),
    );
    return appendEvents(this.#parts.db, events);
  }

  /** Runs `work` in a transaction, and after its commit wakes the readers of the nodes whose log has grown. */
  async #committing(work: () => Promise<Map<string, bigint>>): Promise<void> {
    const grown = await this.#parts.db.transaction(work);
    for (const [nodeId, seq] of grown) this.#parts.wake(nodeId, seq);
  }

  /** Locks the rows that parking and registering share, in the order of the ids: nobody waits in a ring. */
  async #lockIds(ids: readonly string[]): Promise<void> {
    await this.#door().run((k) =>
      k
        .insertInto('transaction_ids')
        .values(ids.map((id) => ({ id })))
        .onConflict((conflict) => conflict.doNothing()),
    );
    await this.#door().run((k) =>
      k.selectFrom('transaction_ids').select('id').where('id', 'in', ids).orderBy('id').forUpdate(),
    );
  }

  async #rows(ids: readonly string[]): Promise<TransactionRow[]> {
    return this.#door().run((k) => k.selectFrom('transactions').selectAll().where('id', 'in', ids));
  }

  async #load(ids: readonly string[]): Promise<Map<string, Known>> {
    const rows = await this.#rows(ids);
    return new Map(
      rows.map((row) => [row.id, { id: row.id, nodeId: row.node_id, assetId: row.asset_id, state: stateOfRow(row) }]),
    );
  }

  async #park(deliveries: readonly ParsedDelivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    const rows = deliveries.map(({ notification, body, correlationId }) => ({
      id: notification.id,
      body_sha256: createHash('sha256').update(body).digest(),
      body,
      correlation_id: correlationId,
    }));
    await this.#door().run((k) =>
      k
        .insertInto('parked_notifications')
        .values(rows)
        .onConflict((conflict) => conflict.doNothing()),
    );
  }

  async #save(changed: readonly Known[]): Promise<void> {
    if (changed.length === 0) return;
    const rows: NewTransactionRow[] = changed.map(({ id, nodeId, assetId, state }) => ({
      id,
      node_id: nodeId,
      registered_by: 'mutation',
      asset_id: assetId,
      ...columnsOfState(state),
    }));
    const joinColumns = Object.keys(columnsOfState(emptyState({ collection: 'otc_transactions', registeredType: 0 })));
    await this.#door().run((k) =>
      k
        .insertInto('transactions')
        .values(rows)
        .onConflict((conflict) =>
          conflict
            .column('id')
            .doUpdateSet((eb) =>
              Object.fromEntries(joinColumns.map((column) => [column, eb.ref(`excluded.${column}` as 'excluded.id')])),
            ),
        ),
    );
  }

  #door() {
    return this.#parts.db.unscoped('notifications name ids of every node');
  }
}

function isSame(known: Known, { nodeId, collection, type }: NewTransaction): boolean {
  const { state } = known;
  return known.nodeId === nodeId && state.collection === collection && state.registeredType === type;
}

function parseDelivery(delivery: Delivery): ParsedDelivery {
  const parsed = parseNotification(delivery.body);
  if (parsed.ok) return { ...delivery, notification: parsed.notification };
  const issues = parsed.issues.map(({ path, message }) => `${path} ${message}`.trim());
  throw new PoisonError(`not a notification: ${issues.join('; ')}`);
}
