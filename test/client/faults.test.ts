import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  CursorExpiredError,
  NoResponseError,
  Portcullis,
  PortcullisError,
  RateLimitedError,
} from '../../client/src/index.ts';

type Respond = (res: ServerResponse, req: IncomingMessage) => void;

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Respond =>
  (res) =>
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
const refused = (status: number, message: string, headers = {}) =>
  json(status, { code: -1, domain: 0, message }, headers);
const dropped: Respond = (res) => res.destroy();
const migrated = json(201, { id: 'a' });

const update = (cursor: string) =>
  `event: next\ndata: {"data":{"transactionUpdates":{"cursor":"${cursor}","transaction":{"id":"t"}}}}\n\n`;
const failed = (code: string) =>
  `event: next\ndata: {"errors":[{"message":"${code.toLowerCase()}","extensions":{"code":"${code}"}}]}\n\nevent: complete\ndata:\n\n`;
/** Sends chunks of an event stream, then ends it; without an end it stays open. */
const stream =
  (chunks: readonly string[], isOpen = false): Respond =>
  (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const chunk of chunks) res.write(chunk);
    if (!isOpen) res.end();
  };

/** A gateway that answers one request after the other by a script, and a client of it. */
async function scripted(...script: Respond[]) {
  const seen: { headers: IncomingMessage['headers']; body: string; at: number }[] = [];
  const server = createServer(async (req, res) => {
    seen.push({ headers: req.headers, body: await text(req), at: Date.now() });
    (script[seen.length - 1] ?? refused(400, 'end_of_script'))(res, req);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const rejected: (string | undefined)[] = [];
  const token = async (one?: string) => `token-${rejected.push(one)}`;
  const client = new Portcullis({ baseUrl, token });
  const stop = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { client, baseUrl, seen, rejected, [Symbol.asyncDispose]: stop };
}

const user = { wallet_address: '0xAB', email: 'a@b.c' };

afterEach(() => {
  vi.useRealTimers();
});

describe('a request of the client package', () => {
  it('keeps its idempotency key over lost connections, failures and rejections', async () => {
    await using gateway = await scripted(
      dropped,
      refused(500, 'internal_error'),
      refused(503, 'service_unavailable'),
      migrated,
    );
    expect(await gateway.client.migrateUser(user)).toEqual({ id: 'a' });
    const keys = gateway.seen.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toHaveLength(4);
    expect(new Set(keys).size).toBe(1);
  });

  it('waits as long as Retry-After says, but not for a quota that resets in days', async () => {
    await using gateway = await scripted(
      refused(429, 'rate_limit_exceeded', { 'retry-after': '2' }),
      migrated,
      refused(429, 'monthly_limit_exceeded', { 'retry-after': '90000' }),
    );
    await gateway.client.migrateUser(user);
    const [first, second] = gateway.seen;
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(1990);
    const error = await gateway.client.migrateUser(user).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RateLimitedError);
    expect(error).toMatchObject({ code: 'monthly_limit_exceeded', retryAfter: 90_000 });
  });

  it('its error has every issue, the missing permission and the correlation id; without retries it is not repeated', async () => {
    const extensions = { code: 'FORBIDDEN', permission: 'users:migrate', correlationId: 'c' };
    const invalid = (path: string) => ({
      message: `Variable "$input" has invalid value at ${path}: no`,
      locations: [{ line: 1, column: 12 }],
    });
    await using gateway = await scripted(
      json(200, { data: null, errors: [{ message: 'no', extensions }] }),
      json(400, { errors: [invalid('.a[0].b'), invalid('.c')] }),
      refused(503, 'service_unavailable'),
    );
    const { baseUrl } = gateway;
    const client = new Portcullis({ baseUrl, token: async () => 'token', retries: 0 });
    await expect(client.graphql('{ a }')).rejects.toMatchObject({ message: 'no', ...extensions });
    const issues = [
      { path: ['a', '0', 'b'], message: 'no' },
      { path: ['c'], message: 'no' },
    ];
    await expect(client.graphql('{ a }')).rejects.toMatchObject({ issues });
    await expect(client.graphql('{ a }')).rejects.toMatchObject({ status: 503 });
  });

  it.each([
    [{ errors: [{ message: 'no' }, null, 'no', { path: ['a'] }] }, 'no', []],
    [{ errors: { message: 'no', extensions: { issues: [{ message: 'x' }, {}] } } }, 'no', [{ path: '', message: 'x' }]],
    [
      { message: 'invalid_request', errors: [{ message: 'no' }, { path: ['a', 0], message: 'x' }, 7] },
      '400 invalid_request: no',
      [
        { path: '', message: 'no' },
        { path: ['a', '0'], message: 'x' },
      ],
    ],
  ])('its error has issues with a path and a message, whatever a server sends: %j', async (body, told, issues) => {
    await using gateway = await scripted(json(400, body));
    const error = await gateway.client.graphql('{ a }').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PortcullisError);
    expect(error).toMatchObject({ message: told, status: 400 });
    expect((error as PortcullisError).issues).toEqual(issues);
  });

  it('is sent once if a retry could fail or act twice', async () => {
    await using gateway = await scripted(dropped, dropped);
    const rule = { name: 'x', type: 'auto_transfer' as const, network_id: 'n', network_currency_id: 'c' };
    const lost = { code: 'no_response', mayHaveBeenApplied: true, cause: expect.any(TypeError) };
    const replaced = gateway.client.replaceWalletRule('w', 'r', rule, { ifMatch: '"1"' });
    await expect(replaced).rejects.toMatchObject(lost);
    await expect(gateway.client.graphql('mutation { a }')).rejects.toMatchObject(lost);
    expect(gateway.seen).toHaveLength(2);
  });

  describe('that fails states whether it may have been applied', () => {
    const never: Respond = () => undefined;
    const failed = refused(500, 'internal_error');
    const write = (client: Portcullis, signal?: AbortSignal) =>
      client.migrateUser(user, { idempotencyKey: 'k-1', ...(signal && { signal }) });
    const mutation = (client: Portcullis) => client.graphql('mutation { a }');
    const ofGraphql = (code: string) => json(200, { data: null, errors: [{ message: 'no', extensions: { code } }] });
    const cases: [string, Respond[], (client: Portcullis) => Promise<unknown>, object][] = [
      ['its response was lost', [dropped], write, { status: 0, mayHaveBeenApplied: true, idempotencyKey: 'k-1' }],
      [
        'an attempt before a rejection was lost',
        [dropped, refused(403, 'x')],
        write,
        { status: 403, mayHaveBeenApplied: true },
      ],
      [
        'an attempt before a 401 was lost',
        [dropped, refused(401, 'x'), refused(403, 'x')],
        write,
        { status: 403, mayHaveBeenApplied: true },
      ],
      ['the gateway failed', [failed, failed, failed], write, { status: 500, mayHaveBeenApplied: true }],
      ['it was rejected', [refused(409, 'duplicate_email')], write, { status: 409, mayHaveBeenApplied: false }],
      [
        'a limit rejected it',
        [refused(429, 'x', { 'retry-after': '99' })],
        write,
        { status: 429, mayHaveBeenApplied: false },
      ],
      ['it reads', [dropped], (client) => client.getAsset('a'), { status: 0, mayHaveBeenApplied: false }],
      ['it is a query', [dropped], (client) => client.graphql('{ a }'), { status: 0, mayHaveBeenApplied: false }],
      ['a mutation failed', [ofGraphql('INTERNAL_SERVER_ERROR')], mutation, { status: 200, mayHaveBeenApplied: true }],
      ['a mutation was rejected', [ofGraphql('FORBIDDEN')], mutation, { status: 200, mayHaveBeenApplied: false }],
    ];

    it.each(cases)('if %s', async (_, script, act, expected) => {
      await using gateway = await scripted(...script, ...script.slice(-1), ...script.slice(-1));
      const client = new Portcullis({ baseUrl: gateway.baseUrl, token: async () => 'token', retries: 1 });
      const error = await act(client).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(PortcullisError);
      expect(error).toMatchObject(expected);
      expect(error instanceof NoResponseError).toBe((error as PortcullisError).status === 0);
    });

    it('if nothing listens there, or the host name is unknown', async () => {
      const { baseUrl } = await (async () => {
        await using closed = await scripted();
        return closed;
      })();
      for (const address of [baseUrl, 'http://portcullis.invalid']) {
        const client = new Portcullis({ baseUrl: address, token: async () => 'token', retries: 0 });
        await expect(write(client)).rejects.toMatchObject({ code: 'no_response', mayHaveBeenApplied: false });
        await expect(client.getHealth()).rejects.toBeInstanceOf(NoResponseError);
        const secret = new Portcullis({ baseUrl: address, clientId: 'a', clientSecret: 'b', retries: 0 });
        await expect(write(secret)).rejects.toMatchObject({ code: 'no_response', mayHaveBeenApplied: false });
      }
    });

    it('if its signal aborts: after sending with the reason as cause, before sending with the reason', async () => {
      await using gateway = await scripted(never, dropped);
      const { client } = gateway;
      const timeout = { name: 'TimeoutError' };
      const aborted = { code: 'aborted', mayHaveBeenApplied: true, idempotencyKey: 'k-1', cause: timeout };
      await expect(write(client, AbortSignal.timeout(200))).rejects.toMatchObject(aborted);
      // Between two attempts.
      await expect(write(client, AbortSignal.timeout(200))).rejects.toMatchObject(aborted);
      await expect(write(client, AbortSignal.abort('stop'))).rejects.toBe('stop');
      expect(gateway.seen).toHaveLength(2);
    });

    it('if no response arrives in time', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      const fetch = () => new Promise<Response>(() => {});
      const client = new Portcullis({ baseUrl: 'http://gateway', token: async () => 'token', fetch, retries: 0 });
      const late = expect(write(client)).rejects.toMatchObject({ code: 'timeout', mayHaveBeenApplied: true });
      await vi.advanceTimersByTimeAsync(60_000);
      await late;
    });
  });

  it.each([
    ['Bearer error="insufficient_scope", scope="wallets:write users:migrate"', 'wallets:write users:migrate'],
    ['Basic realm="a, b", bearer scope=wallets:write,ERROR = insufficient_scope', 'wallets:write'],
    ['Bearer realm="scope=\\"x\\"", error="insufficient_scope", scope="a"', 'a'],
    ['Bearer error="insufficient_scope"', undefined],
    ['Bearer error="invalid_token", scope="a"', undefined],
    ['Bearer error_description="error=insufficient_scope, scope=a"', undefined],
    [undefined, undefined],
  ])('names the missing permission of %s', async (challenge, permission) => {
    await using gateway = await scripted(refused(403, 'forbidden', challenge && { 'www-authenticate': challenge }));
    const error = await gateway.client.getAsset('a').catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 403 });
    expect((error as PortcullisError).permission).toBe(permission);
  });

  const DATE = 'Sat, 21 Nov 2026 10:30:00 GMT';
  it.each<[text: string, date: string | undefined, seconds: unknown]>([
    ['90', DATE, 90],
    ['0', DATE, 0],
    ['Sat, 21 Nov 2026 10:31:30 GMT', DATE, 90],
    ['Saturday, 21-Nov-26 10:31:30 GMT', DATE, 90],
    ['Sat Nov 21 10:31:30 2026', DATE, 90],
    ['Sat, 21 Nov 2026 10:29:00 GMT', DATE, 0],
    ['Sun, 06 Nov 1994 08:49:37 GMT', undefined, 0],
    ['Sat, 21 Nov 2099 10:31:30 GMT', undefined, expect.any(Number)],
    ['-5', DATE, undefined],
    ['1e3', DATE, undefined],
    ['0x10', DATE, undefined],
    ['soon', DATE, undefined],
    ['Sat, soon', DATE, undefined],
    ['5, 10', DATE, undefined],
    ['', DATE, undefined],
    ['2026-11-21T10:31:30Z', DATE, undefined],
  ])('reads Retry-After: %s, by the clock of the response or its own', async (text, date, seconds) => {
    const headers = { 'retry-after': `${text}`, ...(date ? { date: String(date) } : {}) };
    const fetch = async () => Response.json({ message: 'rate_limit_exceeded' }, { status: 429, headers });
    const client = new Portcullis({ baseUrl: 'http://gateway', token: async () => 'token', fetch, retries: 0 });
    const error = await client.getAsset('a').catch((reason: unknown) => reason);
    expect((error as PortcullisError).retryAfter).toEqual(seconds);
  });

  it('waits until the date in Retry-After, but not for a distant one', async () => {
    const dateIn = (seconds: number) => new Date(Date.now() + seconds * 1000).toUTCString();
    await using gateway = await scripted(
      refused(429, 'rate_limit_exceeded', { 'retry-after': dateIn(2), date: dateIn(0) }),
      migrated,
      refused(503, 'service_unavailable', { 'retry-after': dateIn(3_600) }),
    );
    await gateway.client.migrateUser(user);
    const [first, second] = gateway.seen;
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(1990);
    await expect(gateway.client.migrateUser(user)).rejects.toMatchObject({ status: 503 });
    expect(gateway.seen).toHaveLength(3);
  });

  it('is sent with another token once after a 401', async () => {
    await using gateway = await scripted(
      refused(401, 'unauthorized'),
      migrated,
      ...Array(2).fill(refused(401, 'unauthorized')),
    );
    await gateway.client.migrateUser(user);
    expect(gateway.rejected).toEqual([undefined, 'token-1']);
    await expect(gateway.client.migrateUser(user)).rejects.toMatchObject({ status: 401 });
    expect(gateway.seen).toHaveLength(4);
  });

  it.each(['', '<html>', 'null', '[]', '{"data": null}', '{"errors": [null]}', '{"errors": {}}'])(
    'throws an error with the status if the body is %s',
    async (body) => {
      const unexpected = { name: 'PortcullisError', status: 200, code: 'unexpected_response' };
      await using gateway = await scripted((res) => res.end(body), stream([`event: next\ndata: ${body}\n\n`]));
      await expect(gateway.client.graphql('{ a }')).rejects.toMatchObject(unexpected);
      await expect(gateway.client.updates().next()).rejects.toMatchObject(unexpected);
    },
  );

  it('discovers the token endpoint again after a malformed metadata response', async () => {
    const metadata = { issuer: 'http://gateway', token_endpoint: 'http://gateway/token' };
    const bodies = ['<html>', JSON.stringify(metadata), '{"access_token": "token", "expires_in": 60}', '{"id": "a"}'];
    const respond = async () => new Response(bodies.shift());
    const client = new Portcullis({ baseUrl: 'http://gateway', clientId: 'a', clientSecret: 'b', fetch: respond });
    await expect(client.getAsset('a')).rejects.toMatchObject({ code: 'unexpected_response' });
    expect(await client.getAsset('a')).toEqual({ id: 'a' });
  });

  it.each([
    ['a token', { token: () => new Promise<string>(() => {}) }],
    ['a response', { fetch: () => new Promise<Response>(() => {}) }],
    ['a body', { fetch: async () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) })) }],
  ])('rejects with the reason of its signal if %s never arrives', async (_, options) => {
    const client = new Portcullis({ baseUrl: 'http://gateway', token: async () => 'token', ...options });
    await expect(client.getAsset('a', { signal: AbortSignal.timeout(50) })).rejects.toThrow(/timeout/);
    await expect(client.updates({ signal: AbortSignal.timeout(50) }).next()).rejects.toThrow(/timeout/);
  });

  it('leaves no unhandled rejection if its signal has already aborted', async () => {
    const token = () => Promise.reject(new Error('no token'));
    const client = new Portcullis({ baseUrl: 'http://127.0.0.1:1', token });
    const reason = new Error('stop');
    await expect(client.getAsset('a', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  it('rejects with the reason of its signal, also between attempts', async () => {
    await using gateway = await scripted(refused(503, 'service_unavailable', { 'retry-after': '30' }));
    const signal = AbortSignal.timeout(200);
    await expect(gateway.client.getAsset('a', { signal })).rejects.toThrow(/timeout/);
    await expect(gateway.client.getAsset('a', { signal })).rejects.toThrow(/timeout/);
    expect(gateway.seen).toHaveLength(1);
  });
});

describe('updates of the client package', () => {
  it('resume after the last cursor if the stream breaks, the gateway restarts or the reader was too slow', async () => {
    const [head = '', tail = ''] = [update('2').slice(0, 30), update('2').slice(30)];
    await using gateway = await scripted(
      stream([':\n\n', update('1'), head]),
      refused(503, 'service_unavailable'),
      dropped,
      refused(401, 'unauthorized'),
      stream([head, tail, failed('SLOW_CONSUMER')]),
      stream([failed('SERVICE_UNAVAILABLE')]),
      stream([update('3'), 'event: complete\ndata:\n\n']),
    );
    const updates = await Array.fromAsync(gateway.client.updates({ after: '0' }), ({ cursor }) => cursor);
    expect(updates).toEqual(['1', '2', '3']);
    const cursors = gateway.seen.map(({ body }) => JSON.parse(body).variables.after);
    expect(cursors).toEqual(['0', '1', '1', '1', '1', '2', '2']);
  });

  it('are parsed with any line ending and in chunks of any size, in linear time', async () => {
    const long = '0'.repeat(1_000_000);
    const lineEnds = [update('1'), update('2').replaceAll('\n', '\r'), update('3').replaceAll('\n', '\r\n')];
    const complete = 'event: complete\ndata:\n\n';
    for (const [size, text, cursors] of [
      [1, lineEnds.join(':é\n'), ['1', '2', '3']],
      [3, lineEnds.join(''), ['1', '2', '3']],
      [20, update(long), [long]],
    ] as const) {
      const bytes = Buffer.from(text + complete);
      const body = new ReadableStream({
        start: (to) => {
          for (let at = 0; at < bytes.length; at += size) to.enqueue(bytes.subarray(at, at + size));
          to.close();
        },
      });
      const respond = async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } });
      const client = new Portcullis({ baseUrl: 'http://gateway', token: async () => 'token', fetch: respond });
      expect(await Array.fromAsync(client.updates({ after: '0' }), ({ cursor }) => cursor)).toEqual(cursors);
    }
  });

  it('reconnect when the stream falls silent', async () => {
    await using gateway = await scripted(stream([update('1')], true), stream([update('2')], true));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const updates = gateway.client.updates({ after: '0' });
    expect((await updates.next()).value?.cursor).toBe('1');
    const second = updates.next();
    await vi.waitFor(async () => {
      await vi.advanceTimersByTimeAsync(10_000);
      expect(gateway.seen).toHaveLength(2);
    });
    expect((await second).value?.cursor).toBe('2');
    await updates.return();
  });

  it.each([
    ['a cursor that has expired', stream([failed('CURSOR_EXPIRED')]), CursorExpiredError],
    [
      'a pause of more than a minute',
      refused(429, 'rate_limit_exceeded', { 'retry-after': '86400' }),
      RateLimitedError,
    ],
    ['an invalid filter', json(400, { errors: [{ message: 'no', extensions: { code: 'BAD_USER_INPUT' } }] }), /no/],
    ['a missing permission', refused(403, 'forbidden'), /403 forbidden/],
  ])('end with an error for %s', async (_, respond, error) => {
    await using gateway = await scripted(respond);
    await expect(gateway.client.updates({ after: '0' }).next()).rejects.toThrow(error);
    expect(gateway.seen).toHaveLength(1);
  });

  it('wait while no token is issued, and end with other errors of the token source', async () => {
    await using gateway = await scripted(stream([update('1'), 'event: complete\ndata:\n\n']));
    const down = new PortcullisError('down', { status: 503, code: 'service_unavailable' });
    const outcomes: (string | Error)[] = [down, new TypeError('fetch failed'), 'token', new Error('signed out')];
    const token = async () => {
      const outcome = outcomes.shift();
      if (typeof outcome === 'string') return outcome;
      throw outcome;
    };
    const client = new Portcullis({ baseUrl: gateway.baseUrl, token });
    expect(await Array.fromAsync(client.updates({ after: '0' }))).toHaveLength(1);
    await expect(client.updates({ after: '0' }).next()).rejects.toThrow('signed out');
  });

  it('are live within two seconds after any outage, or when Retry-After says', async () => {
    const waits: number[] = [];
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    const responses: (() => Promise<Response>)[] = [
      ...Array(20).fill(() => Promise.reject(new TypeError('fetch failed'))),
      async () => new Response('{}', { status: 503, headers: { 'retry-after': '7' } }),
      async () => new Response('{}', { status: 503 }),
      async () =>
        new Response(`${update('1')}event: complete\ndata:\n\n`, { headers: { 'content-type': 'text/event-stream' } }),
    ];
    const fetch = () => responses.shift()?.() ?? Promise.reject(new Error('end of script'));
    const client = new Portcullis({ baseUrl: 'http://gateway', token: async () => 'token', fetch });
    const onState = (connection: { state: string; untilMs?: number }) => {
      if (connection.untilMs !== undefined) waits.push(connection.untilMs - Date.now());
    };
    const all = Array.fromAsync(client.updates({ after: '0', onState }));
    await vi.advanceTimersByTimeAsync(120_000);
    expect(await all).toHaveLength(1);
    expect(waits).toHaveLength(22);
    expect(waits[20]).toBe(7_000);
    expect(Math.max(...waits.toSpliced(20, 1))).toBeLessThanOrEqual(2_000);
    expect(new Set(waits).size).toBeGreaterThan(10);
  });

  it('retry the token with short pauses too', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    let isUp = false;
    const bodies = [
      '{"issuer": "http://gateway", "token_endpoint": "http://gateway/t"}',
      '{"access_token": "t", "expires_in": 60}',
    ];
    const fetch = async () => {
      if (!isUp) throw new TypeError('fetch failed');
      const stream = { headers: { 'content-type': 'text/event-stream' } };
      return bodies.length > 0 ? new Response(bodies.shift()) : new Response(update('1'), stream);
    };
    const client = new Portcullis({ baseUrl: 'http://gateway', clientId: 'a', clientSecret: 'b', fetch });
    const first = client.updates({ after: '0' }).next();
    await vi.advanceTimersByTimeAsync(300_000);
    isUp = true;
    const before = Date.now();
    await vi.advanceTimersByTimeAsync(2_100);
    expect((await first).value?.cursor).toBe('1');
    expect(Date.now() - before).toBeLessThan(2_200);
  });

  it('reconnect at once when a browser is online again', async () => {
    const browser = new EventTarget();
    vi.stubGlobal('addEventListener', browser.addEventListener.bind(browser));
    vi.stubGlobal('removeEventListener', browser.removeEventListener.bind(browser));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const complete = `${update('1')}event: complete\ndata:\n\n`;
    const responses = [async () => new Response(complete, { headers: { 'content-type': 'text/event-stream' } })];
    const waiting = Promise.withResolvers<void>();
    let isOffline = true;
    const fetch = async () => {
      if (isOffline) throw new TypeError('fetch failed');
      return responses.shift()?.() ?? Response.error();
    };
    const client = new Portcullis({ baseUrl: 'http://gateway', token: async () => 'token', fetch });
    const onState = ({ state }: { state: string }) => state === 'waiting' && setImmediate(waiting.resolve);
    const all = Array.fromAsync(client.updates({ after: '0', onState }));
    await waiting.promise;
    isOffline = false;
    browser.dispatchEvent(new Event('online'));
    // No timer has run.
    expect(await all).toHaveLength(1);
    vi.unstubAllGlobals();
  });

  it('close the connection when the reader stops, and reject with the reason of the signal', async () => {
    const closed = Promise.withResolvers<void>();
    const open: Respond = (res, req) => {
      res.on('close', closed.resolve);
      stream([update('1')], true)(res, req);
    };
    await using gateway = await scripted(open, stream([], true));
    for await (const { cursor } of gateway.client.updates({ after: '0' })) {
      expect(cursor).toBe('1');
      break;
    }
    await closed.promise;
    const signal = AbortSignal.timeout(100);
    await expect(gateway.client.updates({ after: '1', signal }).next()).rejects.toThrow(/timeout/);
  });
});
