import { createServer, IncomingMessage, request, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { GraphQLNonNull, GraphQLObjectType, GraphQLScalarType, GraphQLSchema, GraphQLString } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { afterEach, describe, expect, it } from 'vitest';
import { UPLOAD_LIMITS } from '../../../src/api/graphql/execution/upload-form.ts';
import { Upload } from '../../../src/api/graphql/kit/upload.ts';
import type { OperationAudits } from '../../../src/api/graphql/plugins/audit-masking.ts';
import {
  type GraphqlHttpRequest,
  readRequest,
  useHttpRequests,
} from '../../../src/api/graphql/plugins/http-requests.ts';
import { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { ExactNumber } from '../../../src/lib/json.ts';
import { filePart, formHeaders, formOf, mapPart, operationsPart } from '../../support/graphql/upload-requests.ts';

const UPLOAD = { limits: UPLOAD_LIMITS, watch: () => () => undefined };

const audits = { came: () => undefined } as unknown as OperationAudits;
const AnyValue = new GraphQLScalarType({ name: 'AnyValue' });

/** What the operations were given: a number as its digits, a file as its first bytes. */
let given: unknown[] = [];
afterEach(() => {
  given = [];
});

const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { name: { type: GraphQLString, resolve: () => 'x' } } }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      take: {
        type: GraphQLString,
        args: { value: { type: new GraphQLNonNull(AnyValue) } },
        resolve: async (_root, { value }) => void given.push(await seen(value)),
      },
    },
  }),
});

async function seen(value: unknown): Promise<unknown> {
  if (value instanceof ExactNumber) return value.literal;
  if (value instanceof Upload) {
    for await (const chunk of value.take()) return String(chunk).slice(0, 6);
  }
  // A file of Yoga, whose class nobody else has.
  const isFile = typeof value === 'object' && value !== null && 'text' in value;
  return isFile ? (await (value as Blob).text()).slice(0, 6) : String(value);
}

/** Yoga's own reading of requests, and the plugin in its place. */
const library = createYoga({ schema, logging: false });
const replaced = createYoga<GraphqlHttpRequest>({
  schema,
  plugins: [useHttpRequests(audits)],
  multipart: false,
  logging: false,
});

const ENDPOINT = 'http://host/graphql';
const HEADERS = { 'content-type': 'application/json', accept: 'application/graphql-response+json' };

describe('Yoga reads requests', () => {
  it('DG-07 D5-03: with the digits of a number lost, which the plugin keeps', async () => {
    const digits = '12345678901234567890.125';
    const query = 'mutation ($value: AnyValue!) { take(value: $value) }';
    const body = `{"query":"${query}","variables":{"value":${digits}}}`;
    await library.fetch(ENDPOINT, { method: 'POST', headers: HEADERS, body });
    await replaced.fetch(ENDPOINT, { method: 'POST', headers: HEADERS, body }, { body: Buffer.from(body) });
    expect(given).toEqual([String(Number(digits)), digits]);
  });

  it('D2-13: with a GET of malformed variables as a fault of its own, which is a 400 before Yoga', async () => {
    const query = '?query={name}&variables={';
    expect((await library.fetch(`${ENDPOINT}${query}`)).status).toBe(500);
    const req = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: `/graphql${query}` });
    const exchange = new Exchange(req, new ServerResponse(req));
    await expect(readRequest(exchange, 0, UPLOAD)).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('DG-09: with the whole of a form in memory, whose operation the plugin begins at the first byte of its file', async () => {
    const arrived = { library: 0, replaced: 0 };
    await using server = await listening(async (req, res, way) => {
      req.on('data', () => {
        arrived[way] += 1;
      });
      if (way === 'library') return library(req, res);
      const exchange = new Exchange(req, res);
      const read = await readRequest(exchange, 0, UPLOAD);
      await replaced.handleNodeRequestAndResponse(req, res, { exchange, ...read });
      res.end();
    });
    const query = 'mutation ($file: AnyValue!) { take(value: $file) }';
    const operations = { ...operationsPart, value: JSON.stringify({ query, variables: { file: null } }) };
    const beginning = formOf([operations, mapPart, filePart], '').subarray(0, -2);
    const open = (way: Way) => {
      const sent = request(`${server.url}/graphql?way=${way}`, { method: 'POST', headers: formHeaders('x') });
      sent.on('error', () => undefined).write(beginning);
      return sent;
    };
    const toLibrary = open('library');
    await expect.poll(() => arrived.library).toBeGreaterThan(0);
    const toPlugin = open('replaced');
    await expect.poll(() => given).toEqual(['wallet']);
    for (const sent of [toLibrary, toPlugin]) sent.end('\r\n--a-boundary--\r\n');
    await expect.poll(() => given).toEqual(['wallet', 'wallet']);
  });

  it('DG-06: with a batch over its limit as a 413 without the code LIMIT_EXCEEDED, which the plugin gives', async () => {
    const body = JSON.stringify(Array.from({ length: 11 }, () => ({ query: '{ name }' })));
    const limited = createYoga({ schema, batching: { limit: 10 }, logging: false });
    const init = { method: 'POST', headers: HEADERS, body };
    const answers = [
      await limited.fetch(ENDPOINT, init),
      await replaced.fetch(ENDPOINT, init, { body: Buffer.from(body) }),
    ];
    const codes = await Promise.all(answers.map(async (answer) => (await answer.json()).errors[0].extensions.code));
    expect([answers[0]?.status, codes]).toEqual([413, ['BAD_REQUEST', 'LIMIT_EXCEEDED']]);
  });
});

type Way = 'library' | 'replaced';

async function listening(handle: (...given: [...Parameters<Parameters<typeof createServer>[1] & {}>, Way]) => unknown) {
  const server = createServer(
    (req, res) => void handle(req, res, req.url?.endsWith('library') ? 'library' : 'replaced'),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
