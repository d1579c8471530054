import type { Kysely } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { isoFromPg, isoFromPgOrNull } from '../lib/pg-time.ts';
import type { Scoped } from '../lib/tenant-db.ts';
import { AccountCounts, type Counted } from './account-counts.ts';

/** An account as REST shows it (specification section 2.5). */
export interface AccountView {
  id: string;
  name: string;
  node_id: string;
  type: string;
  status: number;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

export interface AccountPage {
  data: AccountView[];
  total: number;
}

interface PageRequest {
  nodeId: string;
  page: number;
  limit: number;
  includeDeleted: boolean;
}

const columns = ['id', 'name', 'node_id', 'type', 'status', 'created_at', 'updated_at', 'deleted_at'] as const;

/** Rows that a page near the beginning skips; for one behind them the counts say where to begin. */
const SKIPPED_AT_MOST = 256n;

/** Reads the accounts of a node. */
export class Accounts {
  readonly #live: PageQueries;
  readonly #all: PageQueries;

  constructor(db: Db) {
    this.#live = pageQueries(db, 'live');
    this.#all = pageQueries(db, 'total');
  }

  /**
   * A page by number, oldest first, with the exact total over all pages; past the end it is empty. A page costs hardly
   * more the further it is.
   */
  async page({ nodeId, page, limit, includeDeleted }: PageRequest): Promise<AccountPage> {
    const { counts, first, from } = includeDeleted ? this.#all : this.#live;
    const offset = BigInt(page - 1) * BigInt(limit);
    if (offset <= SKIPPED_AT_MOST) {
      const total = await counts.total(nodeId);
      if (offset >= BigInt(total)) return { data: [], total };
      const rows = await first.run(nodeId, { limit, offset: offset.toString() });
      return { data: rows.map(toView), total };
    }
    const place = await counts.place(nodeId, offset);
    if (!place || offset >= BigInt(place.total)) return { data: [], total: place?.total ?? 0 };
    const { at, id, before, total } = place;
    const rows = await from.run(nodeId, { at, id, limit, offset: (offset - BigInt(before)).toString() });
    return { data: rows.map(toView), total };
  }
}

type PageQueries = ReturnType<typeof pageQueries>;

function pageQueries(db: Db, counted: Counted) {
  type Values = <Value>(name: 'limit' | 'offset' | 'at' | 'id') => Value;
  const rows = (k: Kysely<Scoped<Tables>>, value: Values) =>
    k
      .selectFrom('accounts')
      .select(columns)
      .$if(counted === 'live', (query) => query.where('deleted_at', 'is', null))
      .orderBy('created_at')
      .orderBy('id')
      .limit(value<number>('limit'))
      .offset(value<number>('offset'));
  return {
    counts: new AccountCounts(db, counted),
    first: db.prepare((k, value: <Value>(name: 'limit' | 'offset') => Value) => rows(k, value as Values)),
    from: db.prepare((k, value: Values) =>
      rows(k, value).where((eb) =>
        eb(eb.refTuple('created_at', 'id'), '>=', eb.tuple(value<string>('at'), value<string>('id'))),
      ),
    ),
  };
}

function toView(row: AccountView): AccountView {
  return {
    id: row.id,
    name: row.name,
    node_id: row.node_id,
    type: row.type,
    status: row.status,
    created_at: isoFromPg(row.created_at),
    updated_at: isoFromPg(row.updated_at),
    deleted_at: isoFromPgOrNull(row.deleted_at),
  };
}
