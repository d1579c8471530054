import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DOCUMENTED } from '../support/gateway/documented.ts';
import {
  CALLERS,
  type Caller,
  type Forge,
  ROTATED,
  STATES,
  type TokenState,
  tokenForge,
} from '../support/gateway/token-states.ts';
import { rawSocket } from '../support/graphql/sockets.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { basicOf, postForm } from '../support/oauth/requests.ts';
import { emptyFolder } from '../support/start/folders.ts';

/** What an interface says of a token: it lets its holder in, or says that the token is good; or neither. */
type Verdict = 'accepted' | 'rejected';

/** A way by which a token reaches the product other than the Authorization header of the endpoint itself. */
interface Way {
  /** The endpoint whose way it is. */
  endpoint: string;
  show(token: string): Promise<Verdict>;
  /** Whether it accepts a token of such a caller in this state. */
  accepts(caller: Caller, state: TokenState): boolean;
}

let p: Portcullis;
let forge: Forge;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  const folder = stack.use(await emptyFolder());
  const operations = join(folder.path, 'operations.json');
  await writeFile(operations, JSON.stringify({ me: '{ me { nodeId } }' }));
  const persisted = { GRAPHQL_PERSISTED: 'allow', GRAPHQL_PERSISTED_FILE: operations };
  p = stack.use(await startPortcullis({ env: { CONSOLE: 'on', ...ROTATED, ...persisted } }));
  forge = await tokenForge(p);
});
afterAll(() => stack.disposeAsync());

/** What GraphQL accepts: a token of a user or a legacy one that serves for more than a new password. */
function opensGraphql(caller: Caller, { worth }: TokenState): boolean {
  return caller !== 'discover' && (worth === 'good' || worth === 'powerless');
}

async function graphql(query: string, token: string, init: RequestInit & { headers?: Record<string, string> } = {}) {
  const headers = { authorization: `Bearer ${token}`, ...init.headers };
  const response = await fetch(`${p.url}/graphql${query}`, { ...init, headers, signal: AbortSignal.timeout(10_000) });
  await response.body?.cancel();
  expect([200, 401]).toContain(response.status);
  return response.status === 200 ? 'accepted' : 'rejected';
}

const json = { 'content-type': 'application/json' };
/** How a WebSocket is closed whose token is not accepted. */
const UNAUTHORIZED = 4401;
const LIVE = 'subscription { transactionUpdates { cursor } }';

/** Opens a socket with these headers and this payload of `connection_init`. */
async function socket(headers: Record<string, string>, payload: object): Promise<Verdict> {
  try {
    using opened = await rawSocket(p, { headers });
    const message = once(opened.socket, 'message').then(([data]) => JSON.parse(String(data)).type);
    opened.send({ type: 'connection_init', payload });
    const first = await Promise.race([message, opened.closed.then(([code]) => code)]);
    expect(['connection_ack', UNAUTHORIZED]).toContain(first);
    return first === 'connection_ack' ? 'accepted' : 'rejected';
  } catch (error) {
    expect(String(error)).toContain('401');
    return 'rejected';
  }
}

/** A refresh token, which only users and clients have: the one kind that is redeemed. */
function isForRefresh(caller: Caller, { told }: TokenState): boolean {
  return told === 'refresh' && (caller === 'login' || caller === 'api');
}

/** Redeems a token for new ones. */
async function redeemed(path: string, fields: object, headers: Record<string, string>): Promise<Verdict> {
  const { status } = await p.call('POST', path, { json: fields, headers });
  expect([200, 400, 401]).toContain(status);
  return status === 200 ? 'accepted' : 'rejected';
}

const WAYS: Record<string, Way> = {
  'a stream of events': {
    endpoint: 'POST /graphql',
    show: (token) =>
      graphql('', token, {
        method: 'POST',
        headers: { ...json, accept: 'text/event-stream' },
        body: JSON.stringify({ query: LIVE }),
      }),
    accepts: opensGraphql,
  },
  'a stream of events by GET': {
    endpoint: 'GET /graphql',
    show: (token) => graphql(`?query=${encodeURIComponent(LIVE)}`, token, { headers: { accept: 'text/event-stream' } }),
    accepts: opensGraphql,
  },
  'a persisted operation': {
    endpoint: 'GET /graphql',
    show: (token) => graphql('?documentId=me', token),
    accepts: opensGraphql,
  },
  'an upload': {
    endpoint: 'POST /graphql',
    show(token) {
      const body = new FormData();
      const query = 'mutation ($file: File!) { startUserMigration(file: $file) { __typename } }';
      body.set('operations', JSON.stringify({ query, variables: { file: null } }));
      body.set('map', '{"0": ["variables.file"]}');
      body.set('0', new Blob(['wallet_address,email\n'], { type: 'text/csv' }));
      return graphql('', token, { method: 'POST', body });
    },
    accepts: opensGraphql,
  },
  'a WebSocket, in connection_init': {
    endpoint: 'GET /graphql',
    show: (token) => socket({}, { authorization: `Bearer ${token}` }),
    accepts: opensGraphql,
  },
  'a WebSocket, in its handshake': {
    endpoint: 'GET /graphql',
    show: (token) => socket({ authorization: `Bearer ${token}` }, {}),
    accepts: opensGraphql,
  },
  introspection: {
    endpoint: 'POST /v2/oauth/introspect',
    async show(token) {
      const { status, json } = await postForm(p, '/v2/oauth/introspect', { token }, basicOf(p.demo.client));
      expect(status).toBe(200);
      return json.active ? 'accepted' : 'rejected';
    },
    // It says of a token for a new password that it is one, and has no scope.
    accepts: (caller, state) => (caller !== 'discover' && state.worth !== 'bad') || isForRefresh(caller, state),
  },
  'a refresh': {
    endpoint: 'POST /v2/oauth/token',
    show: (token) =>
      redeemed('/v2/oauth/token', { grant_type: 'refresh_token', refresh_token: token, ...p.demo.client }, {}),
    accepts: isForRefresh,
  },
  'a renewal of the console': {
    endpoint: 'POST /console/session/renew',
    show(token) {
      const client_id = p.demo.console_client_id;
      const cookie = `portcullis-${client_id}=${token}`;
      return redeemed('/console/session/renew', { client_id }, { cookie, 'sec-fetch-site': 'same-origin' });
    },
    accepts: () => false,
  },
};

/** Endpoints that no token reaches but by their header: test/gateway/token-matrix.test.ts shows them every token. */
const WITH_CREDENTIALS_OF_THEIR_OWN: Readonly<Record<string, string>> = {
  'POST /v2/oauth/revoke': 'answers 200 for every token (RFC 7009): test/oauth/revocation.test.ts',
  'POST /v2/webhooks/custodial': 'takes a password',
  'POST /v2/webhooks': 'takes a password',
  'POST /console/session': 'takes a password',
  'DELETE /console/session': 'answers 204 for every cookie: test/oauth/console-sessions.test.ts',
};
/** Public endpoints that are the same for everyone. */
const FOR_EVERYONE = /^(?:GET|HEAD|OPTIONS) (?!\/graphql|\/v2\/mcp)/;

it('5.1-01 D3-24: (every endpoint that checks tokens is in a token matrix)', () => {
  const judging = DOCUMENTED.filter(([method, path, , visibility]) => {
    return visibility !== 'public' || !FOR_EVERYONE.test(`${method} ${path}`);
  }).map(([method, path]) => `${method} ${path}`);
  const ways = Object.values(WAYS).map(({ endpoint }) => endpoint);
  const byHeader = DOCUMENTED.filter(([, path, , visibility]) => visibility !== 'public' || path.startsWith('/v2/mcp'));
  const shown = [
    ...byHeader.map(([method, path]) => `${method} ${path}`),
    ...ways,
    ...Object.keys(WITH_CREDENTIALS_OF_THEIR_OWN),
  ];
  expect([...new Set(shown)].sort()).toEqual([...new Set(judging)].sort());
});

const shown = STATES.flatMap((state) =>
  (state.callers ?? CALLERS).map((caller): [Caller, TokenState] => [caller, state]),
);

it.each(Object.entries(WAYS))(
  '5.1-01 5.1-06 D3-24 D3-25 D3-12 DG-08: %s accepts exactly the documented tokens',
  async (_name, way) => {
    const verdicts = await Promise.all(
      shown.map(async ([caller, state]) => {
        const expected: Verdict = way.accepts(state.becomes ?? caller, state) ? 'accepted' : 'rejected';
        const answer = await way.show(state.forge(forge, caller, 'users:migrate transactions:read'));
        return { caller, state: state.name, expected, answer };
      }),
    );
    expect(verdicts.filter(({ expected, answer }) => expected !== answer)).toEqual([]);
    expect(verdicts.length).toBeGreaterThan(50);
  },
);
