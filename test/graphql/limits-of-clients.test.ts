import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { jsonOf } from '../../src/audit/audit-record.ts';
import { closeSockets, openSocket } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { addClient, type ClientCredentials, updateClient } from '../support/oauth/clients.ts';

const NOON = Date.UTC(2026, 10, 21, 12, 0, 0);
const QUERY = '{ me { nodeId } }';
const REFUSED = { message: 'rate_limit_exceeded', extensions: { code: 'RATE_LIMITED', retryAfter: 3_600 } };

const clock = { nowMs: NOON };
const p = beforeTests(() => startPortcullis({ overrides: { nowMs: () => clock.nowMs } }));
afterAll(closeSockets);
beforeEach(() => {
  clock.nowMs = NOON;
});

/** A client that may make so many requests an hour after it has got its token. */
async function limited(requests: number, settings: object = {}): Promise<{ client: ClientCredentials; token: string }> {
  const client = await addClient(p, { requests_per_hour: requests + 1, ...settings });
  return { client, token: await p.clientToken(client) };
}

/** How many requests the client has left, after the one that asks. */
async function leftAfterThis(token: string): Promise<number> {
  const { headers } = await p.call('GET', '/v1/accounts', { token });
  return Number(headers.get('x-ratelimit-remaining-hour'));
}

const batch = (token: string, size: number, headers: Record<string, string> = {}) =>
  p.call('POST', '/graphql', { token, headers, json: Array.from({ length: size }, () => ({ query: QUERY })) });

describe('a batch', () => {
  it('D2-20 8-05: counts each operation, the first one as the request, and returns what is left after the last', async () => {
    const { token } = await limited(10);
    const answer = await batch(token, 3);
    expect(answer.json.map((one: object) => Object.keys(one))).toEqual([['data'], ['data'], ['data']]);
    expect(answer.headers.get('x-ratelimit-remaining-hour')).toBe('7');
    expect(await leftAfterThis(token)).toBe(6);
  });

  it('D2-20 8-05: with too many operations returns errors in its 200, with the seconds to wait', async () => {
    const { token } = await limited(3);
    const answer = await batch(token, 5);
    expect(answer.status).toBe(200);
    const done = { data: { me: { nodeId: p.demo.node_id } } };
    expect(answer.json).toEqual([done, done, done, { errors: [REFUSED] }, { errors: [REFUSED] }]);
    expect(answer.headers.get('x-ratelimit-remaining-hour')).toBe('0');
  });

  it('D2-20 8-06: returns errors in its 200 for operations over the quota too', async () => {
    const client = await addClient(p, { monthly_limit: 2 });
    const answer = await batch(await p.clientToken(client), 2);
    const retryAfter = (Date.UTC(2026, 11, 1) - NOON) / 1_000;
    const error = { message: 'monthly_limit_exceeded', extensions: { code: 'RATE_LIMITED', retryAfter } };
    expect(answer.json).toEqual([{ data: expect.anything() }, { errors: [error] }]);
    expect(answer.headers.get('x-monthlylimit-remaining')).toBe('0');
  });

  it.each([1, 3])('D2-20 8-05: of %i without anything left is a 200 with an error for each', async (size) => {
    const { token } = await limited(0);
    const answer = await batch(token, size);
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual(Array.from({ length: size }, () => ({ errors: [REFUSED] })));
    expect(answer.headers.get('x-ratelimit-remaining-hour')).toBe('0');
    expect(answer.headers.has('retry-after')).toBe(false);
  });

  it('D2-20: whose window ends during it executes the remaining operations', async () => {
    const token = await p.clientToken(await addClient(p, { requests_per_second: 1 }));
    const { directory } = p.service.context;
    const client = directory.client.bind(directory);
    // The request has been refused by then.
    const asked = vi.spyOn(directory, 'client').mockImplementation((id) => {
      if (asked.mock.calls.length > 2) clock.nowMs = NOON + 1_000;
      return client(id);
    });
    try {
      const answer = await batch(token, 2);
      const refused = { ...REFUSED, extensions: { ...REFUSED.extensions, retryAfter: 1 } };
      expect(answer.json).toEqual([{ errors: [refused] }, { data: expect.anything() }]);
      expect(answer.headers.get('x-ratelimit-remaining-second')).toBe('0');
    } finally {
      asked.mockRestore();
    }
  });

  it('D2-07 D2-20: without anything left leaves a record for each operation', async () => {
    const { token } = await limited(0);
    const records = vi.spyOn(p.service.context.spool, 'append');
    try {
      await batch(token, 2);
      const kept = records.mock.calls.flat().map((line) => JSON.parse(jsonOf(Buffer.from(line))));
      expect(kept.map((record) => record.response_body)).toEqual(
        [0, 1].map(() => expect.stringContaining('rate_limit_exceeded')),
      );
    } finally {
      records.mockRestore();
    }
  });

  it('D2-20: with a login token is not counted', async () => {
    const client = await addClient(p, { requests_per_hour: 2 });
    const grant = { grant_type: 'password', ...client, ...p.demo.supervisor };
    const { access_token } = (await p.call('POST', '/v2/oauth/token', { json: grant })).json;
    const answer = await batch(access_token, 5);
    expect(answer.json.every((one: object) => 'data' in one)).toBe(true);
  });

  it('does not count an entry that is not an operation', async () => {
    const { token } = await limited(10);
    const json = [{ query: QUERY }, { query: '{ broken' }, { query: '{ unknown }' }];
    await p.call('POST', '/graphql', { token, json });
    expect(await leftAfterThis(token)).toBe(8);
  });
});

describe('a request that is not a batch', () => {
  const type = { 'content-type': 'application/json' };
  it.each([
    ['a single operation', { json: { query: QUERY } }],
    ['a body that is not JSON', { body: '[{"query":', headers: type }],
    ['a body that is not an operation', { json: 7 }],
    ['an empty batch', { json: [] }],
    ['a batch over its limit', { json: Array.from({ length: 11 }, () => ({ query: QUERY })) }],
    ['a body of another type', { body: '[]', headers: { 'content-type': 'text/plain' } }],
    ['a body that is too large', { body: `[${' '.repeat(1024 * 1024)}]`, headers: type }],
  ])('8-05 D2-20: %s gets a 429 with its headers when nothing is left', async (_name, request) => {
    const { token } = await limited(0);
    const answer = await p.call('POST', '/graphql', { token, ...request });
    expect(answer.status).toBe(429);
    expect(answer.json).toMatchObject({ message: 'rate_limit_exceeded' });
    expect(answer.headers.get('retry-after')).toBe('3600');
    expect(answer.headers.get('x-ratelimit-remaining-hour')).toBe('0');
  });

  it('8-05: a GET gets a 429 too', async () => {
    const { token } = await limited(0);
    const answer = await p.call('GET', `/graphql?query=${encodeURIComponent(QUERY)}`, { token });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '3600']);
  });
});

const ANSWERED = [
  { type: 'next', payload: { data: { me: { nodeId: expect.any(String) } } } },
  { type: 'complete', payload: undefined },
];

describe('a WebSocket', () => {
  it('D2-16 8-05: opens without being counted, even when nothing is left', async () => {
    const { token } = await limited(5);
    await openSocket(p, token);
    await openSocket(p, token);
    expect(await leftAfterThis(token)).toBe(4);
    const { token: spent } = await limited(0);
    const { messagesOf } = await openSocket(p, spent);
    expect(await messagesOf({ query: QUERY })).toEqual([{ type: 'error', payload: [REFUSED] }]);
  });

  it('D2-20 8-05: counts each operation; an excess one gets an error, and the socket stays open', async () => {
    const { token } = await limited(2);
    const { socket, messagesOf } = await openSocket(p, token);
    expect(await messagesOf({ query: QUERY })).toEqual(ANSWERED);
    expect(await messagesOf({ query: QUERY })).toEqual(ANSWERED);
    expect(await messagesOf({ query: QUERY })).toEqual([{ type: 'error', payload: [REFUSED] }]);
    expect(socket.readyState).toBe(socket.OPEN);
    expect((await p.call('GET', '/v1/accounts', { token })).status).toBe(429);
  });

  it('D2-20: accepts operations again when the window ends', async () => {
    const client = await addClient(p, { requests_per_second: 2 });
    const { messagesOf } = await openSocket(p, await p.clientToken(client));
    await messagesOf({ query: QUERY });
    expect((await messagesOf({ query: QUERY }))[0]).toMatchObject({
      type: 'error',
      payload: [{ extensions: { retryAfter: 1 } }],
    });
    clock.nowMs += 1_000;
    expect(await messagesOf({ query: QUERY })).toEqual(ANSWERED);
  });

  it('D2-16 D2-20: gets FORBIDDEN for an operation once its address is no longer allowed', async () => {
    const client = await addClient(p);
    const { socket, messagesOf } = await openSocket(p, await p.clientToken(client));
    expect(await messagesOf({ query: QUERY })).toEqual(ANSWERED);
    await updateClient(p, client.client_id, { allowed_ips: ['203.0.113.9'] });
    clock.nowMs += 2_000;
    await expect
      .poll(async () => (await messagesOf({ query: QUERY }))[0])
      .toEqual({ type: 'error', payload: [{ message: 'ip_not_allowed', extensions: { code: 'FORBIDDEN' } }] });
    expect(socket.readyState).toBe(socket.OPEN);
  });

  it('D2-20: with a login token is not counted', async () => {
    const client = await addClient(p, { requests_per_hour: 1 });
    const grant = { grant_type: 'password', ...client, ...p.demo.supervisor };
    const { access_token } = (await p.call('POST', '/v2/oauth/token', { json: grant })).json;
    const { messagesOf } = await openSocket(p, access_token);
    for (let i = 0; i < 3; i += 1) expect(await messagesOf({ query: QUERY })).toEqual(ANSWERED);
  });
});
