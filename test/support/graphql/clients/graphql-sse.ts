import { print } from 'graphql';
import { type Client, createClient, type RequestParams } from 'graphql-sse';
import { type Door, lost, RETRIES, type RealClient, resuming, soon, type Told } from './real-client.ts';

/** graphql-sse with a connection of its own for each operation. */
export function eventClient({ url, token, fetch: fetchFn }: Door): Client {
  return createClient({
    url,
    headers: () => ({ authorization: `Bearer ${token}` }),
    fetchFn,
    retryAttempts: RETRIES,
    retry: soon,
  });
}

/** A `subscribe` of graphql-sse that comes back with the last cursor. */
export function resumingEvents(client: Client) {
  return resuming<RequestParams>((payload, sink) => client.subscribe(payload, sink));
}

/** graphql-sse for everything. */
export function graphqlSse(door: Door): RealClient {
  const client = eventClient(door);
  return {
    async run(document, variables = {}) {
      const { value } = await client.iterate({ query: print(document), variables }).next();
      return value as Told;
    },
    subscribe(document, variables, listener) {
      return resumingEvents(client)(
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
