import type { Permission } from '../../access/identity/permissions.rules.ts';
import { isUuid } from '../../lib/input.ts';
import type { Db } from '../../platform/database/database.ts';
import { containing } from '../../platform/database/keyset-list.ts';
import type { AuditPages } from '../audit-records/audit-records.service.ts';
import type { TransactionPages } from '../transactions/transaction-pages.service.ts';
import { typeName } from '../transactions/type-codes.rules.ts';
import type { UserPages } from '../users/users.service.ts';

/** What a search finds, by its kind, with the permission that shows it. */
const SEARCH_NEEDS = {
  transaction: 'transactions:read',
  user: 'users:read',
  account: 'accounts:read',
  wallet: 'wallets:read',
  rule: 'wallet-rules:read',
  asset: 'tokens:read',
  migration: 'users:read',
  client: 'clients:manage',
  supervisor: 'clients:manage',
  request: 'audit:read',
} as const satisfies Record<string, Permission>;

/** Something that a search found: its id, what it is called, and the id of what it belongs to. */
export interface SearchHit {
  kind: keyof typeof SEARCH_NEEDS;
  id: string;
  title: string;
  within: string | null;
}

type Found = Pick<SearchHit, 'id' | 'title'> & Partial<Pick<SearchHit, 'within'>>;

const WEEK_MS = 7 * 24 * 3_600_000;
const ZEROS = '00000000-0000-0000-0000-000000000000';

/** Returns the first and the last UUID that begin with a text of four characters or more; of another text a range without any. */
function uuidsThatBegin(text: string): readonly [from: string, to: string] {
  const rest = ZEROS.slice(text.length);
  const ends = [`${text}${rest}`, `${text}${rest.replaceAll('0', 'f')}`] as const;
  return text.length >= 4 && ends.every(isUuid) ? ends : [ZEROS.replaceAll('0', 'f'), ZEROS];
}

/** Finds things of all kinds by an id or its beginning, a name, a hash, an address, or a correlation id of the last seven days. */
export class Search {
  readonly #deps;

  constructor(deps: {
    db: Db;
    userPages: UserPages;
    transactionPages: TransactionPages;
    auditPages: AuditPages;
    nowMs(): number;
  }) {
    this.#deps = deps;
  }

  /** Returns at most `first` things of each kind that the permissions show. */
  async find(nodeId: string, permissions: ReadonlySet<string>, search: string, first: number): Promise<SearchHit[]> {
    const text = search.trim();
    if (text === '') return [];
    const { db, userPages, transactionPages, auditPages, nowMs } = this.#deps;
    const { run } = db.forNode(nodeId);
    const pattern = containing(text);
    const [from, to] = uuidsThatBegin(text.toLowerCase());
    const page = { size: first, backward: true, after: undefined, before: undefined };
    const named = (table: 'accounts' | 'clients') =>
      run((k) =>
        k
          .selectFrom(table)
          .select(['id', 'name as title'])
          .where((eb) => eb.or([eb('name', 'ilike', pattern), eb.between('id', from, to)]))
          .limit(first),
      );
    const users = () =>
      run((k) =>
        k
          .selectFrom('users')
          .select('id')
          .where((eb) => eb.between('id', from, to))
          .limit(first),
      );
    const finders: Record<SearchHit['kind'], () => Promise<Found[]>> = {
      transaction: async () =>
        (await transactionPages.page(nodeId, { search: text }, page)).rows.map(({ id, collection, type }) => ({
          id,
          title: typeName(collection, type) ?? `Type ${type}`,
        })),
      user: async () =>
        [
          ...(await userPages.byIds(
            nodeId,
            (await users()).map(({ id }) => id),
          )),
          ...(await userPages.page(nodeId, { search: text }, page)).rows,
        ].map(({ id, name, surname, email }) => ({ id, title: `${name} ${surname}`.trim() || email || id })),
      account: () => named('accounts'),
      wallet: () =>
        run((k) =>
          k
            .selectFrom('wallets')
            .innerJoin('accounts', 'accounts.id', 'wallets.account_id')
            .select(['wallets.id', 'accounts.name as title'])
            .where((eb) => eb.between('wallets.id', from, to))
            .limit(first),
        ),
      rule: () =>
        run((k) =>
          k
            .selectFrom('wallet_rules')
            .select(['id', 'name as title', 'wallet_id as within'])
            .where((eb) => eb.or([eb('name', 'ilike', pattern), eb.between('id', from, to)]))
            .limit(first),
        ),
      asset: () =>
        run((k) =>
          k
            .selectFrom('assets')
            .select(['id', 'name as title'])
            .where((eb) =>
              eb.or([
                eb('name', 'ilike', pattern),
                eb('symbol', 'ilike', pattern),
                eb('contract_address', 'ilike', pattern),
                eb.between('id', from, to),
              ]),
            )
            .limit(first),
        ),
      migration: () =>
        run((k) =>
          k
            .selectFrom('migrations')
            .select(['id', 'created_at as title'])
            .where((eb) => eb.between('id', from, to))
            .limit(first),
        ),
      client: () => named('clients'),
      supervisor: () =>
        run((k) =>
          k
            .selectFrom('supervisors')
            .select(['id', 'username as title'])
            .where((eb) => eb.or([eb('username', 'ilike', pattern), eb.between('id', from, to)]))
            .limit(first),
        ),
      request: async () =>
        (
          await auditPages.page(
            nodeId,
            { correlationId: text, since: new Date(nowMs() - WEEK_MS).toISOString() },
            { ...page, size: 1, backward: false },
          )
        ).rows.map(({ operation, path }) => ({ id: text, title: operation ?? path })),
    };
    const hits = (Object.entries(finders) as [SearchHit['kind'], () => Promise<Found[]>][])
      .filter(([kind]) => permissions.has(SEARCH_NEEDS[kind]))
      .map(async ([kind, find]) =>
        [...new Map((await find()).map((hit) => [hit.id, { kind, within: null, ...hit }])).values()].slice(0, first),
      );
    return (await Promise.all(hits)).flat();
  }
}
