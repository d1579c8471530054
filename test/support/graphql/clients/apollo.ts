import { readFileSync } from 'node:fs';
import {
  ApolloClient,
  ApolloLink,
  CombinedGraphQLErrors,
  type ErrorLike,
  HttpLink,
  InMemoryCache,
} from '@apollo/client';
import { BatchHttpLink } from '@apollo/client/link/batch-http';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { buildSchema, type GraphQLSchema, isAbstractType, OperationTypeNode } from 'graphql';
import { resumingSocket, socketClient } from './graphql-ws.ts';
import { type Door, isMutation, lost, type RealClient, type Told } from './real-client.ts';

/** Apollo Client matches fragments on an interface or a union only when it has been told who belongs to them. */
const POSSIBLE_TYPES = possibleTypesOf(buildSchema(readFileSync('schema/schema.graphql', 'utf8')));

/** Apollo Client, with a request for each query and mutation. */
export function apollo(door: Door): RealClient {
  return apolloOver(new HttpLink(httpOptions(door)), door);
}

/** Apollo Client, with what is asked for together in one request. */
export function apolloInBatches(door: Door): RealClient {
  return apolloOver(new BatchHttpLink({ ...httpOptions(door), batchInterval: 5 }), door);
}

function httpOptions({ url, token, fetch }: Door) {
  return { uri: url, fetch, headers: { authorization: `Bearer ${token}` } };
}

function apolloOver(http: ApolloLink, door: Door): RealClient {
  const socket = socketClient(door);
  const subscriptions = new GraphQLWsLink({ ...socket, subscribe: resumingSocket(socket) });
  const client = new ApolloClient({
    cache: new InMemoryCache({ possibleTypes: POSSIBLE_TYPES }),
    link: ApolloLink.split(
      ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
      subscriptions,
      http,
    ),
  });
  return {
    async run(document, variables = {}) {
      return isMutation(document)
        ? toldOf(await client.mutate({ mutation: document, variables, errorPolicy: 'all' }))
        : toldOf(await client.query({ query: document, variables, fetchPolicy: 'no-cache', errorPolicy: 'all' }));
    },
    subscribe(document, variables, listener) {
      const subscription = client.subscribe({ query: document, variables, fetchPolicy: 'no-cache' }).subscribe({
        next: (result) => listener.told(toldOf(result)),
        error: (error) => lost(listener, error),
        complete: () => listener.over(),
      });
      return () => subscription.unsubscribe();
    },
    async [Symbol.asyncDispose]() {
      client.stop();
      await socket.dispose();
    },
  };
}

function toldOf({ data, error }: { data?: unknown; error?: ErrorLike | undefined }): Told {
  if (!error) return { data };
  if (!CombinedGraphQLErrors.is(error)) throw error;
  return { data, errors: error.errors };
}

function possibleTypesOf(schema: GraphQLSchema): Record<string, string[]> {
  const abstract = Object.values(schema.getTypeMap()).filter(isAbstractType);
  return Object.fromEntries(abstract.map((type) => [type.name, schema.getPossibleTypes(type).map(({ name }) => name)]));
}
