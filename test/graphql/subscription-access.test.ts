import { print } from 'graphql';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { createdClient, login, loginOfDemo, operate, PASSWORD } from '../support/graphql/administration.ts';
import { type EventReader, openStream } from '../support/graphql/event-reader.ts';
import { until } from '../support/graphql/fixture.ts';
import { closeSockets, openSocket } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import {
  type Portcullis,
  startOnSharedStores,
  startPortcullis,
  startReplica,
  usePortcullis,
} from '../support/harness.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';
import type { ClientCredentials } from '../support/oauth/clients.ts';
import { settle } from '../support/realtime/model.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import {
  type ClientPatch,
  PatchClientDocument,
  SetClientStatusDocument,
  SetSupervisorPasswordDocument,
  SetSupervisorStatusDocument,
  TransactionUpdatesDocument,
} from './generated/graphql.ts';

const QUERY = print(TransactionUpdatesDocument);

interface Subscription {
  /** What comes until its connection has ended, and how a socket was closed. */
  rest(): Promise<unknown[]>;
  over: unknown[];
}

const readers: EventReader[] = [];

async function overSse(p: Portcullis, token: string, headers = {}): Promise<Subscription> {
  const reader = await openStream(p, token, QUERY, { headers });
  readers.push(reader);
  return {
    over: [],
    async rest() {
      const told: unknown[] = [];
      for (let event = await reader.next(); event !== undefined; event = await reader.next()) {
        told.push(event.event === 'next' ? JSON.parse(event.data).errors : event.event);
      }
      return told;
    },
  };
}

async function overSocket(p: Portcullis, token: string, headers = {}) {
  const { socket, subscribe, received, closed } = await openSocket(p, token, { headers });
  const begin = async () => {
    const { load } = p.service.context.streams;
    subscribe('1', QUERY);
    await until(() => p.service.context.streams.load.streams > load.streams);
  };
  await begin();
  return {
    ...{ socket, received, begin },
    over: [4403, 'token revoked'],
    async rest() {
      const [code, reason] = await closed;
      return [...received, code, String(reason)];
    },
  };
}

/** Somebody who subscribes, and what ends the token that it subscribes with. */
interface Subscriber {
  token: string;
  end(p: Portcullis): Promise<unknown>;
}

/** Its tokens have no end of their own. */
async function endlessClient(p: Portcullis, token: string) {
  return createdClient(p, token, {
    grantTypes: ['PASSWORD', 'CLIENT_CREDENTIALS', 'REFRESH_TOKEN'],
    scopes: ['transactions:read'],
    tokenExpiry: { enabled: false, duration: 60 },
  });
}

function revoke(p: Portcullis, credentials: ClientCredentials, token: string) {
  return p.call('POST', '/v2/oauth/revoke', { json: { ...credentials, token } });
}

async function pairOf(p: Portcullis, credentials: ClientCredentials) {
  return (await p.call('POST', '/v2/oauth/token', { json: { grant_type: 'client_credentials', ...credentials } })).json;
}

type Arrange = (p: Portcullis, admin: string) => Promise<Subscriber>;

/** Disabled: the client of a login, or of its own token. */
function disabledClient(isLogin: boolean): Arrange {
  return async (p, admin) => {
    const { client, credentials } = await endlessClient(p, admin);
    const { access_token } = await (isLogin ? loginOfDemo(p, credentials) : pairOf(p, credentials));
    const status = { id: client.id, status: 'DISABLED' as const };
    return { token: access_token, end: (at) => operate(at, admin, SetClientStatusDocument, status) };
  };
}

function changedSupervisor(change: (at: Portcullis, admin: string, id: string) => Promise<unknown>): Arrange {
  return async (p, admin) => {
    const { id, username } = await addSupervisor(p, PASSWORD);
    return { token: (await login(p, username)).access_token, end: (at) => change(at, admin, id) };
  };
}

/** Revoked: one of the tokens that a client got for itself. */
function revoked(name: 'access_token' | 'refresh_token'): Arrange {
  return async (p, admin) => {
    const { credentials } = await endlessClient(p, admin);
    const pair = await pairOf(p, credentials);
    return { token: pair.access_token, end: (at) => revoke(at, credentials, pair[name]) };
  };
}

const ENDS: [string, Arrange][] = [
  ['its client is disabled', disabledClient(false)],
  ['the client of its login is disabled', disabledClient(true)],
  [
    'its supervisor is disabled',
    changedSupervisor((at, admin, id) => operate(at, admin, SetSupervisorStatusDocument, { id, status: 'DISABLED' })),
  ],
  [
    'the password of its supervisor is changed',
    changedSupervisor((at, admin, id) =>
      operate(at, admin, SetSupervisorPasswordDocument, { id, password: `${PASSWORD}, changed` }),
    ),
  ],
  [
    'its session is revoked by its refresh token',
    async (p) => {
      const { access_token, refresh_token } = await loginOfDemo(p);
      return { token: access_token, end: (at) => revoke(at, p.demo.client, refresh_token) };
    },
  ],
  ['it is revoked itself', revoked('access_token')],
  ['its family is revoked', revoked('refresh_token')],
];

const OVERS = [
  ['SSE', overSse],
  ['a socket', overSocket],
] as const;

const CASES = ENDS.flatMap(([why, arrange]) => OVERS.map(([way, open]) => ({ why, arrange, way, open })));

afterEach(async () => {
  closeSockets();
  for (const reader of readers.splice(0)) await reader[Symbol.asyncDispose]();
});

describe('a subscription whose access is revoked early', () => {
  const p = usePortcullis();
  let admin: string;
  beforeAll(async () => {
    admin = await p.clientToken();
  });

  it.each(CASES)('D2-29 DG-15 D6-12 D3-23: over $way ends without an error when $why', async ({ arrange, open }) => {
    const { token, end } = await arrange(p, admin);
    const subscription = await open(p, token);
    await open(p, admin);
    expect(p.service.context.watch.size).toBe(2);
    await end(p);
    expect(await subscription.rest()).toEqual(subscription.over);
    await until(() => p.service.context.watch.size === 1);
    closeSockets();
    for (const reader of readers.splice(0)) await reader[Symbol.asyncDispose]();
    await until(() => p.service.context.watch.size === 0);
  });

  it('D6-12: stays open when its client was only changed', async () => {
    const { client, credentials } = await endlessClient(p, admin);
    const { access_token } = await pairOf(p, credentials);
    await overSse(p, access_token);
    const { changes, watch } = p.service.context;
    const change = { kind: 'client', nodeId: p.demo.node_id, subject: client.id, item: null } as const;
    await changes.commit(async (ended) => ended(change));
    expect(watch.size).toBe(1);
  });
});

const CERTIFICATE = { 'ssl-client-fingerprint': 'ab'.repeat(20) };
const BOUND = { requireCertificate: true, certFingerprint: 'AB'.repeat(20) };

/** Changes of a client after which its guards refuse its next request, and how. */
const GUARDED: [string, ClientPatch, string][] = [
  ['its address is no longer allowed', { allowedIps: ['203.0.113.9'] }, 'ip_not_allowed'],
  ['it requires another certificate', { ...BOUND, certFingerprint: 'cd'.repeat(20) }, 'mtls_required'],
  ['it requires a certificate of which it has no fingerprint', { ...BOUND, certFingerprint: '' }, 'mtls_required'],
];

describe('a subscription of a client whose guards are changed', () => {
  const p = usePortcullis();
  let admin: string;
  beforeAll(async () => {
    admin = await p.clientToken();
  });
  const change = async (id: string, input: ClientPatch) => {
    const { result } = await operate(p, admin, PatchClientDocument, { id, input });
    expect(result.__typename).toBe('Client');
  };
  const refused = (message: string) => [{ message, extensions: { code: 'FORBIDDEN' } }];

  it.each(GUARDED)('D2-29 5.3-02 5.3-03: over SSE ends with FORBIDDEN when %s', async (_why, input, message) => {
    const { client, credentials } = await endlessClient(p, admin);
    await overSse(p, (await loginOfDemo(p, credentials)).access_token);
    const { rest } = await overSse(p, (await pairOf(p, credentials)).access_token, CERTIFICATE);
    await change(client.id, input);
    expect(await rest()).toEqual([refused(message), 'complete']);
    // A login is not guarded after it was issued.
    await until(() => p.service.context.watch.size === 1);
  });

  it.each(GUARDED)(
    'D2-16 D2-29: over a socket that stays open ends with FORBIDDEN when %s',
    async (_why, input, message) => {
      const { client, credentials } = await endlessClient(p, admin);
      const { access_token } = await pairOf(p, credentials);
      const { socket, received, begin, rest } = await overSocket(p, access_token, CERTIFICATE);
      const error = { id: '1', type: 'error', payload: refused(message) };
      for (const round of [1, 2]) {
        await change(client.id, input);
        await until(() => received.length >= round);
        expect([received[round - 1], socket.readyState]).toEqual([error, socket.OPEN]);
        await change(client.id, { allowedIps: [], requireCertificate: false });
        await begin();
      }
      await revoke(p, credentials, access_token);
      expect(await rest()).toEqual([error, error, 4403, 'token revoked']);
    },
  );

  it.each([
    ['its address stays allowed', { allowedIps: ['127.0.0.0/8', '::1'] }],
    ['it requires the certificate that it has shown', BOUND],
    ['its limits are used up', { monthlyLimit: 1, rateLimit: { requestsPerHour: 1 } }],
  ])('D2-29 D6-12: stays open when %s', async (_why, input) => {
    const { client, credentials } = await endlessClient(p, admin);
    const { access_token } = await pairOf(p, credentials);
    await overSse(p, access_token, CERTIFICATE);
    const { received } = await overSocket(p, access_token, CERTIFICATE);
    await change(client.id, input);
    await p.service.context.changes.poll();
    await settle();
    expect([p.service.context.watch.size, received]).toEqual([2, []]);
  });
});

describeReal(['postgres', 'redis'], 'a subscription on another replica', () => {
  describe.each([
    ['over one Redis', startOnSharedStores, 0],
    ['each with its own cache', startPortcullis, 1],
  ] as const)('%s', (_name, start, turn) => {
    // In a quick run, what ends it is told over the one way here, and over the other way there.
    const cases = CASES.filter((_, at) => inject('isThorough') || (at + (at >> 1)) % 2 === turn);

    const p = beforeTests(start);
    let replica: Portcullis;
    let admin: string;
    beforeAll(async () => {
      replica = await startReplica(p);
      admin = await p.clientToken();
    });
    afterAll(async () => {
      await replica[Symbol.asyncDispose]();
    });

    it('D2-29 5.3-03: ends with FORBIDDEN when the address of its client is no longer allowed', async () => {
      const { client, credentials } = await endlessClient(p, admin);
      const { rest } = await overSse(replica, (await pairOf(p, credentials)).access_token);
      await operate(p, admin, PatchClientDocument, { id: client.id, input: { allowedIps: ['203.0.113.9'] } });
      expect(await rest()).toEqual([[{ message: 'ip_not_allowed', extensions: { code: 'FORBIDDEN' } }], 'complete']);
    });

    it('D3-36 D3-28 D2-29: ends, and requests are answered, when its client was changed while the database responded slowly', async () => {
      const { client, credentials } = await endlessClient(p, admin);
      const { rest } = await overSse(replica, (await pairOf(p, credentials)).access_token);
      const server = new URL(serviceAddress('postgres'));
      server.pathname = new URL(String(p.env.DATABASE_URL)).pathname;
      await withPostgres(server.href, async (postgres) => {
        await postgres.query('begin');
        await postgres.query('lock table access_changes in access exclusive mode');
        await postgres.query("update clients set allowed_ips = '{203.0.113.9}' where id = $1", [client.id]);
        const change = [p.demo.node_id, client.id, new Date().toISOString()];
        await postgres.query(
          "insert into access_changes (kind, node_id, subject, created_at) values ('client', $1, $2, $3)",
          change,
        );
        // The read that waits for the lock is older than what requests may rely on when it ends.
        await postgres.query('select pg_sleep(1.6)');
        await postgres.query('commit');
      });
      expect(await rest()).toEqual([[{ message: 'ip_not_allowed', extensions: { code: 'FORBIDDEN' } }], 'complete']);
      expect((await replica.call('GET', '/v1/accounts', { token: admin })).status).toBe(200);
    });

    it.each(cases)('D2-29 DG-15 D6-12 D3-07 D3-23: over $way ends when $why', async ({ arrange, open }) => {
      const { token, end } = await arrange(p, admin);
      const subscription = await open(replica, token);
      await end(p);
      // What it does twice a second by itself.
      await replica.service.context.changes.poll();
      expect(await subscription.rest()).toEqual(subscription.over);
      await until(() => replica.service.context.watch.size === 0);
    });
  });
});
