import { z } from 'zod';
import { IDS } from '../../lib/example-ids.ts';
import { columnsOf, instant, text, uuid, viewOf } from '../../lib/fields.ts';
import { keysetList } from '../../platform/database/keyset-list.ts';
import { orNotFound } from '../../platform/errors.ts';

/** The fields of a tokenized asset, on every interface. */
export const asset = z.strictObject({
  id: uuid({ description: 'The UUID.', example: IDS.asset_id }),
  name: text({ description: 'The display name.', example: 'Harbour Bond 2030' }),
  symbol: text({ description: "The token's symbol.", example: 'HB30' }),
  type: text({ description: 'Such as `bond`; more values may be added.', example: 'bond' }),
  node_id: uuid({ description: 'The tenant (node) that it belongs to.', example: IDS.node_id }),
  network_id: uuid({ description: 'The network that its contract is on.', example: IDS.network_id }),
  contract_address: text({ description: "The contract's address; null before it is tokenized." }).nullable(),
  status: text({ description: 'Such as `draft`; more values may be added.', example: 'active' }),
  created_at: instant({ description: 'When it was created.', example: '2026-11-01T08:00:00.000Z' }),
  updated_at: instant({ description: 'When it was last changed.', example: '2026-11-20T16:45:30.250Z' }),
});

/** A tokenized asset as read from the table; times are PostgreSQL's text in UTC, to the microsecond. */
export type AssetRow = z.output<typeof asset>;

const assetView = viewOf(asset);

/** Reads the tokenized assets of a tenant by keyset, oldest first. */
export class Assets extends keysetList({
  rows: (k) => k.selectFrom('assets').select(columnsOf(asset)),
  order: ['created_at', 'id'],
}) {
  /**
   * Returns one asset as REST shows it.
   * @throws Refusal `not_found` when the id is unknown or belongs to another tenant.
   */
  async view(nodeId: string, id: string): Promise<AssetRow> {
    return assetView(orNotFound(await this.find(nodeId, id)));
  }
}
