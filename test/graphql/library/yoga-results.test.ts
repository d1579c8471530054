import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ExecutionResult, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { _createLRUCache, createYoga, type Plugin } from 'graphql-yoga';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ErrorMask } from '../../../src/api/graphql/execution/error-masking.ts';
import { graphiqlFiles } from '../../../src/api/graphql/execution/graphiql.ts';
import type { OperationRequest } from '../../../src/api/graphql/execution/operation-request.ts';
import { SharedResults } from '../../../src/api/graphql/execution/shared-results.ts';
import { SseStreams, sendResponse } from '../../../src/api/graphql/execution/sse-streams.ts';
import type { OperationAudits } from '../../../src/api/graphql/plugins/audit-masking.ts';
import { useHttpResults } from '../../../src/api/graphql/plugins/http-results.ts';
import { DocumentCache, usePersistedOperations } from '../../../src/api/graphql/plugins/persisted-operations.ts';
import { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { silentLog } from '../../../src/lib/log.ts';
import { ENDLESS } from '../../support/harness/endless.ts';

const WAYS = ['library', 'replaced'] as const;
type Way = (typeof WAYS)[number];
type Results = AsyncIterableIterator<ExecutionResult>;

const audits = { answered: () => undefined } as unknown as OperationAudits;
const state = { changes: 0, isFaulty: false };

const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      name: {
        type: GraphQLString,
        resolve: () => {
          if (state.isFaulty) throw new Error('a secret');
          return 'x';
        },
      },
    },
  }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: { change: { type: GraphQLString, resolve: () => String(++state.changes) } },
  }),
});

const cleanups: (() => void)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const cleanup of cleanups.splice(0)) cleanup();
  Object.assign(state, { changes: 0, isFaulty: false });
});

/** Serves GraphQL as Yoga does it alone, or with what stands in the place of its rendering. */
async function serve(way: Way, results?: () => Results, isSenderOurs = true) {
  const streams = new SseStreams(ENDLESS);
  const useResults: Plugin = { onParams: ({ setResult }) => results && setResult(results()) };
  const library = createYoga({ schema, plugins: [useResults], logging: false });
  const replaced = createYoga<OperationRequest>({
    schema,
    plugins: [useResults as object, useHttpResults(new ErrorMask(silentLog), streams, audits)],
    maskedErrors: false,
    logging: false,
  });
  const served = { responses: [] as ServerResponse[], pieces: 0 };
  const server = createServer(async (req, res) => {
    served.responses.push(res);
    if (way === 'library') return library(req, res);
    const exchange = new Exchange(req, res);
    exchange.correlationId = 'find-me';
    if (!isSenderOurs) return replaced(req, res, { exchange });
    const answer = await replaced.handleNodeRequestAndResponse(req, res, { exchange });
    if (!streams.run(exchange)) await sendResponse(answer, res);
  });
  server.on('connection', (socket) => {
    for (const method of ['_write', '_writev'] as const) {
      const write = socket[method]?.bind(socket) as (...given: unknown[]) => void;
      Object.assign(socket, {
        [method]: (...given: unknown[]) => {
          const [chunks] = given;
          served.pieces += Array.isArray(chunks) ? chunks.length : 1;
          write(...given);
        },
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
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

/** Runs the same with both, and returns what came of each. */
async function both<Found>(run: (way: Way) => Promise<Found>): Promise<Record<Way, Found>> {
  const [library, replaced] = [await run('library'), await run('replaced')];
  return { library, replaced };
}

describe('Yoga renders results', () => {
  it('DG-08: a mutation that has run is answered whatever is accepted, where Yoga answers 406 and nothing', async () => {
    const answers = await both(async (way) => {
      const { ask } = await serve(way);
      const answer = await ask('mutation { change }', 'text/plain');
      return [answer.status, await answer.text()];
    });
    expect(answers).toEqual({ library: [406, ''], replaced: [200, '{"data":{"change":"2"}}'] });
  });

  it('DG-06: an invalid document is a 400 to whoever names no type, and JSON to whoever takes events alone', async () => {
    const answers = await both(async (way) => {
      const { ask } = await serve(way);
      const given = [await ask('{ nothing }', '*/*'), await ask('{ nothing }', 'text/event-stream')];
      return given.map(({ status, headers }) => [status, headers.get('content-type')?.split(';')[0]]);
    });
    expect(answers).toEqual({
      library: [
        [200, 'application/json'],
        [200, 'text/event-stream'],
      ],
      replaced: [
        [400, 'application/json'],
        [400, 'application/json'],
      ],
    });
  });
});

describe('Yoga masks errors', () => {
  it('DG-05: without knowing the request, whose correlation id the mask of HTTP results tells', async () => {
    state.isFaulty = true;
    const given: unknown[][] = [];
    const maskError = (...args: unknown[]) => {
      given.push(args);
      return new Error('masked');
    };
    const library = createYoga({ schema, maskedErrors: { maskError }, logging: false });
    await library.fetch('http://host/graphql?query={name}', { headers: { 'x-correlation-id': 'find-me' } });
    expect(given).toEqual([[expect.objectContaining({ message: 'a secret' }), 'Unexpected error.', undefined]]);
    const { ask } = await serve('replaced');
    const { errors } = await (await ask('{ name }', '*/*')).json();
    expect(errors).toMatchObject([{ message: 'internal error', extensions: { correlationId: 'find-me' } }]);
  });
});

describe('Yoga sends event streams', () => {
  it('D6-19: without the id of an event, by which a client resumes', async () => {
    const shared = await new SharedResults().shared({ seq: 7n }, 'all', async () => ({ data: { name: 'x' } }));
    async function* one(): Results {
      yield shared;
    }
    const texts = await both(async (way) => {
      const { ask } = await serve(way, one);
      return (await ask('{ name }', 'text/event-stream')).text();
    });
    const end = 'event: complete\ndata:\n\n';
    expect(texts).toEqual({
      library: `:\n\nevent: next\ndata: {"data":{"name":"x"}}\n\n${end}`,
      replaced: `:\n\nevent: next\nid: 7\ndata: {"data":{"name":"x"}}\n\n${end}`,
    });
  });

  it('DG-08: and would send the stand-in of ours as nothing', async () => {
    async function* one(): Results {
      yield { data: { name: 'x' } };
    }
    const { ask } = await serve('replaced', one, false);
    const answer = await ask('{ name }', 'text/event-stream');
    expect([answer.status, await answer.text()]).toEqual([200, '']);
  });

  it('6-01: with each event in four pieces or more, in the place of one', async () => {
    const events = 50;
    async function* spaced(): Results {
      for (let left = events; left > 0; left -= 1) {
        yield { data: { name: 'x' } };
        for (let turn = 0; turn < 5; turn += 1) await nextTurn();
      }
    }
    const pieces = await both(async (way) => {
      const { ask, served } = await serve(way, spaced);
      await (await ask('{ name }', 'text/event-stream')).text();
      return served.pieces;
    });
    expect(pieces.library).toBeGreaterThanOrEqual(4 * events);
    // The head, the first ping and the end besides.
    expect(pieces.replaced).toBeLessThanOrEqual(events + 3);
  });

  it('D6-19: to a client that reads nothing for as long as it stays, which is dropped at the second ping', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const isGone = await both(async (way) => {
      async function* endless(): Results {
        for (;;) yield { data: { name: 'x'.repeat(256 * 1024) } };
      }
      const { port, served } = await serve(way, endless);
      const client = stalled(port);
      await expect.poll(() => served.responses[0]?.writableNeedDrain).toBe(true);
      vi.advanceTimersByTime(60_000);
      client.destroy();
      return served.responses[0]?.destroyed;
    });
    expect(isGone).toEqual({ library: false, replaced: true });
  });
});

describe('Yoga keeps documents', () => {
  it('DG-06: of any length, where the cache in its place keeps none of more than 16,384 characters', () => {
    const kept = [_createLRUCache(), new DocumentCache()].map((cache) => {
      const document = '#'.repeat(1024 ** 2);
      cache.set(document, {});
      return cache.get(document) !== undefined;
    });
    expect(kept).toEqual([true, false]);
  });

  it('DG-11: and finds persisted ones for HTTP alone, since a plugin sees no parameters of a socket', async () => {
    const asked: unknown[] = [];
    const useParams: Plugin = { onParams: ({ params }) => void asked.push(params) };
    const yoga = createYoga({ schema, plugins: [useParams, usePersistedOperations({ complete() {} } as never)] });
    await yoga.fetch('http://host/graphql?query={name}');
    const { parse, validate, execute, contextFactory } = yoga.getEnveloped({ params: { query: '{ name }' } });
    const document = parse('{ name }');
    expect(validate(schema, document)).toEqual([]);
    await execute({ schema, document, contextValue: await contextFactory() });
    expect(asked).toHaveLength(1);
  });
});

describe('Yoga shows GraphiQL', () => {
  it('DG-04: from elsewhere, where the page in its place has everything in it', async () => {
    const { port } = await serve('library');
    const answer = await fetch(`http://127.0.0.1:${port}/graphql`, { headers: { accept: 'text/html' } });
    const pages = [await answer.text(), String((await graphiqlFiles({}).find(''))?.bytes)];
    expect(pages.map((html) => /src=["']?https:/.test(html))).toEqual([true, false]);
  });
});

/** Asks for events and reads none of them. */
function stalled(port: number): Socket {
  const client = connect(port, '127.0.0.1').on('error', () => undefined);
  const body = '{"query":"{ name }"}';
  client
    .pause()
    .write(
      'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n' +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
  return client;
}
