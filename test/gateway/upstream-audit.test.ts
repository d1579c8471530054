import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { recordOf } from '../support/audit/records.ts';
import { startUpstream } from '../support/gateway/forwarder.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { openSocket, request } from '../support/gateway/raw.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { writtenLog } from '../support/observability/written-log.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

const upstream = beforeTests(() =>
  startUpstream((req, res) => {
    req.resume();
    answer(req, res);
  }),
);
let answer: RequestListener;
let p: Portcullis;
const { log, lines } = writtenLog();

beforeAll(async () => {
  const endpoint = { methods: ['POST', 'GET'], path: '/v1/echo', services: ['accounts'], visibility: 'public' };
  const quiet = { ...endpoint, path: '/v1/quiet', doNotLog: true };
  const changed = { ...endpoint, path: '/v1/changed', mask: ['iban'], unmask: ['page_token'] };
  const graphql = { ...endpoint, path: '/v1/graphql' };
  const services = { accounts: { at: upstream.url, max_body_bytes: 0 } };
  await using file = await gatewayFile(services, [endpoint, quiet, changed, graphql]);
  p = await startPortcullis({
    env: { GATEWAY_CONFIG: file.path, AUDIT_MASKED_NAMES: 'account_code' },
    overrides: { log },
  });
});
afterAll(async () => {
  await p[Symbol.asyncDispose]();
});

async function recorded(act: RequestListener, body?: string, path = '/v1/echo', more: Record<string, string> = {}) {
  answer = act;
  const id = randomUUID();
  const headers = { 'x-correlation-id': id, ...JSON_TYPE, ...more };
  const got = await p.call(body === undefined ? 'GET' : 'POST', path, {
    headers,
    ...(body === undefined ? {} : { body }),
  });
  const record = await recordOf(p, id);
  const bytes = [Number(record.request_bytes), Number(record.response_bytes)];
  return { got, record, bytes };
}

describe('the record of a request to an upstream', () => {
  it('D1-18: masks the configured additional names, and shows the names that the endpoint unmasks', async () => {
    const body = '{"IBAN":"x","pageToken":"shown","accountCode":"x","private-key":"x"}';
    const answered: RequestListener = (_req, res) => res.writeHead(200, JSON_TYPE).end(body);
    const { record } = await recorded(answered, body, '/v1/changed?account-code=x&iban=x&page_token=a');
    const shown = '{"IBAN":"***","pageToken":"shown","accountCode":"***","private-key":"***"}';
    expect(record).toMatchObject({
      request_body: shown,
      response_body: shown,
      query: 'account-code=***&iban=***&page_token=a',
    });
    const other = await recorded(answered, body);
    expect(other.record.request_body).toBe('{"IBAN":"x","pageToken":"***","accountCode":"***","private-key":"***"}');
  });

  const OPERATION = {
    query: 'mutation ($p: String!) { a: newKey(value: $p) { shown: privateKey id } }',
    variables: { p: 'ZQZQ' },
  };

  it.each([
    ['/v1/graphql', OPERATION],
    ['/v1/echo', OPERATION],
    ['/v1/echo', { variables: { p: 'ZQZQ' }, query: '\n # a comment\nmutation { newKey }' }],
    ['/v1/echo', [{ query: '{ a: newKey(value: "ZQZQ") }' }]],
  ])(
    'D1-18: shows nothing of a GraphQL operation, whose schema is unknown, nor of its response: %s %j',
    async (path, operation) => {
      const body = JSON.stringify(operation);
      const answered: RequestListener = (_req, res) =>
        res.writeHead(200, JSON_TYPE).end('{"data":{"a":{"shown":"ZQZQ","id":"7"}}}');
      const { record } = await recorded(answered, body, path);
      expect(record).toMatchObject({ request_body: null, request_bytes: String(body.length), response_body: null });
    },
  );

  it('D1-18: shows a body whose member query is a search', async () => {
    const search = '{"query":"shoes","page":1}';
    const answered: RequestListener = (_req, res) => res.writeHead(200, JSON_TYPE).end('{}');
    expect((await recorded(answered, search)).record.request_body).toBe(search);
  });

  it('D2-07 D2-08 1-06: has both bodies, masked', async () => {
    const body = '{"name":"x","password":"hunter2"}';
    const { record, bytes } = await recorded(
      (_req, res) => res.writeHead(201, JSON_TYPE).end('{"token":"t0p","id":7}'),
      body,
    );
    expect(record).toMatchObject({
      status_code: 201,
      request_body: '{"name":"x","password":"***"}',
      response_body: '{"token":"***","id":7}',
      aborted: false,
    });
    expect(bytes).toEqual([body.length, 22]);
  });

  it('D2-08 D2-09: has nothing of a malformed or compressed JSON body, and no more than 64 KiB', async () => {
    const broken = await recorded((_req, res) => res.writeHead(200, JSON_TYPE).end('{"a":1,x"password":"hunter2"}'));
    expect(broken.record.response_body).not.toContain('hunter2');
    const packed = gzipSync('{"password":"hunter2"}');
    const zipped = await recorded((_req, res) =>
      res.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end(packed),
    );
    expect([zipped.got.text, zipped.bytes[1]]).toEqual(['{"password":"hunter2"}', packed.length]);
    expect(zipped.record.response_body ?? '').toHaveLength(0);
    const plain = { 'content-type': 'text/plain', 'content-encoding': 'gzip' };
    const text = await recorded((_req, res) => res.writeHead(200, plain).end(gzipSync('it is hunter2', { level: 0 })));
    expect([text.got.text, text.record.response_body]).toEqual(['it is hunter2', null]);
    const long = `{"list":"${'a'.repeat(500_000)}","password":"hunter2"}`;
    const cut = await recorded((_req, res) => res.writeHead(200, JSON_TYPE).end(long), long);
    expect(cut.got.text).toBe(long);
    for (const body of [cut.record.request_body, cut.record.response_body])
      expect(body?.length).toBeLessThanOrEqual(65_536);
    expect(cut.bytes).toEqual([long.length, long.length]);
  });

  it.each(['identity', 'Identity', ''])(
    'D2-08: has bodies with the content encoding %j, which means none',
    async (encoding) => {
      const coded = { 'content-encoding': encoding };
      const { record } = await recorded(
        (_req, res) => res.writeHead(200, { ...JSON_TYPE, ...coded }).end('{"a":1,"otp":"x"}'),
        '{"b":2,"otp":"x"}',
        '/v1/echo',
        coded,
      );
      expect(record).toMatchObject({ request_body: '{"b":2,"otp":"***"}', response_body: '{"a":1,"otp":"***"}' });
    },
  );

  it('1-08: has no bodies if the endpoint disables them', async () => {
    const { record, bytes } = await recorded(
      (_req, res) => res.writeHead(200, JSON_TYPE).end('{"a":1}'),
      '{"b":2}',
      '/v1/quiet',
    );
    expect(record).toMatchObject({ request_body: null, response_body: null });
    expect(bytes).toEqual([7, 7]);
  });

  it('D2-07: is written once when the upstream fails, with the response that the client got', async () => {
    const { got, record } = await recorded((_req, res) => res.destroy(), '{}');
    expect([got.status, record.status_code, record.aborted]).toEqual([502, 502, false]);
    expect(record.response_body).toContain('bad_gateway');
  });

  it('D2-07: is written once, marked aborted, when the response is cut or the client disconnects', async () => {
    for (const end of ['upstream', 'client'] as const) {
      const id = randomUUID();
      let cut = () => {};
      answer = (_req, res) => {
        res.writeHead(200, { ...JSON_TYPE, 'content-length': 100 });
        res.write('{"begun":1,');
        cut = () => res.destroy();
      };
      const socket = openSocket(p.url);
      socket.on('error', () => undefined);
      socket.write(request('GET', '/v1/echo', { 'X-Correlation-ID': id }));
      await once(socket, 'data');
      if (end === 'client') {
        socket.destroy();
      } else {
        cut();
        await once(socket, 'close');
      }
      expect(await recordOf(p, id)).toMatchObject({ status_code: 200, aborted: true, response_body: '{"begun":1,' });
    }
  });

  it('D2-07: of a client that disconnects before the response has a status that was never sent', async () => {
    const id = randomUUID();
    let asked = false;
    answer = () => {
      asked = true;
    };
    const socket = openSocket(p.url);
    socket.write(request('GET', '/v1/echo', { 'X-Correlation-ID': id }));
    await vi.waitFor(() => expect(asked).toBe(true));
    socket.destroy();
    expect(await recordOf(p, id)).toMatchObject({ status_code: 499, aborted: true });
  });

  it('D2-07: of a stream is written when the stream ends, and has its beginning', async () => {
    const { record } = await recorded((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: {"token":"t0p"}\n\n');
      setTimeout(() => res.end('data: {"n":2}\n\n'), 20);
    });
    expect(record).toMatchObject({ response_body: 'data: {"token":"***"}\n\ndata: {"n":2}\n\n', aborted: false });
  });

  it('D2-21: no log line has a secret of a body', () => {
    expect(lines.filter((line) => line.includes('"request"')).length).toBeGreaterThanOrEqual(8);
    expect(lines.join('\n')).not.toMatch(/hunter2|t0p/);
  });
});
