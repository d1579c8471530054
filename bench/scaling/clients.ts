import { productOf, requestOf, SIGNING_SECRET, startUpstream, tokenOf } from '../gateway/contenders.ts';
import { productionEnv } from '../gateway/production.ts';
import { startProduct } from '../lib/product.ts';
import { cpuOfLoad } from '../lib/round.ts';
import { deleteTopics, migrateWorld } from '../lib/topics.ts';
import { insertCallers } from './insert-callers.ts';
import { type Curve, headOf, measureSizes, rowsOf } from './rounds.ts';

const CONNECTIONS = 32;
const NAMES = ['CPU of the gateway, µs'];

/** A proxied GET of so many clients in turn, each with a token and limits of its own. */
export const measureClients: Curve = async (open, { rounds, requests, clients }) => {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await open());
  const upstream = stack.adopt(await startUpstream(world.dataDir), (server) => server.stop());
  const { env, ...product } = await productOf(world, { accounts: upstream.url });
  await migrateWorld(world);
  stack.defer(() => deleteTopics(world));
  await insertCallers(world, { clients: Math.max(...clients), tenants: 0 });
  const inProduction = { ...env, ...productionEnv(world), PORTCULLIS_ROLE: 'gateway' };
  const server = stack.adopt(await startProduct({ ...product, env: inProduction }), (started) => started.stop());
  const token = await tokenOf(server, world);
  const title = 'clients that ask in turn';
  const measured = await measureSizes(title, clients, rounds, async (size) => {
    const callers = { clients: size, tenants: 0 };
    const load = { ...requestOf(server, token), tokenSecret: SIGNING_SECRET, callers, connections: CONNECTIONS };
    const { cpuUs } = await cpuOfLoad(server, { ...load, requests: 4 * requests });
    return { [NAMES[0] ?? '']: cpuUs };
  });
  return [{ head: headOf(title, NAMES), rows: rowsOf(measured, NAMES) }];
};
