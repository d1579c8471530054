import type { Db } from '../db.ts';
import { isoFromPg, isoFromPgOrNull } from '../lib/pg-time.ts';

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

/** Reads the accounts of a node. */
export class Accounts {
  readonly #live: PageQueries;
  readonly #all: PageQueries;

  constructor(db: Db) {
    this.#live = pageQueries(db, false);
    this.#all = pageQueries(db, true);
  }

  /** A page by number, oldest first, with the exact total over all pages; past the end it is empty. */
  async page({ nodeId, page, limit, includeDeleted }: PageRequest): Promise<AccountPage> {
    const { count, rows } = includeDeleted ? this.#all : this.#live;
    const [counted] = await count.run(nodeId, {});
    const total = Number(counted?.total ?? 0);
    const offset = BigInt(page - 1) * BigInt(limit);
    if (offset >= BigInt(total)) return { data: [], total };
    const data = await rows.run(nodeId, { limit, offset: offset.toString() });
    return { data: data.map(toView), total };
  }
}

type PageQueries = ReturnType<typeof pageQueries>;

function pageQueries(db: Db, includeDeleted: boolean) {
  return {
    count: db.prepare((k) =>
      k
        .selectFrom('accounts')
        .select((eb) => eb.fn.countAll<string>().as('total'))
        .$if(!includeDeleted, (query) => query.where('deleted_at', 'is', null)),
    ),
    rows: db.prepare((k, value: <Value>(name: 'limit' | 'offset') => Value) =>
      k
        .selectFrom('accounts')
        .select(columns)
        .$if(!includeDeleted, (query) => query.where('deleted_at', 'is', null))
        .orderBy('created_at')
        .orderBy('id')
        .limit(value<number>('limit'))
        .offset(value<number>('offset')),
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
