import { type Client, createClient, type RequestParams } from 'graphql-sse';
import { type Door, RETRIES, resuming, soon } from './real-client.ts';

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
