import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { auditConditions } from '../../src/audit/audit-filter.ts';
import { correlationKey, withoutOwnSecrets } from '../../src/audit/masked-names.ts';
import { secretsIn } from '../../src/gateway/exchange/request-head.ts';
import { recordsOf } from '../support/audit/records.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { request, sendRaw } from '../support/gateway/raw.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { basicOf } from '../support/oauth/requests.ts';
import { writtenLog } from '../support/observability/written-log.ts';
import { describeReal } from '../support/services/real.ts';

const AT = '2026-11-21T10:30:00Z';
const { log, lines } = writtenLog();
const p = beforeTests(() => startPortcullis({ overrides: { log } }));
let token: string;
/** A token that nobody should find: the ids of the requests are made of it. */
let jwt: string;
/** Of what is told to the caller, that which holds the id. */
const echoed: string[] = [];

const digits = (id: string) => createHash('sha256').update(id).digest('hex').slice(0, 16);

beforeAll(async () => {
  token = await p.clientToken();
  jwt = await p.clientToken(await addClient(p, {}));
});

describe('a JWT as correlation id', () => {
  it('D2-07 D2-05: is echoed and forwarded unchanged, and stored as its SHA-256 in every record and log line', async () => {
    const headers = { 'x-correlation-id': jwt };
    const { username, password } = p.webhook;
    const basic = { ...headers, authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
    const json = { id: p.demo.transactions.user_transactions, type: 1, status: 3, created_at: AT, updated_at: AT };
    const answers = [
      await p.call('GET', '/v1/accounts', { token, headers }),
      await p.call('GET', '/nowhere', { headers }),
      await p.call('POST', '/graphql', { token, headers, json: { query: '{ me { subject } }' } }),
      await p.call('POST', '/v2/webhooks/custodial', { headers: basic, json }),
    ];
    expect(answers.map((answer) => [answer.status, answer.headers.get('x-correlation-id')])).toEqual(
      [200, 404, 200, 200].map((status) => [status, jwt]),
    );
    const unparsed = await sendRaw(p.url, `GET /health HTTP/1.1\r\nX-Correlation-ID: ${jwt}\r\nbad\r\n\r\n`);
    expect(unparsed).toMatchObject({ status: 400, headers: { 'x-correlation-id': jwt } });
    await operationOnSocket();
    p.service.context.log.error({ correlation_id: jwt, err: new Error('any') }, 'request failed');
    const query = 'query ($id: ID!) { transaction(id: $id) { events(first: 1) { edges { node { correlationId } } } } }';
    await vi.waitFor(async () => {
      const { text } = await p.call('POST', '/graphql', { token, json: { query, variables: { id: json.id } } });
      expect(text).toContain(jwt);
      echoed.push(text);
    });
    const kept = await recordsOf(p, `jwt:${digits(jwt)}`);
    expect(kept.map(({ method, status_code }) => `${method} ${status_code}`)).toEqual(
      expect.arrayContaining(['GET 200', 'GET 404', 'GET 400', 'POST 200', 'WS 200']),
    );
    const shown = kept.flatMap(({ headers: all }) => (all as Record<string, string>)['x-correlation-id'] ?? []);
    expect(new Set(shown)).toEqual(new Set([`jwt:${digits(jwt)}`]));
    expect(lines.filter((line) => line.includes(`jwt:${digits(jwt)}`)).length).toBeGreaterThan(6);
  });

  it.each([
    ['a JWT after a word', () => `Bearer ${jwt}`],
    ['a JWT within other text', () => `request-1 "${jwt}"; x=1`],
    ['a JWT before other text', () => `${jwt}, eyJ`],
  ])('D2-07: %s makes the whole id be stored as a hash', async (_how, idOf) => {
    const answer = await sendRaw(p.url, request('GET', '/health', { 'X-Correlation-ID': idOf() }));
    expect(answer.headers['x-correlation-id']).toBe(idOf());
    expect(await recordsOf(p, `jwt:${digits(idOf())}`)).toHaveLength(1);
  });

  it('D2-07: its records are found by the original id', async () => {
    const query =
      'query ($id: String) { auditRecords(filter: { correlationId: $id, path: "/v1/accounts" }) { edges { node { correlationId } } } }';
    const { json } = await p.call('POST', '/graphql', { token, json: { query, variables: { id: jwt } } });
    expect(json.data.auditRecords.edges).toEqual([{ node: { correlationId: `jwt:${digits(jwt)}` } }]);
  });

  it('D2-07: appears in no log line and in no record', async () => {
    const signature = jwt.split('.')[2] ?? '';
    await vi.waitFor(() => expect(p.service.context.spool.pendingBytes).toBe(0));
    const kept = await rows(p).run((k) => k.selectFrom('audit_records').selectAll());
    expect(JSON.stringify(kept)).not.toContain(signature);
    expect(lines.join()).not.toContain(signature);
    expect(echoed.join()).toContain(signature);
  });

  it('D2-07: any other id is stored unchanged', () => {
    for (const id of ['', 'abc', 'eyJ', 'eyJhbGciOi.x', 'jwt:0123456789abcdef', 'a.b.c'])
      expect(correlationKey(id)).toBe(id);
  });

  describeReal('postgres', 'on PostgreSQL', () => {
    it('D2-07 D1-12: the command line finds its records by the original id', async () => {
      await p.service.context.auditWriter.flush();
      const list = ['audit', 'list', '--path', '/v1/accounts', '--correlation-id', jwt];
      expect((await portcullis(list, p.env)).out).toMatch(/^\S+Z {2}200 .* GET .* jwt:[0-9a-f]{16} {2}\d+\n$/);
    });
  });
});

describe('a secret of the request as its correlation id', () => {
  /** Requests with the secret: where it is, and the secret itself. */
  const SECRETS: [where: string, made: () => Promise<{ secret: string; ask(id: string): Promise<unknown> }>][] = [
    [
      'the bearer of an agent',
      async () => {
        const { client_secret: secret } = await addClient(p, {});
        const headers = { authorization: `Bearer ${secret}` };
        return {
          secret,
          ask: (id) => p.call('POST', '/v2/mcp', { headers: { ...headers, 'x-correlation-id': id }, json: {} }),
        };
      },
    ],
    [
      'the bearer of a refused request',
      async () => {
        const secret = randomBytes(32).toString('base64url');
        const headers = { authorization: `bearer  ${secret}` };
        return { secret, ask: (id) => p.call('GET', '/nowhere', { headers: { ...headers, 'x-correlation-id': id } }) };
      },
    ],
    [
      'the password of the webhook',
      async () => {
        const { username, password: secret } = p.webhook;
        const headers = { authorization: basicOf({ client_id: username, client_secret: secret }) };
        return {
          secret,
          ask: (id) =>
            p.call('POST', '/v2/webhooks/custodial', { headers: { ...headers, 'x-correlation-id': id }, json: {} }),
        };
      },
    ],
    [
      'the credentials of HTTP Basic as they are sent',
      async () => {
        const secret = basicOf(await addClient(p, {})).slice('Basic '.length);
        const form = { 'content-type': 'application/x-www-form-urlencoded', authorization: `Basic ${secret}` };
        return {
          secret,
          ask: (id) =>
            p.call('POST', '/v2/oauth/token', {
              headers: { ...form, 'x-correlation-id': id },
              body: 'grant_type=client_credentials',
            }),
        };
      },
    ],
    [
      'a client secret in a body',
      async () => {
        const json = { grant_type: 'client_credentials', ...(await addClient(p, {})) };
        return {
          secret: json.client_secret,
          ask: (id) => p.call('POST', '/v2/oauth/token', { headers: { 'x-correlation-id': id }, json }),
        };
      },
    ],
    [
      'a wrong client secret in a body',
      async () => {
        const secret = randomBytes(32).toString('base64url');
        const json = { ...(await addClient(p, {})), client_secret: secret, token: 'x' };
        return {
          secret,
          ask: (id) => p.call('POST', '/v2/oauth/revoke', { headers: { 'x-correlation-id': id }, json }),
        };
      },
    ],
    [
      'the password of a supervisor',
      async () => {
        const { username, password: secret } = p.demo.supervisor;
        const json = { grant_type: 'password', ...p.demo.client, username, password: secret };
        return {
          secret,
          ask: (id) => p.call('POST', '/v2/oauth/token', { headers: { 'x-correlation-id': id }, json }),
        };
      },
    ],
    [
      'a client secret in a body that cannot be read',
      async () => {
        const { client_id, client_secret: secret } = await addClient(p, {});
        const body = `{"grant_type":"client_credentials","client_id":"${client_id}","client_secret":"${secret}","client_secret":"${secret}","of":"of ${secret}."}`;
        const headers = { 'content-type': 'application/json' };
        return {
          secret,
          ask: (id) => p.call('POST', '/v2/oauth/token', { headers: { ...headers, 'x-correlation-id': id }, body }),
        };
      },
    ],
    [
      'a secret in the query',
      async () => {
        const secret = randomBytes(32).toString('base64url');
        return {
          secret,
          ask: (id) => p.call('GET', `/health?a=b&client_secret=${secret}`, { headers: { 'x-correlation-id': id } }),
        };
      },
    ],
    [
      'a secret in another header',
      async () => {
        const secret = randomBytes(32).toString('base64url');
        return {
          secret,
          ask: (id) => p.call('GET', '/health', { headers: { 'x-api-key': secret, 'x-correlation-id': id } }),
        };
      },
    ],
    [
      'the second of two bearers',
      async () => {
        const secret = randomBytes(32).toString('base64url');
        const head = `GET /v1/accounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nAuthorization: Bearer ${secret}\r\n`;
        return { secret, ask: (id) => sendRaw(p.url, `${head}X-Correlation-ID: ${id}\r\n\r\n`) };
      },
    ],
    [
      'one of several cookies',
      async () => {
        const secret = randomBytes(32).toString('base64url');
        const headers = { cookie: `theme=dark; session=${secret}; lang=en` };
        return { secret, ask: (id) => p.call('GET', '/health', { headers: { ...headers, 'x-correlation-id': id } }) };
      },
    ],
    [
      'the password for a proxy',
      async () => {
        const secret = randomBytes(32).toString('base64url');
        const headers = { 'proxy-authorization': basicOf({ client_id: 'user', client_secret: secret }) };
        return { secret, ask: (id) => p.call('GET', '/health', { headers: { ...headers, 'x-correlation-id': id } }) };
      },
    ],
    [
      'a token among subprotocols',
      async () => {
        const secret = randomBytes(32).toString('base64url');
        const headers = { 'sec-websocket-protocol': `graphql-transport-ws, ${secret}` };
        return { secret, ask: (id) => p.call('GET', '/health', { headers: { ...headers, 'x-correlation-id': id } }) };
      },
    ],
    [
      'a secret in another header of malformed HTTP, behind a long one',
      async () => {
        const secret = randomBytes(32).toString('base64url');
        const fields = `X-Long: ${'x'.repeat(20_000)}\r\nX-API-Key: ${secret}\r\nbad\r\n\r\n`;
        return { secret, ask: (id) => sendRaw(p.url, `GET /health HTTP/1.1\r\nX-Correlation-ID: ${id}\r\n${fields}`) };
      },
    ],
    [
      'the bearer of malformed HTTP',
      async () => {
        const secret = randomBytes(32).toString('base64url');
        const head = `GET /health HTTP/1.1\r\nAuthorization: Bearer ${secret}\r\n`;
        return { secret, ask: (id) => sendRaw(p.url, `${head}X-Correlation-ID: ${id}\r\nbad\r\n\r\n`) };
      },
    ],
  ];

  it.each(SECRETS)(
    'D2-07 D2-05: %s is echoed, and stored as its SHA-256 in the record and the log',
    async (_where, made) => {
      const { secret, ask } = await made();
      for (const id of [secret, `of ${secret}.`]) {
        const { headers } = Object(await ask(id));
        expect(headers['x-correlation-id'] ?? headers.get('x-correlation-id')).toBe(id);
        const [record, ...others] = await recordsOf(p, `jwt:${digits(id)}`);
        expect(others).toEqual([]);
        // A query with the id would be recorded with it.
        const filter = rows(p).run((k) =>
          k
            .selectFrom('audit_records')
            .select('id')
            .where((eb) => eb.and(auditConditions(eb, { correlationId: id }))),
        );
        expect(await filter).toEqual([{ id: record?.id }]);
      }
      await vi.waitFor(() => expect(lines.join()).toContain(`jwt:${digits(secret)}`));
      const kept = await rows(p).run((k) => k.selectFrom('audit_records').selectAll());
      expect(JSON.stringify(kept).includes(secret)).toBe(false);
      expect(lines.join().includes(secret)).toBe(false);
    },
  );

  it.each([
    ['in UTF-8, which Node reads as Latin-1', Buffer.from('pässwörd 1').toString('latin1')],
    ['percent-encoded', encodeURIComponent('pässwörd 1')],
    ['percent-encoded twice, within other text', `of p%25C3%25A4ssw%25C3%25B6rd+1.`],
  ])('D2-07: a password that is sent %s is stored as a hash', (_how, id) => {
    const basic = `Basic ${Buffer.from('chain:pässwörd 1').toString('base64')}`;
    expect(withoutOwnSecrets(id, secretsIn(['Authorization', basic]))).toBe(`jwt:${digits(id)}`);
    expect(withoutOwnSecrets(id, ['pässwörd 1'])).toBe(`jwt:${digits(id)}`);
  });

  it('D2-07: an id that has nothing but a short part in common with a credential is stored unchanged', () => {
    expect(withoutOwnSecrets('request-1', secretsIn(['Authorization', 'Bearer request']))).toBe('request-1');
    expect(withoutOwnSecrets('request-1', secretsIn(['Authorization', 'Bearer x']))).toBe('request-1');
    expect(withoutOwnSecrets('request-1', [undefined, 7, '', {}, ...secretsIn([], '/?client_id=request-1')])).toBe(
      'request-1',
    );
    expect(withoutOwnSecrets('short', ['short'])).toBe(`jwt:${digits('short')}`);
  });
});

/** Runs an operation on a socket whose upgrade has the id. */
async function operationOnSocket(): Promise<void> {
  const socket = new WebSocket(`${p.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', {
    headers: { 'x-correlation-id': jwt },
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on('open', () =>
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } })),
  );
  socket.on('message', (data) => {
    const { type } = JSON.parse(String(data));
    if (type === 'connection_ack')
      socket.send(JSON.stringify({ type: 'subscribe', id: '1', payload: { query: '{ me { subject } }' } }));
    if (type === 'complete') socket.close();
  });
  socket.on('close', () => resolve());
  await promise;
}
