import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { type RawAnswer, request, sendRaw } from '../support/gateway/raw.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const lines: object[] = [];
const log: Log = { ...silentLog, info: (fields) => lines.push(fields), error: (fields) => lines.push(fields) };
const p = beforeTests(() => startPortcullis({ overrides: { log } }));
let token: string;

beforeAll(async () => {
  token = await p.clientToken();
});

/** One request for each status that an answer can have without a fault. */
const answers: [number, string, string, Record<string, string>][] = [
  [200, 'GET', '/health', {}],
  [200, 'HEAD', '/health', {}],
  [204, 'OPTIONS', '/v1/accounts', {}],
  [400, 'GET', '/v1/accounts?page=0', {}],
  [401, 'GET', '/v1/accounts', { Authorization: 'Bearer broken' }],
  [404, 'GET', '/nowhere', {}],
  [404, 'GET', '/v1//accounts', {}],
  [404, 'GET', '/v1/accounts', { 'X-Target-Server': 'unknown' }],
];

async function send(method: string, path: string, headers: Record<string, string>): Promise<RawAnswer> {
  return sendRaw(p.url, request(method, path, { Authorization: `Bearer ${token}`, ...headers }));
}

describe('X-Correlation-ID', () => {
  it.each(answers)(
    '1-12 D2-05: is echoed by a %i (%s %s), or generated as a UUID v7',
    async (status, method, path, headers) => {
      for (const id of ['abc', 'a b\tc "d"; {}', 'caf\u00c3\u00a9 \u00ff', 'x'.repeat(1024)]) {
        const answer = await send(method, path, { ...headers, 'X-Correlation-ID': id });
        expect([answer.status, answer.headers['x-correlation-id']]).toEqual([status, id]);
      }
      const ids = new Set<string | undefined>();
      for (const given of [{}, { 'X-Correlation-ID': '' }, { 'X-Correlation-ID': '  ' }]) {
        const answer = await send(method, path, { ...headers, ...given });
        expect([answer.status, answer.headers['x-correlation-id']]).toEqual([status, expect.stringMatching(UUID_V7)]);
        ids.add(answer.headers['x-correlation-id']);
      }
      expect(ids.size).toBe(3);
    },
  );

  it('D2-05: over 1,024 bytes gets a 400 that names the header, with a generated id, even on an unknown path', async () => {
    for (const path of ['/health', '/v1/accounts', '/nowhere']) {
      const answer = await send('GET', path, { 'X-Correlation-ID': '\u00e9'.repeat(1025) });
      expect(answer.status).toBe(400);
      const { code, domain, message, errors } = JSON.parse(answer.body);
      expect([code, domain, message, errors[0].path]).toEqual([-1, 0, 'invalid_request', 'X-Correlation-ID']);
      expect(answer.headers['x-correlation-id']).toMatch(UUID_V7);
    }
  });

  it('D2-05 D2-12: is returned with the 500 of an internal error and is in its log line, and the body reveals nothing', async () => {
    vi.spyOn(p.service.context.directory, 'authenticate').mockRejectedValueOnce(
      new Error('select secret from clients'),
    );
    const json = { grant_type: 'client_credentials', ...p.demo.client };
    const answer = await p.call('POST', '/v2/oauth/token', { json, headers: { 'x-correlation-id': 'fault-1' } });
    expect(answer.status).toBe(500);
    expect(answer.text).toBe('{"code":-1,"domain":0,"message":"internal_error"}');
    expect(answer.headers.get('x-correlation-id')).toBe('fault-1');
    const logged = lines.filter((line) => 'correlation_id' in line && line.correlation_id === 'fault-1');
    expect(logged.filter((line) => 'err' in line)).toHaveLength(1);
    expect(logged.filter((line) => 'status' in line && line.status === 500)).toHaveLength(1);
  });

  it('D2-05: is forwarded to the event bus as received', async () => {
    const { username, password } = p.webhook;
    const id = p.demo.transactions.token_transactions;
    const headers = { authorization: basic(username, password), 'x-correlation-id': 'notified caf\u00e9' };
    const answer = await p.call('POST', '/v2/webhooks/custodial', { headers, json: notification({ id }) });
    expect(answer.status).toBe(200);
    const sent = await rows(p).run((k) =>
      k.selectFrom('bus_messages').select(['topic', 'headers']).where('key', '=', id),
    );
    expect(sent.map(({ topic }) => topic).sort()).toEqual(['transactions.admin', 'transactions.user']);
    for (const { headers } of sent) expect(headers).toMatchObject({ 'correlation-id': 'notified caf\u00e9' });
  });

  it('D2-05: is returned with a response that could not be recorded', async () => {
    const full = vi.spyOn(p.service.context.spool, 'isFull', 'get').mockReturnValue(true);
    const answers = await Promise.all(
      ['/v1/accounts', '/nowhere'].map((path) => send('GET', path, { 'X-Correlation-ID': 'full' })),
    );
    const health = await send('GET', '/v1/health?x=1', {});
    const webhook = await send('POST', '/v2/webhooks', {});
    full.mockRestore();
    expect(answers.map(({ status }) => status)).toEqual([503, 503]);
    for (const answer of answers) {
      expect(answer.headers['x-correlation-id']).toBe('full');
      expect(answer.headers['retry-after']).toBe('1');
    }
    expect([health.status, health.headers['x-correlation-id']]).toEqual([
      503,
      expect.stringMatching(/^[0-9a-f-]{36}$/),
    ]);
    expect(webhook.status).toBe(500);
  });
});
