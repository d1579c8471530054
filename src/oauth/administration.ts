import type { Db } from '../db.ts';
import { RefusalError } from '../errors/refusal.ts';
import { isUuid } from '../lib/input.ts';
import {
  type AdministeredTarget,
  type AdministrativeChange,
  type Administrator,
  administrationRefusal,
} from './administration.rules.ts';
import type { ClientBounds } from './client-bounds.rules.ts';

/** @throws RefusalError where the rules of administration say so, the administering client's own bounds read anew. */
export async function refuseAdministration(
  db: Db,
  nodeId: string,
  by: Administrator,
  change: AdministrativeChange,
  target: AdministeredTarget,
): Promise<void> {
  const refusal = administrationRefusal(by, change, target, await boundsOf(db, nodeId, by.ownClientId));
  if (refusal) throw new RefusalError(refusal);
}

async function boundsOf(db: Db, nodeId: string, clientId: string | undefined): Promise<ClientBounds | undefined> {
  if (clientId === undefined || !isUuid(clientId)) return undefined;
  const [client] = await db.forNode(nodeId).run((k) => k.selectFrom('clients').selectAll().where('id', '=', clientId));
  return client;
}
