import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  SetClientStatusDocument,
  SetSupervisorPasswordDocument,
  SetSupervisorRoleDocument,
  SetSupervisorStatusDocument,
} from '../graphql/generated/graphql.ts';
import { server } from '../support/faults/cluster.ts';
import { REDIS_STATES, type RedisState, type TroubledRedis } from '../support/faults/redis-states.ts';
import {
  createdClient,
  grantStatus,
  login,
  operate,
  PASSWORD,
  tokenStatus,
} from '../support/graphql/administration.ts';
import { sendRaw } from '../support/graphql/upload-requests.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { type Portcullis, startPortcullis, startReplica } from '../support/harness.ts';
import { callOf, post } from '../support/mcp/agents.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';
import type { ClientCredentials } from '../support/oauth/clients.ts';
import { faultProxy } from '../support/services/fault-proxy.ts';
import { describeReal } from '../support/services/real.ts';
import { startRedis } from '../support/services/redis.ts';

type Login = Awaited<ReturnType<typeof login>>;

/** A supervisor and a client, with all that they were given. */
interface Person extends Login {
  id: string;
  username: string;
  client: ClientCredentials;
  api: Login;
}

type End = (p: Portcullis, token: string, person: Person) => Promise<unknown>;

const ENDS: readonly (readonly [name: string, end: End])[] = [
  [
    'a supervisor is disabled',
    (p, token, { id }) => operate(p, token, SetSupervisorStatusDocument, { id, status: 'DISABLED' }),
  ],
  [
    'a login is revoked',
    (p, _token, { refresh_token }) =>
      p.call('POST', '/v2/oauth/revoke', { json: { ...p.demo.client, token: refresh_token } }),
  ],
  [
    'a password is changed',
    (p, token, { id }) => operate(p, token, SetSupervisorPasswordDocument, { id, password: `${PASSWORD}!` }),
  ],
  ['a role is changed', (p, token, { id }) => operate(p, token, SetSupervisorRoleDocument, { id, role: 'operator' })],
];

const refreshed = (at: Portcullis, client: ClientCredentials, { refresh_token }: Login) =>
  grantStatus(at, { grant_type: 'refresh_token', ...client, refresh_token });
const JSON_TYPE = { 'content-type': 'application/json' };
const UPDATES = 'subscription { transactionUpdates { cursor } }';

/** A socket of GraphQL, and the first message that comes on it; undefined if its token is refused. */
async function openSocket(at: Portcullis, token: string): Promise<{ socket: WebSocket; said: string | undefined }> {
  const socket = new WebSocket(`${at.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  socket.on('open', () =>
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } })),
  );
  const said = await new Promise<string | undefined>((resolve) => {
    socket.on('message', (data) => resolve(String(data)));
    socket.on('error', () => resolve(undefined)).on('close', () => resolve(undefined));
  });
  return { socket, said };
}

/** What the holder of credentials can do with them; each tells whether it has succeeded. */
const WAYS: Record<string, (at: Portcullis, person: Person) => Promise<boolean>> = {
  'REST, login': async (at, { access_token: token }) =>
    (await at.call('GET', '/v1/accounts', { token })).status === 200,
  'GraphQL, login': async (at, { access_token }) => (await tokenStatus(at, access_token)) === 200,
  'refresh, login': async (at, person) => (await refreshed(at, at.demo.client, person)) === 200,
  'a new socket': async (at, { access_token }) => {
    const { socket, said } = await openSocket(at, access_token);
    socket.terminate();
    return said !== undefined;
  },
  'REST, API token': async (at, { api }) =>
    (await at.call('GET', '/v1/accounts', { token: api.access_token })).status === 200,
  'refresh, API token': async (at, { client, api }) => (await refreshed(at, client, api)) === 200,
  'client credentials': async (at, { client }) =>
    (await grantStatus(at, { grant_type: 'client_credentials', ...client })) === 200,
  MCP: async (at, { client }) => (await post(at, client.client_secret, callOf('get_access'))).status === 200,
};

/** Requests that have begun: a socket and an event stream with a subscription, and one whose body is not complete. */
async function begun(at: Portcullis, { access_token: token }: Login) {
  const ended = new Set<string>();
  const { socket } = await openSocket(at, token);
  socket.send(JSON.stringify({ type: 'subscribe', id: '1', payload: { query: UPDATES } }));
  socket.on('close', () => ended.add('socket'));
  const headers = { ...JSON_TYPE, authorization: `Bearer ${token}` };
  const body = new PassThrough();
  const late = sendRaw(at.url, headers, body);
  body.write('{"query":');
  const accept = { ...headers, accept: 'text/event-stream' };
  const stream = fetch(`${at.url}/graphql`, {
    method: 'POST',
    headers: accept,
    body: JSON.stringify({ query: UPDATES }),
  });
  void (await stream).text().finally(() => ended.add('stream'));
  return {
    ended,
    /** Completes the body, and gives the status. */
    async completeLate() {
      body.end('"{ me { subject } }"}');
      return (await late).status;
    },
  };
}

type Cell = [end: string, state: string, End, RedisState];

const CELLS = ENDS.flatMap(([name, end]) => REDIS_STATES.map((state): Cell => [name, state.name, end, state]));

describeReal(['postgres', 'redis'], 'revoked access with a failing Redis', () => {
  const stack = new AsyncDisposableStack();
  let at: TroubledRedis;
  let p: Portcullis;
  let replica: Portcullis;
  let token: string;

  beforeAll(async () => {
    const root = await mkdtemp(join(tmpdir(), 'portcullis-redis-'));
    stack.defer(() => rm(root, { recursive: true, force: true }));
    const proxy = stack.use(await faultProxy());
    const redis = await server(stack, join(root, 'redis'), proxy, (port, dataDir) => startRedis({ port, dataDir }));
    at = { redis, folder: (name) => join(root, name), defer: (end) => stack.defer(async () => void (await end())) };
    p = stack.use(await startPortcullis({ env: { REDIS_URL: proxy.urlOf(redis.address()) } }));
    replica = stack.use(await startReplica(p));
    token = await p.clientToken();
  });
  afterAll(() => stack.disposeAsync());

  async function person(): Promise<Person> {
    const supervisor = await addSupervisor(p, PASSWORD);
    const tokens = await login(p, supervisor.username);
    const { credentials: client } = await createdClient(p, token, { scopes: ['accounts:read'] });
    const grant = { grant_type: 'client_credentials', ...client };
    const api: Login = (await p.call('POST', '/v2/oauth/token', { json: grant })).json;
    const person = { ...supervisor, ...tokens, client, api };
    await expect.poll(() => successes(person)).toEqual(BOTH);
    return person;
  }

  const BOTH = Object.keys(WAYS).flatMap((way) => [`${way} here`, `${way} there`]);
  /** The ways in which somebody succeeds at either process. */
  async function successes(person: Person): Promise<string[]> {
    const tried = Object.entries(WAYS).flatMap(([way, attempt]) =>
      [p, replica].map(async (at) => ((await attempt(at, person)) ? [`${way} ${at === p ? 'here' : 'there'}`] : [])),
    );
    return (await Promise.all(tried)).flat();
  }

  const statuses = ({ access_token }: Login) =>
    Promise.all([p, replica].map((process) => tokenStatus(process, access_token)));

  it.each(inTurn(CELLS, 18, 0))(
    'D3-28 D3-36: %s while Redis %s: the access is rejected by both processes, and other sessions stay valid',
    async (...cell) => {
      const [, , end, state] = cell;
      const [leaving, staying] = [await person(), await person()];
      const open = await begun(replica, leaving);
      await state.begin(at);
      try {
        await operate(p, token, SetClientStatusDocument, { id: leaving.client.client_id, status: 'DISABLED' });
        await end(p, token, leaving);
        expect(await tokenStatus(p, leaving.access_token)).toBe(401);
        await state.goOn?.(at);
        await expect.poll(() => statuses(leaving), { interval: 50 }).toEqual([401, 401]);
        await expect.poll(() => open.ended.size, { interval: 50 }).toBe(2);
        expect(await statuses(staying)).toEqual([200, 200]);
        if (state.isRefused) {
          const health = async () => (await replica.call('GET', '/health')).json;
          await expect.poll(health, { interval: 50 }).toMatchObject({ status: 'degraded', checks: { cache: 'down' } });
        }
        expect(await successes(staying)).toEqual(BOTH);
        const entering = await login(p, staying.username);
        expect(await statuses(entering)).toEqual([200, 200]);
        // Longer than it takes a process to read again what has ended.
        for (let look = 0; look < 4; look += 1) {
          await delay(200);
          expect([await statuses(leaving), await successes(leaving)]).toEqual([[401, 401], []]);
        }
        expect(await open.completeLate()).toBe(401);
      } finally {
        await state.end(at);
      }
      await expect.poll(() => successes(staying)).toEqual(BOTH);
      expect([await statuses(leaving), await successes(leaving)]).toEqual([[401, 401], []]);
    },
  );
});
