import { randomUUID } from 'node:crypto';
import { connect as connectTcp, type Socket } from 'node:net';
import { createClient } from 'graphql-ws';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { HeldMemory, type MemoryAccounts } from '../../src/platform/held-memory.ts';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { type Agent, connect } from '../support/mcp/agents.ts';
import { rows } from '../support/oauth/clients.ts';

const MIB = 1024 * 1024;
/** The share of one account in these tests: a tenth of what their hundred accounts take is within it, and so are twelve tenths. */
const LIMIT = 12 * MIB;
const NAME_BYTES = 100_000;
/** Each takes half of a share: several times what all may hold. */
const AT_ONCE = inject('isThorough') ? 20 : 10;

const p = usePortcullis();
let token: string;
let otherToken: string;
let agent: Agent;

const limits = (changes: Partial<MemoryAccounts['limits']>) => Object.assign(p.service.context.memory.limits, changes);
const held = () => p.service.context.memory.held(p.demo.node_id);

beforeAll(async () => {
  token = await p.clientToken();
  otherToken = await p.clientToken(p.demo.other_node.client);
  agent = await connect(p, p.demo.client.client_secret);
  for (const nodeId of [p.demo.node_id, p.demo.other_node.node_id]) {
    await p.service.context.database.db.unscoped('test').raw(
      (sql) => sql`
        insert into accounts (id, node_id, name, type, status, created_at, updated_at)
        select gen_random_uuid(), ${nodeId}, repeat('x', ${NAME_BYTES}::integer), 'long', 1, '2020-01-01', now()
        from generate_series(1, 100)`,
    );
  }
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
});
afterEach(async () => {
  limits({ totalBytes: 2 * LIMIT, rowBytes: LIMIT, waitMs: 10_000 });
  await vi.waitFor(() => expect(held()).toBe(0));
});

const list = (size: number) => `{ accounts(first: ${size}) { edges { node { name } } } }`;
const graphql = (query: unknown, as = token): Promise<Answer> =>
  p.call('POST', '/graphql', { token: as, json: Array.isArray(query) ? query : { query } });
const rest = (limit: number, as = token): Promise<Answer> =>
  p.call('GET', `/v1/accounts?limit=${limit}`, { token: as, headers: { 'x-target-server': 'accounts' } });
const codeOf = ({ errors }: { errors?: { extensions: { code: string } }[] }) => errors?.[0]?.extensions.code;

/** Each way in which a caller reads many rows, and how it says that they are too many. */
const WAYS: Record<string, () => Promise<unknown>> = {
  PAGE_TOO_LARGE: async () => codeOf((await graphql(list(100))).json),
  'PAGE_TOO_LARGE of the second of a batch': async () => {
    const { json } = await graphql([{ query: list(1) }, { query: list(100) }]);
    return `${codeOf(json[1])} of the second of a batch`;
  },
  'PAGE_TOO_LARGE of aliases': async () => {
    const aliases = Array.from({ length: 10 }, (_, at) => `a${at}: accounts(first: 10) { edges { node { id } } }`);
    return `${codeOf((await graphql(`{ ${aliases.join(' ')} }`)).json)} of aliases`;
  },
  'PAGE_TOO_LARGE over a WebSocket': async () => {
    const client = createClient({
      ...{ url: `${p.url.replace('http', 'ws')}/graphql`, webSocketImpl: WebSocket },
      connectionParams: { authorization: `Bearer ${token}` },
    });
    const { value } = await client.iterate({ query: list(100) }).next();
    await client.dispose();
    return `${codeOf(value)} over a WebSocket`;
  },
  '400 invalid_request': async () => {
    const { status, json } = await rest(100);
    expect(json.errors[0].message).toContain('request fewer');
    return `${status} ${json.message}`;
  },
  page_too_large: async () => (await agent.call('list_accounts', { limit: 100 })).error?.code,
};

/** A REST request whose client reads nothing of the response. */
async function unread(as = token): Promise<Socket> {
  const { hostname, port } = new URL(p.url);
  const socket = connectTcp(Number(port), hostname).pause();
  const head = ['GET /v1/accounts?limit=100 HTTP/1.1', 'Host: x', `Authorization: Bearer ${as}`];
  socket.write([...head, 'X-Target-Server: accounts', '', ''].join('\r\n'));
  await vi.waitFor(() => expect(held()).toBeGreaterThan(100 * NAME_BYTES));
  return socket;
}

describe('rows of results that are not yet sent', () => {
  it.each(Object.entries(WAYS))(
    'D7-13: rows that alone exceed the limit are rejected with %s, and the next request succeeds',
    async (said, way) => {
      limits({ rowBytes: 5 * MIB });
      expect(await way()).toBe(said);
      expect((await rest(10)).status).toBe(200);
    },
  );

  it('D7-13: many concurrent requests all succeed in turn, and hold at most twice the limit in total', async () => {
    // On a busy machine those that wait for their turn wait longer.
    limits({ waitMs: 60_000 });
    let most = 0;
    const { add } = HeldMemory.prototype;
    const spy = vi.spyOn(HeldMemory.prototype, 'add').mockImplementation(function (this: HeldMemory, ...bytes) {
      const error = add.apply(this, bytes);
      most = Math.max(most, held());
      return error;
    });
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, at) => (at % 2 ? rest(60) : graphql(list(60)))),
    );
    spy.mockRestore();
    expect(answers.map(({ status, text }) => [status, text.length > 60 * NAME_BYTES])).toEqual(
      answers.map(() => [200, true]),
    );
    expect(most).toBeGreaterThan(LIMIT / 2);
    expect(most).toBeLessThanOrEqual(2 * LIMIT);
  });

  it('D7-13: rows are held until the client reads them; more of the tenant get 503, another tenant does not', async () => {
    limits({ waitMs: 100 });
    const slow = await unread();
    expect((await rest(50)).status).toBe(503);
    expect(codeOf((await graphql(list(50))).json)).toBe('SERVICE_UNAVAILABLE');
    expect((await rest(1)).status).toBe(200);
    expect((await rest(50, otherToken)).status).toBe(200);
    limits({ waitMs: 10_000 });
    const waiting = rest(50);
    slow.resume();
    await vi.waitFor(() => expect(slow.bytesRead).toBeGreaterThan(100 * NAME_BYTES));
    expect((await waiting).status).toBe(200);
    slow.destroy();
  });

  it('D7-13: rows are released when the client disconnects', async () => {
    const left = await unread();
    left.destroy();
    await vi.waitFor(() => expect(held()).toBe(0));
    const leaving = new AbortController();
    const begun = fetch(`${p.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: list(70) }),
      signal: leaving.signal,
    }).catch((error: Error) => error.name);
    await vi.waitFor(() => expect(held()).toBeGreaterThan(0), { interval: 1 });
    leaving.abort();
    expect(await begun).toBe('AbortError');
  });

  it('D7-13: a long response of one row is charged, on HTTP and on a WebSocket that the client does not read', async () => {
    await rows(p).run((k) =>
      k.insertInto('accounts').values({
        ...{ id: randomUUID(), node_id: p.demo.node_id, name: 'y'.repeat(260_000), type: 'one', status: 1 },
        ...{ created_at: '2020-01-01T00:00:00Z', updated_at: '2020-01-01T00:00:00Z' },
      }),
    );
    const names = Array.from({ length: 30 }, (_, at) => `n${at}: name`).join(' ');
    const query = `{ accounts(first: 1, filter: { type: "one" }) { edges { node { ${names} } } } }`;
    const socket = new WebSocket(`${p.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    await new Promise((resolve) => socket.once('open', resolve));
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
    await new Promise((resolve) => socket.once('message', resolve));
    socket.pause();
    for (const id of ['1', '2', '3']) socket.send(JSON.stringify({ type: 'subscribe', id, payload: { query } }));
    await vi.waitFor(() => expect(held()).toBeGreaterThan(7 * MIB));
    expect(held()).toBeLessThanOrEqual(2 * LIMIT);
    socket.terminate();
    expect((await graphql(query)).text.length).toBeGreaterThan(7_800_000);
  });
});
