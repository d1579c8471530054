import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { usePortcullis } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';

const FIELDS =
  'id at correlationId method path query statusCode elapsed headers remoteAddress realIp requestBody responseBody isApi';
const QUERY = `query ($filter: AuditFilter) { auditRecords(filter: $filter) { totalCount edges { node { ${FIELDS} } } } }`;

const p = usePortcullis();
let token: string;
const mark = randomUUID();
const began = new Date().toISOString();

beforeAll(async () => {
  token = await p.clientToken();
  const headers = { 'x-correlation-id': mark };
  await p.call('GET', '/v1/accounts?limit=1', { token, headers });
  await p.call('POST', '/graphql', { token, headers, json: { query: '{ me { nodeId } }' } });
  await p.call('GET', '/nowhere', { headers });
  const elsewhere = await p.clientToken(p.demo.other_node.client);
  await p.call('GET', '/v1/accounts?limit=2', { token: elsewhere, headers });
  await p.service.context.auditWriter.flush();
});

async function listed(filter: object) {
  const { json } = await p.call('POST', '/graphql', { token, json: { query: QUERY, variables: { filter } } });
  return json;
}

describe('auditRecords', () => {
  it('DG-13 D2-07: lists only the records of the node of the token, newest first, with the members of 1-04', async () => {
    const { data } = await listed({ correlationId: mark });
    expect(data.auditRecords.totalCount).toBe(2);
    const [second, first] = data.auditRecords.edges.map(({ node }: { node: object }) => node);
    expect(first).toEqual({
      ...{ id: expect.stringMatching(/^[0-9a-f-]{36}$/), at: expect.stringMatching(/^\d{4}-.+\.\d{3}Z$/) },
      ...{ correlationId: mark, method: 'GET', path: '/v1/accounts', query: 'limit=1', statusCode: 200 },
      ...{ elapsed: expect.any(Number), remoteAddress: '127.0.0.1', realIp: '127.0.0.1', isApi: true },
      headers: expect.objectContaining({ authorization: '***' }),
      ...{ requestBody: null, responseBody: expect.stringContaining('"total"') },
    });
    expect(second).toMatchObject({ method: 'POST', path: '/graphql' });
  });

  it.each([
    ['path', { path: '/v1/accounts' }, ['GET']],
    ['the beginning of a path', { pathPrefix: '/v1/acc' }, ['GET']],
    ['the beginning of a path, in which _ is not a wildcard', { pathPrefix: '/v_/' }, []],
    ['status class', { statusClass: 2 }, ['POST', 'GET']],
    ['another status class', { statusClass: 4 }, []],
    ['operation', { operation: '/v1/accounts' }, ['GET']],
    ['a root field of an operation', { operation: 'me' }, ['POST']],
    ['part of an operation name', { operation: 'm' }, []],
    ['another subject', { subject: 'nobody' }, []],
    ['method', { method: 'POST' }, ['POST']],
    ['status', { statusCode: 404 }, []],
    ['since', { since: '2999-01-01T00:00:00Z' }, []],
    ['since and until', { since: began, until: '9999-12-31T23:59:59.999999Z' }, ['POST', 'GET']],
    [
      'a time that PostgreSQL cannot represent',
      { since: '0000-01-01T00:00:00Z', until: '9999-12-31T23:59:59-23:59' },
      ['POST', 'GET'],
    ],
    ['nulls', { path: null, since: null }, ['POST', 'GET']],
  ])('DG-01: filters by %s', async (_name, filter, methods) => {
    const { data } = await listed({ correlationId: mark, ...filter });
    expect(data.auditRecords.edges.map(({ node }: { node: { method: string } }) => node.method)).toEqual(methods);
    expect(data.auditRecords.totalCount).toBe(methods.length);
  });

  it('DG-01: excludes the reads of a subject, and keeps its writes and the records of other subjects', async () => {
    const headers = { 'x-correlation-id': randomUUID() };
    const ask = (query: string) => p.call('POST', '/graphql', { token, headers, json: { query } });
    const { json } = await ask('{ me { subject } clients(first: 1) { totalCount } }');
    const { subject } = json.data.me;
    await ask('mutation { a: setWalletRuleStatus(id: "x", status: ACTIVE) { __typename } }');
    await p.call('GET', '/v1/accounts', { token, headers });
    await p.call('POST', '/nowhere', { token, headers });
    await p.call('POST', '/v1/wallets/x/networks', { token, headers, json: {} });
    await p.service.context.auditWriter.flush();
    const operations = async (filter: object) => {
      const filters = { correlationId: headers['x-correlation-id'], subject, ...filter };
      const query = `query ($filter: AuditFilter) { auditRecords(filter: $filter) { edges { node { operation } } } }`;
      const { json } = await p.call('POST', '/graphql', { token, json: { query, variables: { filter: filters } } });
      return json.data.auditRecords.edges.map(({ node }: { node: { operation: string } }) => node.operation).reverse();
    };
    const all = await operations({ hideReadsOf: 'another' });
    expect(all.slice(0, 3)).toEqual(['me, clients', 'setWalletRuleStatus', '/v1/accounts']);
    expect(await operations({})).toEqual(all);
    expect(await operations({ operation: 'clients' })).toEqual(['me, clients']);
    expect(await operations({ hideReadsOf: subject })).toEqual(['setWalletRuleStatus', ...all.slice(3)]);
  });

  it.each([0, 6])('DG-03: rejects the status class %d', async (statusClass) => {
    const { errors } = await listed({ statusClass });
    expect(errors[0].extensions).toMatchObject({
      code: 'BAD_USER_INPUT',
      issues: [{ path: ['filter', 'statusClass'] }],
    });
  });
});

describeReal('postgres', 'portcullis audit list', () => {
  it('D1-12 D2-07: lists the records of all nodes and of no node, in the order of arrival, as lines and as JSON', async () => {
    const list = (...args: string[]) => portcullis(['audit', 'list', ...args], p.env);
    const json = await list('--correlation-id', mark, '--json');
    const { records } = JSON.parse(json.out);
    expect(records.map((record: { path: string; node_id: string }) => [record.path, record.node_id])).toEqual([
      ['/v1/accounts', p.demo.node_id],
      ['/graphql', p.demo.node_id],
      ['/nowhere', null],
      ['/v1/accounts', p.demo.other_node.node_id],
    ]);
    expect(records[0]).toMatchObject({ status_code: 200, headers: { authorization: '***' } });
    const plain = await list('--correlation-id', mark, '--status', '404');
    expect(plain.out).toMatch(/^\S+Z {2}404 +\S+ ms {2}GET {5}\/nowhere {2}- {2}\S+ {2}\d+\n$/);
    expect((await list('--correlation-id', mark, '--limit', '1', '--node', p.demo.node_id, '--json')).out).toContain(
      '/graphql',
    );
    expect((await list('--correlation-id', mark, '--method', 'post')).out).toMatch(/^\S+Z {2}200 .* POST .*\n$/);
    expect(await list('--path', '/never')).toEqual({ code: 0, out: 'No records.\n', err: '' });
    expect(await list('--status', '99999999999999')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--status'),
    });
    expect(await list('--since', 'yesterday')).toMatchObject({ code: 2, err: expect.stringContaining('--since') });
  });
});
