import { setImmediate as nextTick } from 'node:timers/promises';
import { GraphQLError } from 'graphql';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ErrorMask, MAX_RESULT_BYTES, textOfResult } from '../../src/api/graphql/execution/error-masking.ts';
import { silentLog } from '../../src/lib/log.ts';
import { socketClient } from '../support/graphql/sockets.ts';
import { usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';

const ROWS = 90;
/** In bytes; no page of a hundred rows of it fits, a page of fifty does. */
const NAME = 'é"'.repeat(35_000);
const ALL = '{ accounts(first: 100) { edges { node { id name } } } }';
const SOME = '{ accounts(last: 40) { edges { node { id name } } } }';
const TOO_LARGE = {
  data: null,
  errors: [
    {
      message: `the response would be longer than ${MAX_RESULT_BYTES} bytes: request fewer rows or fewer fields`,
      extensions: { code: 'PAGE_TOO_LARGE' },
    },
  ],
};

const p = usePortcullis();
let token: string;
beforeAll(async () => {
  token = await p.clientToken();
  const at = '2026-11-21T10:00:00Z';
  const account = {
    node_id: p.demo.node_id,
    name: NAME,
    type: 'organisation',
    status: 1,
    created_at: at,
    updated_at: at,
  };
  await rows(p).run((k) =>
    k.insertInto('accounts').values(Array.from({ length: ROWS }, () => ({ ...account, id: crypto.randomUUID() }))),
  );
});

const post = (json: unknown, headers: Record<string, string> = {}) =>
  p.call('POST', '/graphql', { token, headers, json });

/** Every way in which a result leaves. */
const WAYS: Record<string, (query: string) => Promise<unknown>> = {
  'over HTTP': async (query) => (await post({ query })).json,
  'in a batch': async (query) => (await post([{ query: '{ __typename }' }, { query }])).json[1],
  'as server-sent events': async (query) => {
    const { text } = await post({ query }, { accept: 'text/event-stream' });
    return JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? '');
  },
  'over a WebSocket': async (query) => {
    const client = socketClient(p, token);
    const results: unknown[] = [];
    for await (const result of client.iterate({ query })) results.push(result);
    await client.dispose();
    expect(results).toHaveLength(1);
    return results[0];
  },
};

describe.each(Object.entries(WAYS))('a result %s', (_way, ask) => {
  it('longer than 8 MiB is the error PAGE_TOO_LARGE, which says to request fewer rows, also once compiled', async () => {
    for (let time = 0; time < 3; time += 1) expect(await ask(ALL)).toEqual(TOO_LARGE);
  });

  it('shorter than 8 MiB is complete', async () => {
    const { data } = (await ask(SOME)) as { data: { accounts: { edges: { node: { name: string } }[] } } };
    expect(data.accounts.edges.map(({ node }) => node.name === NAME)).toEqual(Array.from({ length: 40 }, () => true));
  });
});

it('a batch has 8 MiB for all results, and results that do not fit are errors', async () => {
  const { json } = await post([{ query: SOME }, { query: SOME }, { query: '{ __typename }' }]);
  expect([json[0].data.accounts.edges.length, json[1], json[2]]).toEqual([
    40,
    TOO_LARGE,
    { data: { __typename: 'Query' } },
  ]);
});

it('a long REST page is complete, and is requested again with its path only', async () => {
  const list = (limit: number) =>
    p.call('GET', `/v1/accounts?limit=${limit}`, { token, headers: { 'x-target-server': 'accounts' } });
  const long = await list(100);
  expect([long.status, long.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
  expect(long.json.data.filter(({ name }: { name: string }) => name === NAME).length).toBe(100 - 25);
  expect(Object.keys(long.json)).toEqual(['data', 'page', 'per_page', 'total']);
  expect(long.headers.get('etag')).toBeNull();
});

it('a long MCP page is complete', async () => {
  const params = { name: 'list_accounts', arguments: { limit: 100 } };
  const headers = { accept: 'application/json, text/event-stream' };
  const json = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  const answer = await p.call('POST', '/v2/mcp', { token: p.demo.client.client_secret, headers, json });
  expect(answer.status).toBe(200);
  expect(Number(answer.headers.get('content-length'))).toBe(Buffer.byteLength(answer.text));
  expect(answer.text.length).toBeGreaterThan(64 * 1024);
});

describe('masking of errors', () => {
  const mask = new ErrorMask(silentLog);
  const recipient = { correlationId: 'c' };
  const errors = (count: number, length: number) =>
    Array.from(
      { length: count },
      () => new GraphQLError('é'.repeat(length), { extensions: { code: 'BAD_USER_INPUT' } }),
    );

  it('stops at 8 MiB, and lets other work run in between', async () => {
    const error = vi.spyOn(mask, 'error');
    let ticks = 0;
    let isOver = false;
    const counting = (async () => {
      while (!isOver) {
        await nextTick();
        ticks += 1;
      }
    })();
    const result = await mask.result({ data: {}, errors: errors(200, 100_000) }, recipient);
    isOver = true;
    await counting;
    expect(JSON.parse(textOfResult(result))).toEqual(TOO_LARGE);
    expect(error.mock.calls.length).toBeLessThan(90);
    expect(ticks).toBeGreaterThan(40);
    error.mockRestore();
  });

  it('counts response bytes: a result of exactly the limit is complete, and one byte more is an error', async () => {
    const result = { data: { text: 'é'.repeat(100_000) }, errors: errors(10, 50_000) };
    const text = textOfResult(result);
    const bytes = Buffer.byteLength(text);
    expect(JSON.parse(textOfResult(await mask.result(result, recipient, bytes)))).toEqual(JSON.parse(text));
    expect(JSON.parse(textOfResult(await mask.result(result, recipient, bytes - 1)))).toEqual(TOO_LARGE);
  });
});
