import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Lab, Replica } from '../faults/lab.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const EVENT_STREAM = { ...JSON_TYPE, accept: 'text/event-stream' };
const ME = '{ me { subject } }';
const UPDATES = 'subscription { transactionUpdates { cursor } }';
const REST_MS = 100;
const ANSWER_MS = 30_000;

type Client = Lab['demo']['client'];

/** A supervisor and a client, with all that they were given. */
export interface Credentials {
  login: { access_token: string; refresh_token: string };
  /** The client through which the supervisor logged in. */
  through: Client;
  client: Client;
  api: { access_token: string; refresh_token: string };
}

/** Something that the holder was allowed to do; the time is that of `performance.now()`. */
interface Success {
  what: string;
  gateway: Replica;
  beganAtMs: number;
}

/** Somebody who uses credentials in every way, whether or not they are valid. */
export interface Holder {
  /** What has succeeded so far. */
  successes: Success[];
  /** When each of the streams and sockets that were open ended, by name and gateway. */
  ended: Map<string, number>;
  /** How many streams and sockets were opened. */
  opened: number;
  /** Completes the requests whose bodies were begun at first, and gives their statuses. */
  completeLate(): Promise<number[]>;
  stop(): Promise<void>;
}

/** How the names of the clients begin that the holder creates. */
export const STOLEN = 'stolen-';

const bearer = (token: string) => ({ ...JSON_TYPE, authorization: `Bearer ${token}` });

const creation = () => ({
  query: 'mutation($input: ClientInput!) { result: createClient(input: $input) { __typename } }',
  variables: { input: { name: `${STOLEN}${randomUUID()}`, grantTypes: ['CLIENT_CREDENTIALS'], scopes: [] } },
});

/** What the holder tries again and again; each tells whether it has succeeded. */
const ATTEMPTS: Record<string, (url: string, has: Credentials) => Promise<boolean>> = {
  'REST, login': async (url, { login }) =>
    (await answerOf(`${url}/v1/accounts`, bearer(login.access_token))).status === 200,
  'GraphQL, login': async (url, { login }) =>
    (await answerOf(`${url}/graphql`, bearer(login.access_token), { query: ME })).text.includes('"subject"'),
  'create a client': async (url, { login }) =>
    (await answerOf(`${url}/graphql`, bearer(login.access_token), creation())).text.includes('"CreatedClient"'),
  'refresh, login': (url, { login, through }) =>
    isGranted(url, { grant_type: 'refresh_token', ...through, refresh_token: login.refresh_token }),
  'REST, API token': async (url, { api }) =>
    (await answerOf(`${url}/v1/accounts`, bearer(api.access_token))).status === 200,
  'refresh, API token': (url, { api, client }) =>
    isGranted(url, { grant_type: 'refresh_token', ...client, refresh_token: api.refresh_token }),
  'client credentials': (url, { client }) => isGranted(url, { grant_type: 'client_credentials', ...client }),
  MCP: async (url, { client }) => {
    const headers = { ...bearer(client.client_secret), accept: 'application/json, text/event-stream' };
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
    return (await answerOf(`${url}/v2/mcp`, headers, call)).text.includes('"tools"');
  },
  'a new socket': async (url, { login }) => {
    const socket = await openSocket(url, login.access_token);
    socket?.terminate();
    return socket !== undefined;
  },
};

/** Uses credentials in every way, on every gateway, until it is stopped. */
export async function startHolder(gateways: readonly Replica[], has: Credentials): Promise<Holder> {
  let isOver = false;
  const successes: Success[] = [];
  const ended = new Map<string, number>();
  const lates: LateRequest[] = [];
  const ends: (() => void)[] = [];
  const loops: Promise<void>[] = [];

  const loop = async (what: string, gateway: Replica, act: () => Promise<boolean>) => {
    while (!isOver) {
      const beganAtMs = performance.now();
      if (await act()) successes.push({ what, gateway, beganAtMs });
      await delay(REST_MS);
    }
  };

  for (const [at, gateway] of gateways.entries()) {
    const { baseUrl } = gateway;
    const end = (name: string) => {
      if (!ended.has(name)) ended.set(name, performance.now());
    };
    const socket = await openSocket(baseUrl, has.login.access_token);
    if (!socket) throw new Error('the socket is refused');
    const operate = operationsOn(socket, () => end(`socket ${at}`));
    loops.push(loop('the open socket', gateway, operate));
    const stream = new AbortController();
    void streamOf(baseUrl, has, stream.signal).finally(() => end(`stream ${at}`));
    ends.push(
      () => socket.terminate(),
      () => stream.abort(),
    );
    lates.push(lateRequest(baseUrl, has));
    for (const [what, act] of Object.entries(ATTEMPTS)) loops.push(loop(what, gateway, () => act(baseUrl, has)));
  }
  return {
    successes,
    ended,
    opened: 2 * gateways.length,
    async completeLate() {
      for (const { complete } of lates) complete();
      return Promise.all(lates.map(({ status }) => status));
    },
    async stop() {
      isOver = true;
      await Promise.all(loops);
      for (const end of ends) end();
    },
  };
}

async function answerOf(
  url: string,
  headers: Record<string, string>,
  json?: object,
): Promise<{ status: number; text: string }> {
  const body = json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) };
  try {
    const response = await fetch(url, { headers, ...body, signal: AbortSignal.timeout(ANSWER_MS) });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    return { status: 0, text: String(error) };
  }
}

async function isGranted(url: string, grant: object): Promise<boolean> {
  return (await answerOf(`${url}/v2/oauth/token`, JSON_TYPE, grant)).status === 200;
}

/** Opens a GraphQL socket; undefined if its token is refused. */
async function openSocket(url: string, token: string): Promise<WebSocket | undefined> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const { promise: closed, resolve } = Promise.withResolvers<undefined>();
  socket.on('error', () => resolve(undefined)).on('close', () => resolve(undefined));
  async function acknowledged(): Promise<WebSocket | undefined> {
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
    const [data] = await once(socket, 'message');
    return String(data).includes('connection_ack') ? socket : undefined;
  }
  return Promise.race([acknowledged().catch(() => undefined), closed]);
}

/** Subscribes on a socket, and gives what runs one query on it and tells whether it was answered. */
function operationsOn(socket: WebSocket, onEnd: () => void): () => Promise<boolean> {
  const waiting = new Map<string, (isAnswered: boolean) => void>();
  socket.on('close', () => {
    onEnd();
    for (const answer of waiting.values()) answer(false);
  });
  socket.on('message', (data) => {
    const { id, type, payload } = JSON.parse(String(data));
    if (id === 'updates' && type !== 'next') onEnd();
    waiting.get(id)?.(type === 'next' && Boolean(payload.data?.me));
  });
  socket.send(JSON.stringify({ id: 'updates', type: 'subscribe', payload: { query: UPDATES } }));
  return async function operate() {
    if (socket.readyState !== WebSocket.OPEN) return false;
    const id = randomUUID();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    waiting.set(id, resolve);
    socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query: ME } }));
    const isAnswered = await promise;
    waiting.delete(id);
    return isAnswered;
  };
}

/** Reads a stream of events until it ends. */
async function streamOf(baseUrl: string, { login }: Credentials, signal: AbortSignal): Promise<void> {
  const headers = { ...EVENT_STREAM, authorization: `Bearer ${login.access_token}` };
  const body = JSON.stringify({ query: UPDATES });
  const response = await fetch(`${baseUrl}/graphql`, { method: 'POST', headers, body, signal });
  await response.text().catch(() => undefined);
}

interface LateRequest {
  complete(): void;
  status: Promise<number>;
}

/** Begins a request whose body is not complete yet. */
function lateRequest(baseUrl: string, { login }: Credentials): LateRequest {
  const text = JSON.stringify(creation());
  const { promise: completed, resolve: complete } = Promise.withResolvers<void>();
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(Buffer.from(text.slice(0, 20)));
      await completed;
      controller.enqueue(Buffer.from(text.slice(20)));
      controller.close();
    },
  });
  const init = { method: 'POST', headers: bearer(login.access_token), body, duplex: 'half' } as RequestInit;
  const status = fetch(`${baseUrl}/graphql`, init).then(
    async (response) => {
      await response.text();
      return response.status;
    },
    () => 0,
  );
  return { complete, status };
}
