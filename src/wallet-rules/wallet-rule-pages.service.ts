import type { Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { type Page, type PageRequest, pageOf } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';

/** A rule as the table has it; times are PostgreSQL's text in UTC, to the microsecond. */
export type WalletRuleRow = Selectable<Tables['wallet_rules']>;

/** Reads the rules of wallets by keyset, oldest first. */
export class WalletRulePages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** The same page of each wallet, in one statement; a wallet without rules in it is not in the map. */
  async ofWallets(
    nodeId: string,
    walletIds: readonly string[],
    request: PageRequest,
  ): Promise<Map<string, Page<WalletRuleRow>>> {
    const direction = request.backward ? 'desc' : 'asc';
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('wallets')
        .innerJoinLateral(
          (eb) => {
            const rules = eb
              .selectFrom('wallet_rules')
              .selectAll('wallet_rules')
              .whereRef('wallet_rules.wallet_id', '=', 'wallets.id');
            return keysetPage(rules, request, ['wallet_rules.created_at', 'wallet_rules.id']).as('rule');
          },
          (join) => join.onTrue(),
        )
        .selectAll('rule')
        .where('wallets.id', 'in', walletIds)
        .orderBy('rule.created_at', direction)
        .orderBy('rule.id', direction),
    );
    const byWallet = Map.groupBy(rows, (row) => row.wallet_id);
    return new Map([...byWallet].map(([walletId, read]) => [walletId, pageOf(read, request)]));
  }

  /** How many rules each wallet has; a wallet without any is not in the map. */
  async countOfWallets(nodeId: string, walletIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('wallet_rules')
        .select(['wallet_id', (eb) => eb.fn.countAll<string>().as('total')])
        .where('wallet_id', 'in', walletIds)
        .groupBy('wallet_id'),
    );
    return new Map(rows.map(({ wallet_id: walletId, total }) => [walletId, Number(total)]));
  }

  /** The rule with this id (a UUID); undefined where the node has none. */
  async find(nodeId: string, id: string): Promise<WalletRuleRow | undefined> {
    const [row] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('wallet_rules').selectAll().where('id', '=', id));
    return row;
  }
}
