import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { buildSchema, type ExecutionResult, parse } from 'graphql';
import { _createLRUCache, createYoga, type Plugin } from 'graphql-yoga';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ErrorMask } from '../../../src/api/graphql/execution/error-masking.ts';
import { SharedResults } from '../../../src/api/graphql/execution/shared-results.ts';
import { SseStreams } from '../../../src/api/graphql/execution/sse-streams.ts';
import { DocumentCache, usePersistedOperations } from '../../../src/api/graphql/plugins/persisted-operations.ts';
import type { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { ENDLESS } from '../../support/harness/endless.ts';

type Results = AsyncIterableIterator<ExecutionResult>;

const schema = buildSchema('type Query { name: String } type Mutation { change: String }');
const cleanups: (() => void)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** Serves GraphQL as Yoga does it alone, with these results in the place of those of an operation. */
async function serve(results?: () => Results, ...more: Plugin[]) {
  const useResults: Plugin = { onParams: ({ setResult }) => results && setResult(results()) };
  const yoga = createYoga({ schema, plugins: [useResults, ...more], logging: false });
  const served = { responses: [] as ServerResponse[], pieces: 0 };
  const server = createServer((req, res) => {
    served.responses.push(res);
    void yoga(req, res);
  });
  server.on('connection', (socket) => {
    for (const method of ['_write', '_writev'] as const) {
      const write = socket[method]?.bind(socket) as (...given: unknown[]) => void;
      Object.assign(socket, {
        [method]: (...given: unknown[]) => {
          served.pieces += Array.isArray(given[0]) ? given[0].length : 1;
          write(...given);
        },
      });
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const ask = (query: string, accept: string) =>
    fetch(`http://127.0.0.1:${port}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept },
      body: JSON.stringify({ query }),
    });
  return { port, ask, served };
}

describe('Yoga', () => {
  it('DG-08: answers an executed mutation with 406 and no body if JSON is not accepted', async () => {
    const answer = await (await serve()).ask('mutation { change }', 'text/plain');
    expect([answer.status, await answer.text()]).toEqual([406, '']);
  });

  it.each([
    ['*/*', 'application/json'],
    ['text/event-stream', 'text/event-stream'],
  ])('DG-06: answers an invalid document with 200 if %s is accepted', async (accept, type) => {
    const { status, headers } = await (await serve()).ask('{ nothing }', accept);
    expect([status, headers.get('content-type')?.split(';')[0]]).toEqual([200, type]);
  });

  it('DG-05: masks errors without knowing the request', async () => {
    const maskError = vi.fn(() => new Error('masked'));
    const rootValue = { name: () => Promise.reject(new Error('a secret')) };
    const yoga = createYoga({ schema, maskedErrors: { maskError }, logging: false, plugins: [root(rootValue)] });
    await yoga.fetch('http://host/graphql?query={name}', { headers: { 'x-correlation-id': 'find-me' } });
    const secret = expect.objectContaining({ message: 'a secret' });
    expect(maskError.mock.calls).toEqual([[secret, 'Unexpected error.', undefined]]);
  });

  it('D6-19: sends events without the ids that clients need to resume', async () => {
    const shared = await new SharedResults().shared({ seq: 7n }, 'all', async () => ({ data: { name: 'x' } }));
    const { ask } = await serve(async function* () {
      yield shared;
    });
    const text = await (await ask('{ name }', 'text/event-stream')).text();
    expect(text).toBe(':\n\nevent: next\ndata: {"data":{"name":"x"}}\n\nevent: complete\ndata:\n\n');
  });

  it('DG-08: would send a placeholder for an event stream as an empty body', async () => {
    const streams = new SseStreams(ENDLESS);
    const endWithStandIn: Plugin = {
      onRequest({ serverContext, endResponse }) {
        const { res } = serverContext as unknown as { res: ServerResponse };
        const results: Results = [{ data: { name: 'x' } }][Symbol.iterator]() as never;
        const exchange = { res, state: {} } as Exchange;
        endResponse(streams.respond({ Response } as never, { exchange, results, mask: {} as ErrorMask }));
      },
    };
    const { ask } = await serve(undefined, endWithStandIn);
    const answer = await ask('{ name }', 'text/event-stream');
    expect([answer.status, await answer.text()]).toEqual([200, '']);
  });

  it('DG-08: sends each event in four or more chunks', async () => {
    const events = 50;
    const { ask, served } = await serve(async function* () {
      for (let left = events; left > 0; left -= 1) {
        yield { data: { name: 'x' } };
        for (let turn = 0; turn < 5; turn += 1) await nextTurn();
      }
    });
    await (await ask('{ name }', 'text/event-stream')).text();
    expect(served.pieces).toBeGreaterThanOrEqual(4 * events);
  });

  it('D6-19: keeps a client that does not read open without limit', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { port, served } = await serve(async function* () {
      for (;;) yield { data: { name: 'x'.repeat(256 * 1024) } };
    });
    const client = connect(port, '127.0.0.1').pause();
    client.write('GET /graphql?query={name} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n');
    await expect.poll(() => served.responses[0]?.writableNeedDrain).toBe(true);
    vi.advanceTimersByTime(60_000);
    client.destroy();
    expect(served.responses[0]?.destroyed).toBe(false);
  });

  it('DG-06: caches documents of any length, while its replacement caches none over 16,384 characters', () => {
    const kept = [_createLRUCache(), new DocumentCache()].map((cache) => {
      const document = '#'.repeat(1024 ** 2);
      cache.set(document, {});
      return cache.get(document) !== undefined;
    });
    expect(kept).toEqual([true, false]);
  });

  it('DG-11: finds persisted documents only over HTTP, since plugins do not see socket parameters', async () => {
    const asked: unknown[] = [];
    const useParams: Plugin = { onParams: ({ params }) => void asked.push(params) };
    const yoga = createYoga({ schema, plugins: [useParams, usePersistedOperations({ complete() {} } as never)] });
    await yoga.fetch('http://host/graphql?query={name}');
    const { validate, execute, contextFactory } = yoga.getEnveloped({ params: { query: '{ name }' } });
    const document = parse('{ name }');
    expect(validate(schema, document)).toEqual([]);
    await execute({ schema, document, contextValue: await contextFactory() });
    expect(asked).toHaveLength(1);
  });

  it('DG-04: serves a GraphiQL page with scripts from another origin', async () => {
    const { port } = await serve();
    const answer = await fetch(`http://127.0.0.1:${port}/graphql`, { headers: { accept: 'text/html' } });
    expect(await answer.text()).toMatch(/src=["']?https:/);
  });
});

/** Has operations executed with a root value. */
function root(rootValue: object): Plugin {
  return { onExecute: ({ args }) => void Object.assign(args, { rootValue }) };
}
