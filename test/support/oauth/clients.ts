import { randomBytes, randomUUID } from 'node:crypto';
import type { Insertable, Updateable } from 'kysely';
import { hashClientSecret } from '../../../src/access/clients/clients.service.ts';
import type { Tables } from '../../../src/tables/tables.ts';
import type { Portcullis } from '../harness.ts';

export interface ClientCredentials {
  client_id: string;
  client_secret: string;
}

/** A client of the demo node (or another) with all grants, two scopes and no limits, but for what is given. */
export async function addClient(
  p: Portcullis,
  settings: Partial<Insertable<Tables['clients']>> = {},
): Promise<ClientCredentials> {
  const clientId = randomUUID();
  const nodeId = settings.node_id ?? p.demo.node_id;
  const row = {
    id: clientId,
    node_id: nodeId,
    name: 'Test',
    grant_types: ['password', 'client_credentials', 'refresh_token'],
    scopes: ['accounts:read', 'wallets:read'],
    ...settings,
  };
  await rows(p).run((k) => k.insertInto('clients').values(row));
  return { client_id: clientId, client_secret: await addSecret(p, clientId, nodeId) };
}

/** One more secret of a client. */
export async function addSecret(p: Portcullis, clientId: string, nodeId: string, expiresAt?: string): Promise<string> {
  const secret = randomBytes(32).toString('base64url');
  const hash = hashClientSecret(p.service.context.secrets.pepper.current, secret);
  const row = { hash, client_id: clientId, node_id: nodeId, expires_at: expiresAt ?? null };
  await rows(p).run((k) => k.insertInto('client_secrets').values(row));
  return secret;
}

export async function updateClient(p: Portcullis, clientId: string, set: Updateable<Tables['clients']>): Promise<void> {
  await rows(p).run((k) => k.updateTable('clients').set(set).where('id', '=', clientId));
  p.service.context.directory.forget(clientId);
}

/** The id of the demo's supervisor. */
export async function supervisorId(p: Portcullis): Promise<string> {
  const { node_id: nodeId, supervisor } = p.demo;
  const found = await rows(p).run((k) =>
    k.selectFrom('supervisors').select('id').where('node_id', '=', nodeId).where('username', '=', supervisor.username),
  );
  return found[0]?.id ?? '';
}

/** The door around the tenants, for arranging what no interface can yet. */
export function rows(p: Portcullis) {
  return p.service.context.database.db.unscoped('test');
}
