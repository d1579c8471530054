import {
  type AnyVariables,
  Client,
  type ClientOptions,
  type Exchange,
  fetchExchange,
  type OperationResult,
  subscriptionExchange,
} from '@urql/core';
import { eventClient, resumingEvents } from './graphql-sse.ts';
import { resumingSocket, socketClient } from './graphql-ws.ts';
import {
  type Door,
  isMutation,
  type RealClient,
  type resuming,
  soon,
  type Told,
  type Variables,
} from './real-client.ts';

/** urql with POST, and subscriptions through graphql-ws. */
export function urqlWithSockets(door: Door): RealClient {
  const socket = socketClient(door);
  const client = urql(door, { exchanges: [fetchExchange, forwardedTo(resumingSocket(socket))] });
  return realClient(client, subscribing(client), async () => socket.dispose());
}

/** urql with GET for queries, and subscriptions through graphql-sse. */
export function urqlWithEvents(door: Door): RealClient {
  const events = eventClient(door);
  const exchanges = [fetchExchange, forwardedTo(resumingEvents(events))];
  const client = urql(door, { exchanges, preferGetMethod: true });
  return realClient(client, subscribing(client), async () => events.dispose());
}

/** urql alone, its own event streams included: those it does not open again. */
export function urqlAlone(door: Door): RealClient {
  const client = urql(door, { exchanges: [fetchExchange], fetchSubscriptions: true });
  return realClient(client, subscribingAgain(client), async () => undefined);
}

function urql({ url, token, fetch }: Door, options: Pick<ClientOptions, 'exchanges'> & Partial<ClientOptions>): Client {
  return new Client({
    url,
    fetch,
    fetchOptions: () => ({ headers: { authorization: `Bearer ${token}` } }),
    ...options,
  });
}

type Subscribe = ReturnType<typeof resuming<{ query: string; variables: Variables }>>;

function forwardedTo(subscribe: Subscribe): Exchange {
  return subscriptionExchange({
    forwardSubscription: ({ query = '', variables = {} }) => ({
      subscribe: (sink) => ({
        unsubscribe: subscribe({ query, variables }, sink),
      }),
    }),
  });
}

function realClient(client: Client, subscribe: RealClient['subscribe'], close: () => Promise<void>): RealClient {
  return {
    async run(document, variables = {}) {
      const running = isMutation(document) ? client.mutation(document, variables) : client.query(document, variables);
      return toldOf(await running.toPromise());
    },
    subscribe,
    [Symbol.asyncDispose]: close,
  };
}

/** The end of a subscription is a result without a next one, which repeats the last. */
function subscribing(client: Client): RealClient['subscribe'] {
  return (document, variables, listener) => {
    const { unsubscribe } = client.subscription(document, variables).subscribe((result) => {
      if (result.hasNext && !result.error?.networkError) listener.told(toldOf(result));
      if (!result.hasNext || result.error) listener.over();
    });
    return unsubscribe;
  };
}

/** Subscribes anew behind the last cursor whenever the stream has ended, as it never does by itself. */
function subscribingAgain(client: Client): RealClient['subscribe'] {
  const subscribe = subscribing(client);
  return (document, variables, listener) => {
    let [after, isRefused, isEnded] = [variables.after, false, false];
    let end = (): void => undefined;
    const begin = (): void => {
      end = subscribe(document, after === undefined ? variables : { ...variables, after }, {
        told(result) {
          isRefused = result.errors !== undefined;
          after = result.data?.transactionUpdates?.cursor ?? after;
          listener.told(result);
        },
        over() {
          if (isRefused || after === undefined) listener.over();
          else soon().then(() => isEnded || begin());
        },
      });
    };
    begin();
    return () => {
      isEnded = true;
      end();
    };
  };
}

function toldOf({ data, error }: OperationResult<unknown, AnyVariables>): Told {
  if (error?.networkError) throw error.networkError;
  return error ? { data, errors: error.graphQLErrors } : { data };
}
