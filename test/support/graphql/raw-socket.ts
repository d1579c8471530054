import { once } from 'node:events';
import { WebSocket } from 'ws';

/** A graphql-transport-ws socket of one token. */
export interface RawSocket extends Disposable {
  /** The first message that an operation is answered with, as it was sent, its id apart. */
  answerTo(
    query: string,
    variables?: Record<string, unknown>,
  ): Promise<{ text: string; type: string; payload: unknown }>;
}

/** Opens one without a client library, so that nothing stands between a test and what is sent. */
export async function openSocket(url: string, token: string): Promise<RawSocket> {
  const socket = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws');
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  await once(socket, 'message');
  const waiting = new Map<string, (text: string) => void>();
  socket.on('message', (data) => {
    const text = String(data);
    const { id } = JSON.parse(text);
    waiting.get(id)?.(text.replace(`"id":"${id}"`, '"id":"-"'));
    waiting.delete(id);
  });
  let serial = 0;
  return {
    async answerTo(query, variables = {}) {
      serial += 1;
      const id = `operation-${serial}`;
      const answer = new Promise<string>((resolve) => waiting.set(id, resolve));
      socket.send(JSON.stringify({ type: 'subscribe', id, payload: { query, variables } }));
      const text = await answer;
      socket.send(JSON.stringify({ type: 'complete', id }));
      return { text, ...JSON.parse(text) };
    },
    [Symbol.dispose]: () => socket.terminate(),
  };
}
