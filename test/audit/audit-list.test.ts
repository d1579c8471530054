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
  it('DG-13 D2-07: lists the records of the node alone, newest first, with what 1-04 names', async () => {
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
    ['method', { method: 'POST' }, ['POST']],
    ['status', { statusCode: 404 }, []],
    ['since', { since: '2999-01-01T00:00:00Z' }, []],
    ['since and until', { since: began, until: '9999-12-31T23:59:59.999999Z' }, ['POST', 'GET']],
    [
      'a time that PostgreSQL has not',
      { since: '0000-01-01T00:00:00Z', until: '9999-12-31T23:59:59-23:59' },
      ['POST', 'GET'],
    ],
    ['nulls', { path: null, since: null }, ['POST', 'GET']],
  ])('DG-01: filters by %s', async (_name, filter, methods) => {
    const { data } = await listed({ correlationId: mark, ...filter });
    expect(data.auditRecords.edges.map(({ node }: { node: { method: string } }) => node.method)).toEqual(methods);
    expect(data.auditRecords.totalCount).toBe(methods.length);
  });
});

describeReal('postgres', 'portcullis audit list', () => {
  it('D1-12 D2-07: lists the records of every node and of none, newest first, as lines and as JSON', async () => {
    const list = (...args: string[]) => portcullis(['audit', 'list', ...args], p.env);
    const json = await list('--correlation-id', mark, '--json');
    const { records } = JSON.parse(json.out);
    expect(records.map((record: { path: string; node_id: string }) => [record.path, record.node_id])).toEqual([
      ['/v1/accounts', p.demo.other_node.node_id],
      ['/nowhere', null],
      ['/graphql', p.demo.node_id],
      ['/v1/accounts', p.demo.node_id],
    ]);
    expect(records[3]).toMatchObject({ status_code: 200, headers: { authorization: '***' } });
    const plain = await list('--correlation-id', mark, '--status', '404');
    expect(plain.out).toMatch(/^\S+Z {2}404 +\S+ ms {2}GET {5}\/nowhere {2}- {2}\S+\n$/);
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
