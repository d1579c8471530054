import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const FIELDS = 'id name symbol type nodeId networkId contractAddress status createdAt updatedAt';

const p = usePortcullis();
let token: string;
let foreignId: string;

beforeAll(async () => {
  token = await p.clientToken();
  foreignId = randomUUID();
  const [own] = await rows(p).run((k) => k.selectFrom('assets').selectAll().where('id', '=', p.demo.asset_id));
  if (!own) throw new Error('the demo has an asset');
  await rows(p).run((k) =>
    k.insertInto('assets').values({ ...own, id: foreignId, node_id: p.demo.other_node.node_id }),
  );
});

function get(id: string, bearer: string | undefined = token): Promise<Answer> {
  return p.call('GET', `/v2/admin/tokens/${id}`, bearer === undefined ? {} : { token: bearer });
}

async function query(text: string, variables: object = {}, bearer = token) {
  return (await p.call('POST', '/graphql', { token: bearer, json: { query: text, variables } })).json;
}

describe('GET /v2/admin/tokens/{id}', () => {
  it('4.9-01 D8-04: returns the asset with exactly the documented members', async () => {
    const { status, headers, json } = await get(p.demo.asset_id);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(Object.keys(json)).toEqual([
      ...['id', 'name', 'symbol', 'type', 'node_id', 'network_id', 'contract_address', 'status'],
      ...['created_at', 'updated_at'],
    ]);
    expect(json).toMatchObject({
      ...{ id: p.demo.asset_id, name: 'Acme Bond 2030', symbol: 'ACME30', type: 'bond', status: 'draft' },
      ...{ node_id: p.demo.node_id, network_id: p.demo.network_id, contract_address: null },
    });
    for (const at of [json.created_at, json.updated_at]) expect(at).toMatch(ISO);
    expect((await get(p.demo.asset_id.toUpperCase())).text).toBe((await get(p.demo.asset_id)).text);
  });

  it.each(['x', '1', 'null', '00000000-0000-0000-0000-00000000000', '%20', "'--"])(
    'D8-04: %s is not a UUID: 400 that names the id',
    async (id) => {
      const { status, json } = await get(id);
      expect([status, json.message]).toEqual([400, 'invalid_request']);
      expect(json.errors).toEqual([{ path: 'id', message: expect.stringContaining('UUID') }]);
    },
  );

  it('D8-04 D4-01: an asset of another node gets the same bytes as an unknown id', async () => {
    const [missing, foreign] = await Promise.all([get(randomUUID()), get(foreignId)]);
    expect([missing.status, foreign.status]).toEqual([404, 404]);
    expect(foreign.text).toBe(missing.text);
    expect(missing.text).toBe(envelope('not_found'));
    expect((await get(foreignId, await p.clientToken(p.demo.other_node.client))).status).toBe(200);
  });

  it('4.9-01: requires a token with tokens:read', async () => {
    expect((await p.call('GET', `/v2/admin/tokens/${p.demo.asset_id}`)).text).toBe(envelope('unauthorized'));
    const poor = signed(p, apiClaims(p, { scope: 'accounts:read' }));
    expect((await get(p.demo.asset_id, poor)).text).toBe(envelope('forbidden'));
  });
});

describe('assets in GraphQL', () => {
  it('DG-01 D8-04: asset returns the same as REST', async () => {
    const { json } = await get(p.demo.asset_id);
    const { data } = await query(`query ($id: ID!) { asset(id: $id) { ${FIELDS} } }`, { id: p.demo.asset_id });
    expect(data.asset).toEqual({
      ...{ id: json.id, name: json.name, symbol: json.symbol, type: json.type, nodeId: json.node_id },
      ...{ networkId: json.network_id, contractAddress: json.contract_address, status: json.status },
      ...{ createdAt: json.created_at, updatedAt: json.updated_at },
    });
  });

  it('DG-01 D4-01: a transaction has the asset that it was registered with, or null if another node owns it', async () => {
    const register = (id: string, assetId: string | null) =>
      p.service.context.transactions.register({
        ...{ id, nodeId: p.demo.node_id, collection: 'user_transactions', type: 1, assetId },
      });
    const ids = [randomUUID(), randomUUID(), randomUUID()];
    for (const [at, assetId] of [p.demo.asset_id, foreignId, null].entries()) await register(ids[at] ?? '', assetId);
    const asked = ids.map((id, at) => `t${at}: transaction(id: "${id}") { asset { id name } }`);
    const { data } = await query(`{ ${asked.join(' ')} }`);
    const own = { asset: { id: p.demo.asset_id, name: 'Acme Bond 2030' } };
    expect(data).toEqual({ t0: own, t1: { asset: null }, t2: { asset: null } });
    const poor = signed(p, apiClaims(p, { scope: 'transactions:read' }));
    const { errors } = await query(`{ transaction(id: "${ids[0]}") { asset { id } } }`, {}, poor);
    expect(errors[0].extensions).toEqual({ code: 'FORBIDDEN', permission: 'tokens:read' });
  });

  it('D4-01 DG-07: asset is null for an unknown id, an id of another node and an id that is not a UUID', async () => {
    for (const id of [randomUUID(), foreignId, 'x']) {
      expect(await query(`query ($id: ID!) { asset(id: $id) { ${FIELDS} } }`, { id })).toEqual({
        data: { asset: null },
      });
    }
  });

  it("DG-02 DG-13: assets is a connection of the assets of the token's node, oldest first, with an exact total", async () => {
    const [own] = await rows(p).run((k) => k.selectFrom('assets').selectAll().where('id', '=', p.demo.asset_id));
    if (!own) throw new Error('the demo has an asset');
    const added = Array.from({ length: 5 }, (_, at) => ({
      ...own,
      id: randomUUID(),
      created_at: `2026-03-0${5 - at}T00:00:00.00000${at}Z`,
    }));
    await rows(p).run((k) => k.insertInto('assets').values(added));
    const expected = [p.demo.asset_id, ...added.map(({ id }) => id).reverse()];
    const page =
      'query ($first: Int, $after: String, $last: Int, $before: String) { assets(first: $first, after: $after, last: $last, before: $before) { totalCount pageInfo { hasNextPage hasPreviousPage endCursor startCursor } edges { node { id } } } }';
    const [forward, backward]: string[][] = [[], []];
    for (let after: string | null = null, more = true; more; ) {
      const { assets }: Answer['json'] = (await query(page, { first: 4, after })).data;
      forward?.push(...assets.edges.map((edge: { node: { id: string } }) => edge.node.id));
      expect(assets.totalCount).toBe(6);
      after = assets.pageInfo.endCursor;
      more = assets.pageInfo.hasNextPage;
    }
    for (let before: string | null = null, more = true; more; ) {
      const { assets }: Answer['json'] = (await query(page, { last: 4, before })).data;
      backward?.unshift(...assets.edges.map((edge: { node: { id: string } }) => edge.node.id));
      before = assets.pageInfo.startCursor;
      more = assets.pageInfo.hasPreviousPage;
    }
    expect([forward, backward]).toEqual([expected, expected]);
  });

  it('DG-04: asset and assets require tokens:read', async () => {
    const poor = signed(p, apiClaims(p, { scope: 'accounts:read' }));
    for (const text of ['{ assets { totalCount } }', `{ asset(id: "${p.demo.asset_id}") { id } }`]) {
      const { errors } = await query(text, {}, poor);
      expect(errors[0].extensions).toMatchObject({ code: 'FORBIDDEN', permission: 'tokens:read' });
    }
  });
});
