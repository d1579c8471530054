import type { Selectable } from 'kysely';
import { isoFromPg } from '../../lib/instants.ts';
import { keysetList } from '../../platform/database/keyset-list.ts';
import { notFound } from '../../platform/errors.ts';
import type { Tables } from '../../tables/tables.ts';

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

/** A tokenized asset as read from the table; times are PostgreSQL's text in UTC, to the microsecond. */
export type AssetRow = Pick<Selectable<Tables['assets']>, (typeof columns)[number]>;

const AssetList = keysetList({ rows: (k) => k.selectFrom('assets').select(columns), order: ['created_at', 'id'] });

/** Reads the tokenized assets of a tenant by keyset, oldest first. */
export class Assets extends AssetList {
  /**
   * Returns one asset as `assetView` shows it.
   * @throws Refusal `not_found` when the id is unknown or belongs to another tenant.
   */
  async view(nodeId: string, id: string): Promise<AssetRow> {
    const row = await this.find(nodeId, id);
    if (!row) throw notFound();
    return assetView(row);
  }
}

/** Returns an asset as REST and the MCP tools show it: with ISO 8601 times to the millisecond. */
export function assetView(row: AssetRow): AssetRow {
  const { id, name, symbol, type, node_id, network_id, contract_address, status } = row;
  return {
    ...{ id, name, symbol, type, node_id, network_id, contract_address, status },
    created_at: isoFromPg(row.created_at),
    updated_at: isoFromPg(row.updated_at),
  };
}
