import { type Client, createClient, type SubscribePayload } from 'graphql-ws';
import { WebSocket } from 'ws';
import { type Door, RETRIES, resuming, soon } from './real-client.ts';

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
