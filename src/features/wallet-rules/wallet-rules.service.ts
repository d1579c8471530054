import type { Selectable } from 'kysely';
import { type Author, writeAs } from '../../access/identity/authors.ts';
import type { FormedQuery } from '../../lib/fast/prepared-query.ts';
import { isUuid } from '../../lib/input.ts';
import { type Instant, pgFromInstant } from '../../lib/instants.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Db, DbAndClock } from '../../platform/database/database.ts';
import {
  keysetList,
  type NestedList,
  nestedList,
  ofOneOwner,
  type PagedList,
} from '../../platform/database/keyset-list.ts';
import { idOrNotFound, notFound, orNotFound, Refusal, withParent } from '../../platform/errors.ts';
import type { Tables } from '../../tables/tables.ts';
import type { RuleStatus, RuleType, WalletRuleContent } from '../../tables/wallet-rule-content.ts';
import type { WalletPages } from '../wallets/wallets.service.ts';

/** A wallet rule as read from the table; times are PostgreSQL's text in UTC, to the microsecond. */
export type WalletRuleRow = Selectable<Tables['wallet_rules']>;

/** A version of a wallet rule as read from the table. */
export type WalletRuleVersionRow = Omit<Selectable<Tables['wallet_rule_versions']>, 'node_id' | 'wallet_id'>;

const contentColumns = [
  'name',
  'type',
  'network_id',
  'network_currency_id',
  'priority',
  'auto_transfer_rule',
  'sign_and_approve_rule',
  'permissionless_transfer_limit_rule',
  'status',
] as const;

const columns = ['id', 'node_id', 'wallet_id', ...contentColumns, 'version', 'created_at', 'updated_at'] as const;

const versionColumns = [
  ...(['rule_id', 'version', ...contentColumns, 'deleted', 'at'] as const),
  ...(['subject', 'client_id', 'correlation_id', 'reason'] as const),
] as const;

/** A filter of a list of rules; all given members must match. */
export interface WalletRuleFilter {
  walletId?: string | undefined;
  type?: string | undefined;
  /** The time at or after which a rule was last changed. */
  changedSince?: Instant | undefined;
}

/** Reads the rules of a tenant by keyset, oldest first; those of wallets; and the versions of each. */
export class WalletRulePages extends keysetList({
  rows: (k) => k.selectFrom('wallet_rules').select(columns),
  valuesOf: ({ changedSince, ...otherFilters }: WalletRuleFilter) => ({
    ...otherFilters,
    since: changedSince && pgFromInstant(changedSince),
  }),
  where: (eb, { walletId, type, since }) => [
    ...(walletId === undefined ? [] : [eb('wallet_id', '=', walletId)]),
    ...(type === undefined ? [] : [eb('type', '=', type as RuleType)]),
    ...(since === undefined ? [] : [eb('updated_at', '>=', since)]),
  ],
  order: ['created_at', 'id'],
}) {
  /** The rules of each wallet as a nested list. */
  readonly ofWallets: NestedList<WalletRuleRow>;
  /** The versions of each rule as a nested list, newest first; of those that went with their wallet too. */
  readonly versions: NestedList<WalletRuleVersionRow>;
  readonly #active: FormedQuery<WalletRuleRow, { walletId: string; size: number }>;

  constructor(db: Db) {
    super(db);
    this.ofWallets = nestedList(db, {
      ownerIds: 'uuid',
      rows: (k) => k.selectFrom('wallet_rules').select(columns),
      owner: 'wallet_id',
      order: ['created_at', 'id'],
    });
    this.versions = nestedList(db, {
      ownerIds: 'uuid',
      rows: (k) => k.selectFrom('wallet_rule_versions').select(versionColumns),
      owner: 'rule_id',
      order: ['version'],
      isNewestFirst: true,
    });
    this.#active = db.prepareForms((k, { walletId, size }) =>
      k
        .selectFrom('wallet_rules')
        .select(columns)
        .where('wallet_id', '=', walletId)
        .where('status', '=', 'active')
        .orderBy('priority', (order) => order.desc().nullsLast())
        .orderBy('created_at')
        .orderBy('id')
        .limit(size),
    );
  }

  /**
   * Reads up to `size` active rules of a wallet (a UUID): the highest priority first, those without one last, and of
   * the same priority the oldest first.
   */
  active(nodeId: string, walletId: string, size: number): Promise<WalletRuleRow[]> {
    return this.#active.run(nodeId, { walletId, size });
  }
}

const DIFFERENT = { message: 'the rule has a different version' };

/**
 * Writes wallet rules (docs/contract.md, 4.2-01 and 4.3-01). The database keeps every version, with the
 * author that each method sets. Each throws a Refusal `not_found` when the author's tenant has
 * no such wallet or rule.
 */
export class WalletRules {
  readonly #deps: DbAndClock;
  readonly #pages: WalletRulePages;

  constructor(deps: DbAndClock) {
    this.#deps = deps;
    this.#pages = new WalletRulePages(deps.db);
  }

  /** Creates an active rule with version 1. */
  async create(author: Author, walletId: string, content: WalletRuleContent): Promise<WalletRuleRow> {
    const { nowMs } = this.#deps;
    const now = new Date(nowMs()).toISOString();
    const key = { id: uuidV7(nowMs()), wallet_id: idOrNotFound(walletId) };
    const values = { ...key, ...columnsOf(content), created_at: now, updated_at: now };
    const insert = () =>
      writeAs(this.#deps.db, author, (k) => k.insertInto('wallet_rules').values(values).returningAll());
    return orNotFound(await withParent(insert));
  }

  /**
   * Replaces the content of a rule and increments its version; its status stays. With `versions`, it does so only when
   * the rule has one of them, so of concurrent calls with the same version one succeeds.
   * @throws Refusal `precondition_failed` when the rule has a different version.
   */
  async replace(
    author: Author,
    { walletId, id }: { walletId: string; id: string },
    content: WalletRuleContent,
    versions?: readonly number[],
  ): Promise<WalletRuleRow> {
    const key = { walletId: idOrNotFound(walletId), id: idOrNotFound(id) };
    if (versions === undefined || versions.length > 0) {
      const updated_at = new Date(this.#deps.nowMs()).toISOString();
      const replaced = await writeAs(this.#deps.db, author, (k) =>
        k
          .updateTable('wallet_rules')
          .set((eb) => ({ ...columnsOf(content), version: eb('version', '+', 1), updated_at }))
          .where('id', '=', key.id)
          .where('wallet_id', '=', key.walletId)
          .$if(versions !== undefined, (query) => query.where('version', 'in', versions ?? []))
          .returningAll(),
      );
      if (replaced) return replaced;
    }
    const existing = await this.#pages.find(author.nodeId, key.id);
    if (existing?.wallet_id !== key.walletId) throw notFound();
    throw new Refusal('precondition_failed', DIFFERENT);
  }

  /**
   * Enables or disables a rule and increments its version. Setting the status that it already has changes nothing. With a
   * version, it does so only when the rule has it.
   * @throws Refusal `precondition_failed` when the rule has a different version.
   */
  async setStatus(author: Author, id: string, status: RuleStatus, version?: number | null): Promise<WalletRuleRow> {
    const ruleId = idOrNotFound(id);
    const updated_at = new Date(this.#deps.nowMs()).toISOString();
    const changed = await writeAs(this.#deps.db, author, (k) =>
      k
        .updateTable('wallet_rules')
        .set((eb) => ({ status, version: eb('version', '+', 1), updated_at }))
        .where('id', '=', ruleId)
        .where('status', '<>', status)
        .$if(typeof version === 'number', (query) => query.where('version', '=', version ?? 0))
        .returningAll(),
    );
    const rule = changed ?? orNotFound(await this.#pages.find(author.nodeId, ruleId));
    if (!changed && (version ?? rule.version) !== rule.version) throw new Refusal('precondition_failed', DIFFERENT);
    return rule;
  }
}

/** Returns the content of a rule or of one of its versions; members that it does not have are undefined. */
export function contentOf(row: WalletRuleVersionRow | WalletRuleRow): WalletRuleContent {
  const { auto_transfer_rule, sign_and_approve_rule, permissionless_transfer_limit_rule } = row;
  return {
    name: row.name,
    type: row.type,
    network_id: row.network_id,
    network_currency_id: row.network_currency_id,
    priority: row.priority ?? undefined,
    auto_transfer_rule: auto_transfer_rule ?? undefined,
    sign_and_approve_rule: sign_and_approve_rule ?? undefined,
    permissionless_transfer_limit_rule: permissionless_transfer_limit_rule ?? undefined,
  };
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

interface Services {
  walletRulePages: WalletRulePages;
  walletPages: WalletPages;
}

/** Returns the rules of the tenant; a wallet in the filter that does not exist is refused as `not_found`. */
export function rulesOfTenant({ walletRulePages, walletPages }: Services) {
  return ofKnownOwner(
    walletRulePages,
    async (nodeId, { walletId }) => walletId === undefined || walletPages.find(nodeId, walletId),
  );
}

/** Returns the versions of a rule, which may be deleted; a rule that never existed is refused as `not_found`. */
export function versionsOfRule({ walletRulePages: { versions } }: Pick<Services, 'walletRulePages'>) {
  return ofKnownOwner(ofOneOwner(versions), async (nodeId, id) =>
    isUuid(id) ? (await versions.counts(nodeId, [id])).get(id) : undefined,
  );
}

/** Returns a list that refuses a filter in which `find` does not know the owner of the rows. */
function ofKnownOwner<Row, Filter>(
  list: PagedList<Row, Filter>,
  find: (nodeId: string, filter: Filter) => Promise<unknown>,
): PagedList<Row, Filter> {
  return {
    count: (nodeId, filter) => list.count(nodeId, filter),
    keyOf: (row) => list.keyOf(row),
    page: async (nodeId, filter, request) => {
      orNotFound(await find(nodeId, filter));
      return list.page(nodeId, filter, request);
    },
  };
}
