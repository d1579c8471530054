import { exchangeOf } from '../../gateway/exchange/exchange.ts';
import type { GraphqlServer } from '../graphql/graphql-server.ts';
import { route } from './route.ts';

function graphqlRoute(method: 'GET' | 'POST') {
  return route({
    method,
    path: '/graphql',
    batch: true,
    handlers: ({ graphql }: { graphql: Pick<GraphqlServer, 'handle'> }) => [(req) => graphql.handle(exchangeOf(req))],
  });
}

/** Serves GraphQL over GET: queries, subscriptions over SSE and WebSockets, and GraphiQL. */
export const getGraphql = graphqlRoute('GET');

/** The routes of GraphQL. They have no OpenAPI operation: the GraphQL schema describes them. */
export const graphqlRoutes = [getGraphql, graphqlRoute('POST')];
