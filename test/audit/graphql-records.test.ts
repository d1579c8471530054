import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { recordOf, recordsOf } from '../support/audit/records.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

const SECRET = 'ZQ-hunter2';
const LOGIN = `mutation { login(pasword: "${SECRET}") { id } }`;
const lines: object[] = [];
const keep = (fields: object, message: string) => void lines.push({ ...fields, message });
const log: Log = { ...silentLog, info: keep, warn: keep, error: keep };
let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis({ overrides: { log } });
});
afterAll(() => p[Symbol.asyncDispose]());

describe('a request to /graphql', () => {
  it('D2-20: that is a batch has a record and a line for each operation, before the answer is there', async () => {
    const { spool } = p.service.context;
    const append = vi.spyOn(spool, 'append');
    const batch = [{ query: '{ me { subject } }' }, { query: '{ accounts(first: 1) { edges { node { id } } } }' }];
    const headers = { 'x-correlation-id': 'a-batch' };
    const answer = await p.call('POST', '/graphql', { token: await p.clientToken(), json: batch, headers });
    expect(append.mock.calls.flat().filter((line) => line.includes('"a-batch"'))).toHaveLength(batch.length);
    append.mockRestore();
    const records = await recordsOf(p, 'a-batch');
    const shown = records.map(({ request_body, response_body }) => [request_body, response_body]);
    const expected = batch.map((one, index) => [JSON.stringify(one), JSON.stringify(answer.json[index])]);
    expect(shown.toSorted()).toEqual(expected.toSorted());
    expect(lines.filter((line) => 'correlation_id' in line && line.correlation_id === 'a-batch')).toHaveLength(2);
  });

  it('D2-20: that is a batch refused as a whole has one record', async () => {
    const headers = { 'x-correlation-id': 'a-large-batch' };
    const json = Array(11).fill({ query: LOGIN });
    await p.call('POST', '/graphql', { token: await p.clientToken(), json, headers });
    const record = await recordOf(p, 'a-large-batch');
    expect([record.status_code, JSON.stringify(record).includes(SECRET)]).toEqual([400, false]);
  });

  it.each([
    ['without a token', 401, '/graphql', () => undefined],
    ['with a token', 405, '/graphql', () => p.clientToken()],
    ['to a path that is none', 404, '/graphql/', () => p.clientToken()],
  ])('D2-21: %s shows no secret of its query string or its Referer', async (_who, status, path, token) => {
    const id = `a-get-${status}`;
    const query = new URLSearchParams({ query: LOGIN, variables: JSON.stringify({ p: SECRET }) });
    const referer = `${p.url}/graphql?${query}`;
    const bearer = await token();
    const headers = { 'x-correlation-id': id, referer, 'content-type': 'application/json' };
    await p.call('GET', `${path}?${query}`, { ...(bearer === undefined ? {} : { token: bearer }), headers });
    const record = await recordOf(p, id);
    expect([record.status_code, record.method]).toEqual([status, 'GET']);
    expect(JSON.stringify(record) + JSON.stringify(lines)).not.toContain(SECRET);
  });

  it('D2-21: whose bodies cannot be masked is recorded without them, and answered', async () => {
    const spy = vi.spyOn(JSON, 'stringify').mockImplementation((value) => {
      if (typeof value === 'object' && value !== null && 'query' in value && !('id' in value))
        throw new TypeError('a fault');
      return stringify(value);
    });
    const headers = { 'x-correlation-id': 'a-fault', 'content-type': 'application/json' };
    const body = '{"query":"{ me { subject } }"}';
    const answer = await p.call('POST', '/graphql', { token: await p.clientToken(), body, headers });
    spy.mockRestore();
    expect([answer.status, answer.json.data.me.subject]).toEqual([200, expect.any(String)]);
    const record = await recordOf(p, 'a-fault');
    expect([record.request_body, record.response_body, Number(record.request_bytes)]).toEqual([
      null,
      null,
      body.length,
    ]);
    expect(lines).toContainEqual(expect.objectContaining({ message: 'could not mask bodies' }));
  });
});

const stringify = JSON.stringify;
