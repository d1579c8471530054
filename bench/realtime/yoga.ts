import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { execute, subscribe } from 'graphql';
import { useServer } from 'graphql-ws/use/ws';
import { createPubSub, createSchema, createYoga } from 'graphql-yoga';
import { WebSocketServer } from 'ws';
import { peerOptions, type Update } from './peer.ts';

/**
 * Run as a process of its own: GraphQL Yoga and graphql-ws as their documentation has them, an execution for each
 * subscriber. `POST /publish` publishes at once.
 */
const pubSub = createPubSub<{ all: [{ cursor: string; transaction: Update }]; one: [id: string, Update] }>();
const schema = createSchema({
  typeDefs: `
    type Query { version: String }
    type Transaction { id: ID!, status: String }
    type TransactionUpdate { cursor: String!, transaction: Transaction! }
    type Subscription { transactionUpdates: TransactionUpdate!, transaction(id: ID!): Transaction! }
  `,
  resolvers: {
    Subscription: {
      transactionUpdates: { subscribe: () => pubSub.subscribe('all'), resolve: (update) => update },
      transaction: {
        subscribe: (_root, { id }: { id: string }) => pubSub.subscribe('one', id),
        resolve: (update) => update,
      },
    },
  },
});
const yoga = createYoga({ schema, graphiql: false, landingPage: false, logging: false });
let cursor = 0;

const server = createServer((req, res) => {
  if (req.url === '/health') return void res.end();
  if (req.url !== '/publish') return void yoga(req, res);
  text(req).then((body) => {
    const update: Update = JSON.parse(body);
    cursor += 1;
    pubSub.publish('all', { cursor: `${cursor}`, transaction: update });
    pubSub.publish('one', update.id, update);
    res.end();
  });
});
useServer({ schema, execute, subscribe }, new WebSocketServer({ server, path: '/graphql' }));
server.listen(peerOptions().port, '127.0.0.1');
