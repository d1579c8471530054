import { withPostgres } from '../../test/support/services/pg-client.ts';
import { readDemoFile } from '../lib/product.ts';
import { deleteTopics, migrateWorld } from '../lib/topics.ts';
import { onEachStores, seedWorld, type World } from '../lib/world.ts';

const ACCOUNTS = 10_000;

/** Older than the accounts of the demo, so that these come first. Every fiftieth is deleted. */
const INSERT_ACCOUNTS = `
  insert into accounts (id, node_id, name, type, status, created_at, updated_at, deleted_at)
  select gen_random_uuid(), case when n % 10 < 6 then $1::uuid else $2 end, 'Customer ' || n, 'customer-segregated', 1,
    at, at, case when n % 50 = 7 then at end
  from (select n, timestamptz '2020-01-01 00:00:00+00' + n * interval '1 minute' as at
    from generate_series(1, $3::int) n) rows`;

/** Two to five of each account, on the chains in turn. */
const INSERT_WALLETS = `
  insert into wallets (id, node_id, account_id, chain_id, created_at, updated_at)
  select gen_random_uuid(), account.node_id, account.id, chain.ids[1 + n % array_length(chain.ids, 1)], at, at
  from (select *, row_number() over (order by created_at, id) as place from accounts where name like 'Customer %') account
  cross join (select array_agg(id order by name) as ids from chains) chain
  cross join lateral generate_series(1, (2 + place % 4)::int) n
  cross join lateral (select account.created_at + n * interval '1 second' as at) made`;

/** A world on servers that has been filled. */
export interface FilledWorld extends World {
  /** The demo's node, whose accounts are asked for. */
  nodeId: string;
}

/** Calls `use` on fresh servers: seeded, the client with limits, and filled with accounts and their wallets. */
export async function onFilledWorld(use: (world: FilledWorld) => Promise<void>): Promise<void> {
  await onEachStores(['servers'], async (world) => {
    try {
      await use({ ...world, nodeId: await fill(world) });
    } finally {
      await deleteTopics(world);
    }
  });
}

/** Seeds a world on servers and fills it; returns the id of the demo's node. */
export async function fill(world: World): Promise<string> {
  await seedWorld(world, 'limits');
  // In production the product does not make its topics itself.
  await migrateWorld(world);
  const { node_id: nodeId, other_node: other } = readDemoFile(world.dataDir);
  await withPostgres(world.servers.DATABASE_URL ?? '', async (client) => {
    await client.query(INSERT_ACCOUNTS, [nodeId, other.node_id, ACCOUNTS]);
    await client.query(INSERT_WALLETS);
    await client.query('vacuum analyze');
  });
  return nodeId;
}
