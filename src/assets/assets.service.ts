import type { Db } from '../db.ts';
import { notFoundRefusal } from '../errors/refusal.ts';
import { type Page, type PageRequest, pageOf, pageRead } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';
import { isoFromPg } from '../lib/pg-time.ts';

/** A tokenized asset as the table has it; times are PostgreSQL's text in UTC, to the microsecond. */
export interface AssetRow {
  id: string;
  name: string;
  symbol: string;
  type: string;
  node_id: string;
  network_id: string;
  contract_address: string | null;
  status: string;
  created_at: string;
  updated_at: string;
}

const columns = [
  'id',
  'name',
  'symbol',
  'type',
  'node_id',
  'network_id',
  'contract_address',
  'status',
  'created_at',
  'updated_at',
] as const;

/** Reads the tokenized assets of a node. */
export class Assets {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * An asset as REST shows it (decisions: the other routes).
   * @throws RefusalError not_found for an id that is unknown or of another node.
   */
  async view(nodeId: string, id: string): Promise<AssetRow> {
    const [row] = await this.byIds(nodeId, [id]);
    if (!row) throw notFoundRefusal();
    return { ...row, created_at: isoFromPg(row.created_at), updated_at: isoFromPg(row.updated_at) };
  }

  /** The assets of these ids, in no order; those of other nodes are not among them. */
  byIds(nodeId: string, ids: readonly string[]): Promise<AssetRow[]> {
    return this.#db.forNode(nodeId).run((k) => k.selectFrom('assets').select(columns).where('id', 'in', ids));
  }

  /** A page of a node's assets by keyset, oldest first. */
  async page(nodeId: string, request: PageRequest): Promise<Page<AssetRow>> {
    const rows = await this.#db
      .forNode(nodeId)
      .run((k) => keysetPage(k.selectFrom('assets').select(columns), pageRead(request), ['created_at', 'id']));
    return pageOf(rows, request);
  }

  /** How many assets a node has. */
  async count(nodeId: string): Promise<number> {
    const [counted] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('assets').select((eb) => eb.fn.countAll<string>().as('total')));
    return Number(counted?.total ?? 0);
  }
}
