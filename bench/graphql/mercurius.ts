import jwt from '@fastify/jwt';
import fastify from 'fastify';
import mercurius, { type MercuriusLoaders } from 'mercurius';
import { shortestRecords } from '../lib/shortest-record.ts';
import { edgesOf, TYPE_DEFS } from './documents.ts';
import { peerOptions } from './peer.ts';
import { type AccountRow, openRows } from './rows.ts';

/**
 * Run as a process of its own: Mercurius with a loader, as its pages say; compiled documents where it is told so; with a file
 * for records it also checks the token of each request and keeps a record with both bodies.
 */
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
if (options.records) {
  const keep = shortestRecords(options.records);
  const startedTicks = new WeakMap<object, number>();
  await app.register(jwt, { secret: options.signingSecret ?? '', verify: { algorithms: ['HS256'], cache: true } });
  app.addHook('onRequest', async (request) => {
    if (request.url === '/health') return;
    startedTicks.set(request.raw, performance.now());
    await request.jwtVerify();
  });
  app.addHook('onSend', (request, _reply, payload, done) => {
    const startedTick = startedTicks.get(request.raw);
    if (startedTick === undefined) return void done();
    const recorded = { requestBody: JSON.stringify(request.body), responseBody: String(payload) };
    keep({ req: request.raw, startedTick, ...recorded }, () => done());
  });
}
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
