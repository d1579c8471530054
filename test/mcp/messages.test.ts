import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import type { Portcullis } from '../support/harness.ts';
import { callOf, post } from '../support/mcp/agents.ts';
import { type AgentFixture, agentFixture, PING, PONG } from '../support/mcp/fixture.ts';

const fixture = beforeTests(agentFixture);
let p: Portcullis;
let secret: string;
let raw: AgentFixture['raw'];
let faults: AgentFixture['faults'];

beforeAll(async () => {
  ({ p, secret, raw, faults } = fixture);
});
beforeEach(() => void faults.splice(0));

describe('MCP messages over HTTP', () => {
  it.each([
    ['GET', '/v2/mcp'],
    ['DELETE', '/v2/mcp'],
    ['GET', '/v2/mcp/'],
    ['GET', '/v2/mcp/a/b'],
  ])('4.9-06: %s %s with a valid secret is 405 with Allow: POST; without one it is 401', async (method, target) => {
    const answer = await raw({ accept: 'text/event-stream' }, { method, target });
    expect([answer.status, answer.body, answer.headers.allow]).toEqual([405, envelope('method_not_allowed'), 'POST']);
    expect((await raw({ authorization: 'Bearer x' }, { method, target })).status).toBe(401);
  });

  it.each(['POST', 'GET', 'DELETE'])('4.9-06: %s with a session id: 404', async (method) => {
    const answer = await raw({ 'mcp-session-id': randomUUID() }, { method });
    expect([answer.status, answer.body]).toEqual([404, envelope('not_found')]);
  });

  it('4.9-06: no response has a session id, and every path below /v2/mcp is the same server', async () => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    const message = { jsonrpc: '2.0', id: 'a', method: 'initialize', params };
    const [at, below] = await Promise.all(
      ['/v2/mcp', '/v2/mcp/any/thing'].map((path) => post(p, secret, message, { path })),
    );
    expect(at?.json.result).toMatchObject({ protocolVersion: '2025-11-25', serverInfo: { name: 'portcullis' } });
    expect(below?.text).toBe(at?.text);
    expect([at?.headers.get('mcp-session-id'), at?.headers.get('cache-control')]).toEqual([null, 'no-store']);
    expect(at?.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  it.each([1_000, 5_000, 10_090])(
    'D6-25: a message nested %i levels deep gets the response of its member: an error, or the result',
    async (levels) => {
      const objects = `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
      const lists = `${'['.repeat(levels)}null${']'.repeat(levels)}`;
      const send = async (member: string, value: string) => {
        const headers = { 'content-type': 'application/json', authorization: `Bearer ${secret}` };
        const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_access","${member}":${value}}}`;
        const answer = await fetch(`${p.url}/v2/mcp`, { method: 'POST', headers, body });
        return { status: answer.status, ...JSON.parse(await answer.text()) };
      };
      const access = { structuredContent: { node_id: p.demo.node_id } };
      for (const value of [objects, lists]) {
        expect(await send('arguments', `{"x":${value}}`)).toMatchObject({ status: 200, result: { isError: true } });
        expect(await send('_meta', `{"x":${value}}`)).toMatchObject({ status: 200, result: access });
        expect(await send('more', value)).toMatchObject({ status: 200, result: access });
      }
      expect(faults).toEqual([]);
    },
  );

  it('4.9-06: requests that accept only JSON, anything, or state nothing are answered', async () => {
    for (const accept of ['application/json', '*/*', undefined]) expect((await raw({ accept })).status).toBe(200);
  });

  it.each<[string, string | Buffer, Record<string, string>, string]>([
    ['malformed JSON', '{"jsonrpc":"2.0",', {}, ''],
    ['nothing', '', {}, ''],
    ['bytes that are not UTF-8', Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xff"}', 'latin1'), {}, ''],
    ['a batch', JSON.stringify([PING, PING]), {}, ''],
    ['an empty batch', '[]', {}, ''],
    ['a text', '"ping"', {}, ''],
    ['null', 'null', {}, ''],
    ['another version of JSON-RPC', '{"jsonrpc":"1.0","id":1,"method":"ping"}', {}, 'jsonrpc'],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', {}, ''],
    ['an id that a double cannot represent', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', {}, ''],
    ['a method that is a number', '{"jsonrpc":"2.0","id":1,"method":1}', {}, 'method'],
    ['params that are a list', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', {}, ''],
    [
      '100,000 levels',
      `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`,
      {},
      '',
    ],
    [
      'an object of 2,000 members',
      JSON.stringify({ ...PING, params: Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`a${n}`, n])) }),
      {},
      '',
    ],
    ['another content type', JSON.stringify(PING), { 'content-type': 'text/plain' }, 'Content-Type'],
    ['a content encoding', JSON.stringify(PING), { 'content-encoding': 'gzip' }, 'Content-Encoding'],
  ])('4.9-06 D2-13: a body with %s: 400', async (_name, body, headers, path) => {
    const given = { 'content-type': 'application/json', authorization: `Bearer ${secret}`, ...headers };
    const answer = await p.call('POST', '/v2/mcp', { body, headers: given });
    expect([answer.status, answer.json]).toEqual([
      400,
      { code: -1, domain: 0, message: 'invalid_request', errors: [{ path, message: expect.any(String) }] },
    ]);
    expect(faults).toEqual([]);
  });

  it('4.9-06: the error for an invalid message says what a message must be', async () => {
    const { json } = await post(p, secret, { ...PING, params: [1] });
    expect(json.errors[0].message).toBe('must be a JSON-RPC 2.0 message, whose params are an object if it has any');
  });

  it('4.9-06 D2-13: the error names each member that is missing or misspelled', async () => {
    const { status, json } = await post(p, secret, { id: 1, Method: 'ping' });
    expect([status, json.errors]).toEqual([
      400,
      [
        { path: 'jsonrpc', message: 'is required: 2.0' },
        { path: 'method', message: "is required: a string; method is the member's name, not Method" },
      ],
    ]);
  });

  const CLIENT_INFO = { name: 'x', version: '1' };
  const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT_INFO };
  it.each<[method: string, params: unknown]>([
    ['ping', null],
    ['ping', { _meta: null }],
    ['tools/list', null],
    ['tools/list', { cursor: null }],
    ['tools/list', { cursor: null, _meta: { progressToken: null } }],
    ['tools/call', { name: 'list_accounts', arguments: null }],
    ['tools/call', { name: 'list_accounts', arguments: {}, task: null, _meta: null }],
    ['tools/call', { name: 'list_accounts', arguments: { limit: null, cursor: null, include_total: null } }],
    ['tools/call', { name: 'list_accounts', arguments: { limit: 1, unknown: null } }],
    ['tools/call', { name: 'list_accounts', _meta: { progressToken: null, other: { a: null } } }],
    ['initialize', { ...INITIALIZE, _meta: null }],
    ['initialize', { ...INITIALIZE, capabilities: { roots: null, sampling: null, elicitation: null } }],
    ['initialize', { ...INITIALIZE, capabilities: { roots: { listChanged: null }, experimental: { a: null } } }],
    ['initialize', { ...INITIALIZE, clientInfo: { ...CLIENT_INFO, title: null, websiteUrl: null, icons: null } }],
  ])('D2-18 D8-06: %s(%j): null counts as absent', async (method, params) => {
    const { status, json } = await post(p, secret, { jsonrpc: '2.0', id: 'n', method, params });
    expect([status, json]).toEqual([200, { jsonrpc: '2.0', id: 'n', result: expect.any(Object) }]);
    expect(json.result.isError).toBeUndefined();
    expect(faults).toEqual([]);
  });

  it('D2-18 D8-06: null members of nested arguments count as absent', async () => {
    const rule = { name: 'x', type: null, auto_transfer_rule: { amount: null, logic: null } };
    const call = (given: object) =>
      post(p, secret, {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'create_wallet_rule', arguments: given },
      });
    const [sent, bare] = [
      await call({ wallet_id: null, rule }),
      await call({ rule: { name: 'x', auto_transfer_rule: {} } }),
    ];
    expect(sent.json).toEqual(bare.json);
  });

  it('D2-18 D8-06: a notification may have params of null, and a response an error of null', async () => {
    const notification = { jsonrpc: '2.0', method: 'notifications/initialized', params: null };
    expect((await post(p, secret, notification)).status).toBe(202);
    expect((await post(p, secret, { jsonrpc: '2.0', id: 1, result: {}, error: null })).status).toBe(202);
  });

  it.each(['mcp-protocol-version', 'mcp-method', 'mcp-name'])(
    'D8-06: an empty header %s counts as absent',
    async (name) => {
      const answer = await raw({ [name]: '' });
      expect([answer.status, JSON.parse(answer.body)]).toEqual([200, PONG]);
    },
  );

  it('D8-06: a request with a null id is a 400, since its sender expects a response', async () => {
    const { status, json } = await post(p, secret, { jsonrpc: '2.0', id: null, method: 'tools/list' });
    expect([status, json.errors]).toEqual([
      400,
      [{ path: 'id', message: expect.stringContaining('does not allow null') }],
    ]);
  });

  it.each(['jsonrpc', 'method'])('D2-18 D8-06: a null %s counts as missing', async (member) => {
    const { status, json } = await post(p, secret, { jsonrpc: '2.0', id: 1, method: 'ping', [member]: null });
    expect([status, json.errors]).toEqual([400, [{ path: member, message: expect.stringContaining('is required') }]]);
  });

  it('4.9-06 D2-14: a body over 1 MiB: 413', async () => {
    const answer = await raw({}, { body: { ...PING, params: { a: 'x'.repeat(1_100_000) } } });
    expect([answer.status, answer.body]).toEqual([413, envelope('payload_too_large')]);
  });

  it.each([
    ['server/discover', {}, -32_601],
    ['resources/list', {}, -32_601],
    ['prompts/get', { name: 'x' }, -32_601],
    ['logging/setLevel', { level: 'debug' }, -32_601],
    ['completion/complete', {}, -32_601],
    ['tasks/list', {}, -32_601],
    ['__proto__', {}, -32_601],
    ['tools/call', {}, -32_602],
    ['tools/call', { name: 1 }, -32_602],
    ['tools/call', { name: 'toString' }, -32_602],
    ['tools/call', { name: '__proto__', arguments: {} }, -32_602],
    ['tools/call', { name: 'list_accounts', arguments: [] }, -32_602],
    ['tools/call', { name: 'list_accounts', task: 1 }, -32_602],
    ['tools/call', { name: 'list_accounts', task: { ttl: 'a minute' } }, -32_602],
    ['initialize', {}, -32_602],
    ['initialize', { protocolVersion: 1, capabilities: {}, clientInfo: {} }, -32_602],
  ])('4.9-06 D8-06: %s(%j) is a protocol error', async (method, params, code) => {
    const { status, json } = await post(p, secret, { jsonrpc: '2.0', id: 7, method, params });
    expect([status, json]).toEqual([200, { jsonrpc: '2.0', id: 7, error: { code, message: expect.any(String) } }]);
    expect(faults).toEqual([]);
  });

  /** A message of the stateless revision, by what it adds to its params and headers. */
  const alone = (method: string, params: Record<string, unknown> = {}, version = '2026-07-28') => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': version,
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const headers = { 'mcp-protocol-version': version, 'mcp-method': method, 'mcp-name': String(params.name) };
    return post(p, secret, { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }, { headers });
  };

  it('D8-07: a message of revision 2026-07-28 needs no initialize before it', async () => {
    const discovered = await alone('server/discover');
    expect([discovered.status, discovered.json.result]).toEqual([
      200,
      expect.objectContaining({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }),
    ]);
    expect(discovered.headers.get('mcp-session-id')).toBeNull();
    const { json } = await alone('tools/call', { name: 'get_access', arguments: {} });
    expect(json.result).toMatchObject({ resultType: 'complete', structuredContent: { node_id: p.demo.node_id } });
  });

  it.each<[string, () => ReturnType<typeof alone>, number, number]>([
    ['an unknown revision', () => alone('tools/list', {}, '2027-01-01'), 400, -32_022],
    ['an unknown method', () => alone('tools/unknown'), 404, -32_601],
    ['an unknown tool', () => alone('tools/call', { name: 'list_secrets', arguments: {} }), 200, -32_602],
    ['params of another type', () => alone('tools/call', { name: 'get_access', arguments: [] }), 200, -32_602],
    [
      'only the header of the revision',
      () => post(p, secret, PING, { headers: { 'mcp-protocol-version': '2026-07-28' } }),
      ...([400, -32_602] as const),
    ],
  ])('D8-07: with %s a message of revision 2026-07-28 is a protocol error', async (_what, ask, status, code) => {
    const answer = await ask();
    expect([answer.status, answer.json.error.code]).toEqual([status, code]);
    expect(faults).toEqual([]);
  });

  it('D8-07: a subscription completes immediately, since the server has no notifications to send', async () => {
    const { status, text } = await alone('subscriptions/listen', { notifications: { toolsListChanged: true } });
    expect([status, text]).toEqual([200, expect.stringContaining('"resultType":"complete"')]);
  });

  it.each([
    ['a notification', { jsonrpc: '2.0', method: 'notifications/initialized' }],
    ['an unknown notification', { jsonrpc: '2.0', method: 'notifications/nobody' }],
    ['a cancellation', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }],
    ['a response to no request', { jsonrpc: '2.0', id: 1, result: {} }],
  ])('4.9-06: %s is accepted with 202 and no body', async (_name, message) => {
    const { status, text } = await post(p, secret, message);
    expect([status, text]).toEqual([202, '']);
  });

  it.each([{}, { ttl: 60_000 }])(
    '4.9-06: a call with task parameters (%j) runs as an ordinary call, since tasks are not supported',
    async (task) => {
      const args = { wallet_address: `0x${randomUUID()}`, external_id: randomUUID() };
      const params = { name: 'migrate_users', arguments: { users: [args] }, task };
      const { json } = await post(p, secret, { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      expect(json.result.structuredContent).toMatchObject({
        success: 1,
        rows: { data: [args.external_id].map((external_id) => ({ external_id })) },
      });
      expect((await post(p, secret, { ...PING, params: { task } })).json).toEqual(PONG);
    },
  );

  describe('D8-06: argument names that could change the prototype of an object', () => {
    const asked = async (name: string, args: string) => {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`;
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${secret}` };
      const { status, text } = await p.call('POST', '/v2/mcp', { body, headers });
      expect(status).toBe(200);
      return text;
    };
    const NAMES = ['__proto__', 'constructor', 'prototype', 'toString'];
    afterEach(() => {
      expect(({} as { limit?: number }).limit).toBeUndefined();
      expect(faults).toEqual([]);
    });

    it.each(NAMES)('are rejected as any unknown argument: %s', async (name) => {
      for (const value of ['{"limit":1}', '1']) {
        const refused = await asked('list_accounts', `{"${name}":${value}}`);
        expect(JSON.parse(refused).result._meta.error).toEqual({
          code: 'invalid_arguments',
          issues: [{ path: name, message: 'is no argument of list_accounts' }],
        });
        expect(refused.replaceAll(name, 'other')).toBe(await asked('list_accounts', `{"other":${value}}`));
      }
    });

    it.each(NAMES)('add no member inside another argument: %s', async (name) => {
      const call = (member: string) =>
        asked('create_wallet_rule', `{"wallet_id":"${randomUUID()}","rule":{"${member}":{"name":"x","type":"limit"}}}`);
      const refused = await call(name);
      expect(refused).toContain('rule.name');
      expect(refused.replaceAll(name, 'other')).toBe(await call('other'));
    });
  });

  it('D8-06: a tool name, a text and an argument list as long as the body allows cause no server error', async () => {
    const long = 'x'.repeat(900_000);
    const many = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`a${at}`, at]));
    const calls = [
      callOf(long),
      callOf('list_accounts', { search: long }),
      callOf('list_accounts', many),
      callOf('list_accounts', { cursor: long }),
    ];
    for (const message of calls) {
      const { status, text } = await post(p, secret, message);
      expect(status).toBe(200);
      expect(text.length).toBeLessThan(10_000);
    }
    expect(faults).toEqual([]);
  });
});
