import { once } from 'node:events';
import { request } from 'node:http';
import { WebSocket } from 'ws';
import type { Attack, HttpRequest, SocketAttack } from './attack.ts';

/** Where attacks go, and whose they are. */
export interface Target {
  url: string;
  token: string;
}

/** What came of an attack: an HTTP answer, or the messages of a socket and the code that it was closed with, if it was. */
export type Outcome = { status: number; text: string } | { closed: number | undefined; messages: readonly string[] };

/** Sends an attack, and waits for what it must be answered, or for the end. */
export function launch(attack: Attack, { url, token }: Target): Promise<Outcome> {
  return attack.transport === 'http'
    ? send(url, attack.isAnonymous ? undefined : token, attack.request())
    : converse(attack, url, token);
}

async function send(url: string, token: string | undefined, sent: HttpRequest): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  const headers = { ...sent.headers, ...(token && { authorization: `Bearer ${token}` }) };
  const length = sent.body === undefined ? {} : { 'content-length': Buffer.byteLength(sent.body) };
  const call = request(
    `${url}/graphql${sent.query ?? ''}`,
    { method: sent.method, headers: { ...headers, ...length }, agent: false },
    (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, text: String(Buffer.concat(chunks)) });
        call.destroy();
      });
      response.on('error', reject);
    },
  );
  call.on('error', reject);
  call.end(sent.body);
  return promise;
}

async function converse(attack: SocketAttack, url: string, token: string): Promise<Outcome> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const messages: string[] = [];
  const answered = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  socket.on('message', (data) => {
    const text = String(data);
    if (text === '{"type":"connection_ack"}') return begun.resolve();
    messages.push(text);
    if ('says' in attack.expected && attack.expected.says.test(text)) answered.resolve();
  });
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  // It may be closed while more is sent.
  socket.on('error', () => undefined);
  await once(socket, 'open');
  if (attack.isInitialised) {
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
    await Promise.race([begun.promise, closed]);
  }
  for (const message of attack.messages()) socket.send(message, () => undefined);
  const code = await Promise.race([closed, answered.promise]);
  socket.terminate();
  return { closed: code ?? undefined, messages };
}
