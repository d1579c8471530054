import { print } from 'graphql';
import { type Client, createClient, type SubscribePayload } from 'graphql-ws';
import { WebSocket } from 'ws';
import { type Door, lost, RETRIES, type RealClient, resuming, soon, type Told } from './real-client.ts';

/** graphql-ws, which takes its token afresh for each connection. */
export function socketClient({ url, token }: Door): Client {
  return createClient({
    url: url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: () => ({ authorization: `Bearer ${token}` }),
    retryAttempts: RETRIES,
    retryWait: soon,
    shouldRetry: () => true,
  });
}

/** A `subscribe` of graphql-ws that comes back with the last cursor. */
export function resumingSocket(client: Client) {
  return resuming<SubscribePayload>((payload, sink) => client.subscribe(payload, sink));
}

/** graphql-ws for everything. */
export function graphqlWs(door: Door): RealClient {
  const client = socketClient(door);
  return {
    async run(document, variables = {}) {
      const { value } = await client.iterate({ query: print(document), variables }).next();
      return value as Told;
    },
    subscribe(document, variables, listener) {
      return resumingSocket(client)(
        { query: print(document), variables },
        {
          next: (result: Told) => listener.told(result),
          error: (error) => lost(listener, error),
          complete: () => listener.over(),
        },
      );
    },
    [Symbol.asyncDispose]: async () => client.dispose(),
  };
}
