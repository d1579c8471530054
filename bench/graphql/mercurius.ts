import fastify from 'fastify';
import mercurius, { type MercuriusLoaders } from 'mercurius';
import { edgesOf, TYPE_DEFS } from './documents.ts';
import { peerOptions } from './peer.ts';
import { type AccountRow, openRows } from './rows.ts';

/** Run as a process of its own: Mercurius with a loader, as its pages say; compiled documents where it is told so. */
const options = peerOptions();
const rows = openRows(options);

interface WalletsQuery {
  obj: AccountRow;
  params: { first: number };
}

const loaders: MercuriusLoaders = {
  Account: {
    wallets: {
      async loader(queries: WalletsQuery[]) {
        const ids = queries.map(({ obj }) => obj.id);
        return (await rows.wallets(ids, queries[0]?.params.first ?? 0)).map(edgesOf);
      },
      // Its cache would write each account as JSON, to remember it by; no account is asked for twice.
      opts: { cache: false },
    },
  },
};

const app = fastify();
await app.register(mercurius, {
  schema: TYPE_DEFS,
  resolvers: {
    Query: { accounts: async (_root: unknown, { first }: { first: number }) => edgesOf(await rows.accounts(first)) },
  },
  loaders,
  jit: options.jit,
});
app.get('/health', async () => ({}));
await app.listen({ port: options.port, host: '127.0.0.1' });
