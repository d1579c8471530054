import { createServer } from 'node:http';
import { postgraphile } from 'postgraphile';
import { makePgService } from 'postgraphile/adaptors/pg';
import { grafserv } from 'postgraphile/grafserv/node';
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber';
import { pgSmartTags } from 'postgraphile/utils';
import { POOL_SIZE, peerOptions } from './peer.ts';

/** Run as a process of its own: PostGraphile on the product's tables as they are, with its own preset. */
const { port, databaseUrl } = peerOptions();
const instance = postgraphile({
  extends: [PostGraphileAmberPreset],
  // It lets nobody ask for a column that no index begins with; here a partial index is of those that are not deleted.
  plugins: [
    pgSmartTags({
      kind: 'attribute',
      match: 'public.accounts.deleted_at',
      tags: { behavior: '+attribute:filterBy' },
    }),
  ],
  pgServices: [
    makePgService({
      connectionString: databaseUrl,
      schemas: ['public'],
      poolConfig: { max: POOL_SIZE },
      pubsub: false,
    }),
  ],
  grafserv: { graphqlPath: '/graphql', graphqlOverGET: true, graphiql: false, websockets: false, watch: false },
  grafast: { explain: false },
});
const server = createServer();
await instance.createServ(grafserv).addTo(server);
server.listen(port, '127.0.0.1');
