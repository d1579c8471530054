import { randomInt } from 'node:crypto';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Credentials } from './kill-fixture.ts';
import type { Journal, Recorded, Sent } from './kill-journal.ts';
import { type Kind, kindsOf } from './kill-kinds.ts';

const CLIENTS = 32;
const OPERATIONS_OF_A_SOCKET = 5;
/** After an answer that did not come: the instance may be dying. */
const PAUSE_MS = 5;

/** Clients at work on one life of an instance; stopping lets what is under way end, and sends nothing more. */
export type Load = ReturnType<typeof startLoad>;

interface LoadDependencies {
  baseUrl: string;
  credentials: Credentials;
  journal: Journal;
}

/** Sends requests of all kinds at random over kept connections, and operations over sockets. */
export function startLoad({ baseUrl, credentials, journal }: LoadDependencies) {
  const kinds = kindsOf(credentials).flatMap((kind) => Array<Kind>(kind.share).fill(kind));
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  let isOver = false;

  async function client(): Promise<void> {
    while (!isOver) {
      const kind = kinds[randomInt(kinds.length)];
      if (!kind) throw new Error('there is one');
      const id = `audited-${journal.sent.size}`;
      const entry = journal.begin(id, kind.name, kind.operations, kind.isTrue);
      if (kind.leaves !== undefined) {
        if (await leave(baseUrl, kind, id)) journal.leave(entry);
        continue;
      }
      const status = await ask(baseUrl, agent, kind, id);
      if (status === undefined) await delay(PAUSE_MS);
      else journal.answer(entry, status);
    }
  }

  async function sockets(): Promise<void> {
    while (!isOver) {
      const id = `audited-${journal.sent.size}`;
      const entry = journal.begin(id, 'a socket', 1, tellsOfSocket);
      if (await talk(baseUrl, credentials.token, id, entry)) journal.leave(entry);
      else await delay(PAUSE_MS);
    }
  }

  const clients = [sockets(), ...Array.from({ length: CLIENTS }, client)];
  return {
    async stop(): Promise<void> {
      isOver = true;
      await Promise.all(clients);
      agent.destroy();
    },
  };
}

/** The operations have a 200 each, the upgrade a 101 once the socket is closed. */
function tellsOfSocket({ status_code: status, aborted }: Recorded): boolean {
  return (status === 200 || status === 101) && !aborted;
}

/** The status, once the whole answer has come; undefined where it did not. */
function ask(baseUrl: string, agent: Agent, kind: Kind, id: string): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const { method, path, body } = kind;
  const length = body === '' ? {} : { 'content-length': Buffer.byteLength(body) };
  const headers = { ...kind.headers, ...length, 'x-correlation-id': id };
  const call = request(`${baseUrl}${path}`, { method, agent, headers });
  call.once('error', () => resolve(undefined));
  call.once('response', (response) => {
    response.once('error', () => resolve(undefined));
    response.once('close', () => resolve(response.complete ? response.statusCode : undefined));
    response.resume();
  });
  call.end(body);
  return promise;
}

/** Leaves as its kind says; false where the connection broke before. */
function leave(baseUrl: string, { method, path, headers, body, leaves }: Kind, id: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const { hostname, port, host } = new URL(baseUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  const go = () => {
    resolve(true);
    socket.destroy();
  };
  socket.once('error', () => socket.destroy());
  socket.once('close', () => resolve(false));
  const fields = Object.entries({ host, ...headers, 'x-correlation-id': id, 'content-length': body.length });
  const head = `${method} ${path} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
  const sent = leaves === 'half sent' ? body.slice(body.length / 2) : body;
  if (leaves === 'begun') socket.once('data', go).write(head);
  else socket.write(head + sent, go);
  return promise;
}

/** Sends one operation after the other over a socket and closes it; false where it broke before. */
function talk(baseUrl: string, token: string, id: string, entry: Sent): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const headers = { 'x-correlation-id': id };
  const socket = new WebSocket(`${baseUrl.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', { headers });
  const say = (message: object) => socket.send(JSON.stringify(message));
  let ended = 0;
  const next = () => {
    if (ended === OPERATIONS_OF_A_SOCKET) return socket.close(1000);
    entry.most += 1;
    say({ type: 'subscribe', id: `${ended}`, payload: { query: '{ me { subject } }' } });
  };
  socket.on('open', () => say({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  socket.on('message', (data) => {
    const { type } = JSON.parse(String(data));
    if (type === 'connection_ack') return next();
    if (type === 'ping') return say({ type: 'pong' });
    if (type !== 'complete' && type !== 'error') return undefined;
    ended += 1;
    entry.least += 1;
    return next();
  });
  socket.on('error', () => undefined);
  socket.on('close', () => resolve(ended === OPERATIONS_OF_A_SOCKET));
  return promise;
}
