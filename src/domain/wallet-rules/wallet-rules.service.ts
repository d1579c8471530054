import type { Selectable } from 'kysely';
import type { FormedQuery } from '../../lib/fast/prepared-query.ts';
import { isUuid } from '../../lib/input.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Db } from '../../platform/database/database.ts';
import { type NestedList, nestedList } from '../../platform/database/keyset-list.ts';
import { sqlState } from '../../platform/database/sql-state.ts';
import { notFoundRefusal, RefusalError } from '../../platform/errors.ts';
import type { Tables } from '../../tables/tables.ts';
import type { RuleStatus, WalletRuleContent } from '../../tables/wallet-rule-content.ts';

/** A wallet rule as read from the table; times are PostgreSQL's text in UTC, to the microsecond. */
export type WalletRuleRow = Selectable<Tables['wallet_rules']>;

const columns = [
  'id',
  'node_id',
  'wallet_id',
  'name',
  'type',
  'network_id',
  'network_currency_id',
  'priority',
  'auto_transfer_rule',
  'sign_and_approve_rule',
  'permissionless_transfer_limit_rule',
  'status',
  'version',
  'created_at',
  'updated_at',
] as const;

/** Reads wallet rules: those of wallets by keyset, oldest first, and single ones by id. */
export class WalletRulePages {
  /** The rules of each wallet as a nested list. */
  readonly ofWallets: NestedList<WalletRuleRow>;
  readonly #find: FormedQuery<WalletRuleRow, { id: string }>;

  constructor(db: Db) {
    this.ofWallets = nestedList(db, {
      ownerIds: 'uuid',
      rows: (k) => k.selectFrom('wallet_rules').select(columns),
      owner: 'wallet_id',
      order: ['created_at', 'id'],
    });
    this.#find = db.prepareForms((k, { id }) => k.selectFrom('wallet_rules').select(columns).where('id', '=', id));
  }

  /** Reads the rule with this id (a UUID); undefined when the tenant has none. */
  async find(nodeId: string, id: string): Promise<WalletRuleRow | undefined> {
    const [row] = await this.#find.run(nodeId, { id });
    return row;
  }
}

const FOREIGN_KEY_VIOLATION = '23503';

interface WalletRulesParts {
  db: Db;
  nowMs(): number;
}

/** The ids of a rule and of its wallet. A rule of another wallet counts as not found. */
interface RulePlace {
  walletId: string;
  id: string;
}

/**
 * Writes wallet rules (specification sections 4.2 and 4.3). Each method throws a RefusalError `not_found` when the
 * tenant has no such wallet or rule.
 */
export class WalletRules {
  readonly #parts: WalletRulesParts;
  readonly #pages: WalletRulePages;

  constructor(parts: WalletRulesParts) {
    this.#parts = parts;
    this.#pages = new WalletRulePages(parts.db);
  }

  /** Creates an active rule with version 1. */
  async create(nodeId: string, walletId: string, content: WalletRuleContent): Promise<WalletRuleRow> {
    if (!isUuid(walletId)) throw notFoundRefusal();
    const { db, nowMs } = this.#parts;
    const scoped = db.forNode(nodeId);
    const wallet = walletId.toLowerCase();
    const now = new Date(nowMs()).toISOString();
    const values = { id: uuidV7(nowMs()), wallet_id: wallet, ...columnsOf(content), created_at: now, updated_at: now };
    try {
      return await db.transaction(async () => {
        const [found] = await scoped.run((k) =>
          k.selectFrom('wallets').select('id').where('id', '=', wallet).forKeyShare(),
        );
        const [created] = found
          ? await scoped.run((k) => k.insertInto('wallet_rules').values(values).returningAll())
          : [];
        if (!created) throw notFoundRefusal();
        return created;
      });
    } catch (error) {
      // On a database where a read takes no row locks, the wallet can be deleted between the two statements.
      throw sqlState(error) === FOREIGN_KEY_VIOLATION ? notFoundRefusal() : error;
    }
  }

  /**
   * Replaces the content of a rule and increments its version; its status stays. With `versions`, it does so only when
   * the rule has one of them, so of concurrent calls with the same version one succeeds.
   * @throws RefusalError `precondition` when the rule has another version.
   */
  async replace(
    nodeId: string,
    { walletId, id }: RulePlace,
    content: WalletRuleContent,
    versions?: readonly number[],
  ): Promise<WalletRuleRow> {
    if (!isUuid(walletId) || !isUuid(id)) throw notFoundRefusal();
    const place = { walletId: walletId.toLowerCase(), id: id.toLowerCase() };
    if (versions === undefined || versions.length > 0) {
      const updated_at = new Date(this.#parts.nowMs()).toISOString();
      const [replaced] = await this.#parts.db.forNode(nodeId).run((k) =>
        k
          .updateTable('wallet_rules')
          .set((eb) => ({ ...columnsOf(content), version: eb('version', '+', 1), updated_at }))
          .where('id', '=', place.id)
          .where('wallet_id', '=', place.walletId)
          .$if(versions !== undefined, (query) => query.where('version', 'in', versions ?? []))
          .returningAll(),
      );
      if (replaced) return replaced;
    }
    const existing = await this.#pages.find(nodeId, place.id);
    if (existing?.wallet_id !== place.walletId) throw notFoundRefusal();
    throw new RefusalError({ kind: 'precondition', message: 'the rule has another version' });
  }

  /** Enables or disables a rule and increments its version. Setting the status that it already has changes nothing. */
  async setStatus(nodeId: string, id: string, status: RuleStatus): Promise<WalletRuleRow> {
    if (!isUuid(id)) throw notFoundRefusal();
    const updated_at = new Date(this.#parts.nowMs()).toISOString();
    const [changed] = await this.#parts.db.forNode(nodeId).run((k) =>
      k
        .updateTable('wallet_rules')
        .set((eb) => ({ status, version: eb('version', '+', 1), updated_at }))
        .where('id', '=', id.toLowerCase())
        .where('status', '<>', status)
        .returningAll(),
    );
    const rule = changed ?? (await this.#pages.find(nodeId, id.toLowerCase()));
    if (!rule) throw notFoundRefusal();
    return rule;
  }
}

function columnsOf(content: WalletRuleContent) {
  return {
    name: content.name,
    type: content.type,
    network_id: content.network_id,
    network_currency_id: content.network_currency_id,
    priority: content.priority ?? null,
    auto_transfer_rule: content.auto_transfer_rule ?? null,
    sign_and_approve_rule: content.sign_and_approve_rule ?? null,
    permissionless_transfer_limit_rule: content.permissionless_transfer_limit_rule ?? null,
  };
}
