import { withPostgres } from '../../test/support/services/pg-client.ts';
import { SIGNING_SECRET } from '../gateway/contenders.ts';
import { productionEnv } from '../gateway/production.ts';
import { backendCpu, spentBetween } from '../graphql/postgres-cpu.ts';
import type { Load } from '../lib/load.ts';
import type { ProductOptions, Server } from '../lib/product.ts';
import { cpuOfLoad } from '../lib/round.ts';
import type { World } from '../lib/world.ts';

export { spentBetween as spentIn };

/** How to start a gateway in production on a world whose schema and topics exist; its connections go by a name. */
export function gatewayOn(world: World): ProductOptions {
  const own = { PORTCULLIS_ROLE: 'gateway', JWT_SECRET_USER: SIGNING_SECRET, PGAPPNAME: 'portcullis' };
  return { ...world, env: { ...productionEnv(world), ...own } };
}

/** One round of a load: microseconds of CPU a request, of the server and of its connections to PostgreSQL. */
export function costOfLoad({ servers: { DATABASE_URL = '' } }: World, server: Server, load: Load) {
  return withPostgres(DATABASE_URL, async (client) => {
    const before = await backendCpu(client, 'portcullis');
    const { cpuUs: productUs } = await cpuOfLoad(server, load);
    const postgresMs = spentBetween(before, await backendCpu(client, 'portcullis'));
    return { productUs, postgresUs: (postgresMs * 1_000) / load.requests };
  });
}
