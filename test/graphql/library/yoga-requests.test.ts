import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buildSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { expect, it } from 'vitest';
import { filePart, formHeaders, formOf, mapPart, operationsPart } from '../../support/graphql/upload-requests.ts';

const ENDPOINT = 'http://host/graphql';
const HEADERS = { 'content-type': 'application/json' };

const given: unknown[] = [];
const schema = buildSchema('scalar Any type Query { name: String } type Mutation { take(value: Any!): String }');
const take = schema.getMutationType()?.getFields().take;
if (take) take.resolve = (_root, { value }) => void given.push(value);
const yoga = createYoga({ schema, batching: { limit: 10 }, logging: false });

it('DG-07 D5-03: Yoga loses digits of numbers', async () => {
  const digits = '12345678901234567890.125';
  const body = `{"query":"mutation ($value: Any!) { take(value: $value) }","variables":{"value":${digits}}}`;
  await yoga.fetch(ENDPOINT, { method: 'POST', headers: HEADERS, body });
  expect(given.splice(0)).toEqual([Number(digits)]);
});

it('D2-13: Yoga answers a GET with malformed variables with 500', async () => {
  expect((await yoga.fetch(`${ENDPOINT}?query={name}&variables={`)).status).toBe(500);
});

it('DG-06: Yoga rejects a batch over its limit with a 413 that does not name the limit', async () => {
  const body = JSON.stringify(Array.from({ length: 11 }, () => ({ query: '{ name }' })));
  const answer = await yoga.fetch(ENDPOINT, { method: 'POST', headers: HEADERS, body });
  expect([answer.status, (await answer.json()).errors[0].extensions.code]).toEqual([413, 'BAD_REQUEST']);
});

it('DG-09: Yoga begins the operation of a form only after reading all of it', async () => {
  let arrived = 0;
  const server = createServer((req, res) => {
    req.on('data', () => {
      arrived += 1;
    });
    void yoga(req, res);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const query = 'mutation ($file: Any!) { take(value: $file) }';
  const operations = { ...operationsPart, value: JSON.stringify({ query, variables: { file: null } }) };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  const sent = request(url, { method: 'POST', headers: formHeaders('x') });
  sent.on('error', () => undefined).write(formOf([operations, mapPart, filePart], '').subarray(0, -2));
  await expect.poll(() => arrived).toBeGreaterThan(0);
  expect(given).toEqual([]);
  sent.end('\r\n--a-boundary--\r\n');
  await expect.poll(() => given).toEqual([expect.objectContaining({ name: 'users.csv' })]);
  server.closeAllConnections();
  server.close();
});
