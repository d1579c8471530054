import { withPostgres } from '../../test/support/services/pg-client.ts';
import { type Callers, CLIENT, TENANT } from '../lib/callers.ts';
import { readDemoFile } from '../lib/product.ts';
import type { World } from '../lib/world.ts';

/** Inserts the tenants, and the clients with the limits and scopes of the demo's client. */
export async function insertCallers({ dataDir, servers }: World, { clients, tenants }: Callers): Promise<void> {
  const { client } = readDemoFile(dataDir);
  await withPostgres(servers.DATABASE_URL ?? '', async (database) => {
    await database.query(
      `insert into nodes (id, name) select ('${TENANT}' || lpad(n::text, 12, '0'))::uuid, 'tenant ' || n
        from generate_series(0, $1::integer - 1) n`,
      [tenants],
    );
    await database.query(
      `insert into clients (id, node_id, name, grant_types, scopes, requests_per_second, requests_per_minute,
          requests_per_hour, monthly_limit)
        select ('${CLIENT}' || lpad(n::text, 12, '0'))::uuid,
          case when $2::integer = 0 then node_id
            else ('${TENANT}' || lpad((n % greatest($2::integer, 1))::text, 12, '0'))::uuid end,
          'client ' || n, grant_types, scopes, requests_per_second, requests_per_minute, requests_per_hour,
          monthly_limit
        from clients, generate_series(0, $1::integer - 1) n where id = $3::uuid`,
      [clients, tenants, client.client_id],
    );
  });
}
