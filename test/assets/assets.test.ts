import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
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
});
