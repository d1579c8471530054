import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';

const MEMBERS = ['id', 'name', 'node_id', 'type', 'status', 'created_at', 'updated_at', 'deleted_at'];
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

interface Account {
  id: string;
  name: string;
  created_at: string;
  deleted_at: string | null;
}

const p = usePortcullis();
let token: string;
beforeAll(async () => {
  token = await p.clientToken();
});

function list(query = '', bearer = token): Promise<Answer> {
  return p.call('GET', `/v1/accounts${query}`, { token: bearer, headers: { 'x-target-server': 'accounts' } });
}

describe('the list of accounts', () => {
  it('4.8-01 2.4-01: has exactly the members data, page, per_page and total', async () => {
    const { status, headers, json } = await list();
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(Object.keys(json)).toEqual(['data', 'page', 'per_page', 'total']);
    expect([json.data.length, json.page, json.per_page, json.total]).toEqual([10, 1, 10, 25]);
  });

  it('2.5-01: each account has exactly the documented members, of the documented types', async () => {
    const { data } = (await list('?limit=100&include_deleted=true')).json;
    for (const account of data) {
      expect(Object.keys(account)).toEqual(MEMBERS);
      expect(account.id).toMatch(UUID);
      expect(account.node_id).toBe(p.demo.node_id);
      expect(['organisation', 'customer-segregated']).toContain(account.type);
      expect(account.name).toBeTypeOf('string');
      expect(Number.isInteger(account.status)).toBe(true);
      expect(account.created_at).toMatch(ISO);
      expect(account.updated_at).toMatch(ISO);
      expect(account.deleted_at === null || ISO.test(account.deleted_at)).toBe(true);
    }
  });

  it('2.4-01: all pages together contain every account once, and total is their number', async () => {
    for (const limit of [1, 7, 10, 25, 100]) {
      const seen: string[] = [];
      const pages = Math.ceil(25 / limit);
      for (let page = 1; page <= pages; page += 1) {
        const { json } = await list(`?page=${page}&limit=${limit}`);
        expect([json.page, json.per_page, json.total]).toEqual([page, limit, 25]);
        seen.push(...json.data.map((account: Account) => account.id));
      }
      expect([limit, seen.length, new Set(seen).size]).toEqual([limit, 25, 25]);
    }
  });

  it.each([
    '?page=4',
    '?page=3&limit=13',
    '?page=26&limit=1',
    '?page=9007199254740991',
    '?page=9007199254740991&limit=100',
  ])('D5-08: %s is past the last page: an empty page with the total', async (query) => {
    const { status, json } = await list(query);
    expect([status, json.data, json.total]).toEqual([200, [], 25]);
  });

  it('D5-01: leaves out deleted accounts unless include_deleted=true', async () => {
    const all = (await list('?limit=100&include_deleted=true')).json;
    expect([all.total, all.data.length]).toEqual([27, 27]);
    expect(all.data.filter((account: Account) => account.deleted_at !== null)).toHaveLength(2);
    for (const value of ['false', '', 'TRUE', '1', 'yes']) {
      expect((await list(`?include_deleted=${value}`)).json.total).toBe(25);
    }
  });
});

/** The query, and the page and limit that it means; undefined: a 400 that names the parameters. */
const queries: [string, [number, number] | undefined, string[]][] = [
  ['', [1, 10], []],
  ['?page=1', [1, 10], []],
  ['?page=2', [2, 10], []],
  ['?page=002', [2, 10], []],
  ['?p%61ge=2', [2, 10], []],
  ['?page=%32', [2, 10], []],
  ['?limit=1', [1, 1], []],
  ['?limit=100', [1, 100], []],
  ['?limit=0100', [1, 100], []],
  ['?page=2&limit=5', [2, 5], []],
  ['?page=1&unknown=1&unknown=2&sort=name', [1, 10], []],
  ['?page[]=0&Page=0&PAGE=0', [1, 10], []],
  ["?filter=' or 1=1 --&%", [1, 10], []],
  ['?page=0', undefined, ['page']],
  ['?page=-1', undefined, ['page']],
  ['?page=+1', undefined, ['page']],
  ['?page=%2B1', undefined, ['page']],
  ['?page=1.0', undefined, ['page']],
  ['?page=1e1', undefined, ['page']],
  ['?page=0x1', undefined, ['page']],
  ['?page=', undefined, ['page']],
  ['?page', undefined, ['page']],
  ['?page=%20', undefined, ['page']],
  ['?page=1%20', undefined, ['page']],
  ['?page=1%00', undefined, ['page']],
  ['?page=one', undefined, ['page']],
  ['?page=%D9%A1', undefined, ['page']],
  ['?page=NaN', undefined, ['page']],
  ['?page=Infinity', undefined, ['page']],
  ['?page=9007199254740992', undefined, ['page']],
  [`?page=${'9'.repeat(400)}`, undefined, ['page']],
  ['?page=1&page=1', undefined, ['page']],
  ['?page=1&page=', undefined, ['page']],
  ['?limit=0', undefined, ['limit']],
  ['?limit=101', undefined, ['limit']],
  ['?limit=-1', undefined, ['limit']],
  ['?limit=', undefined, ['limit']],
  ['?limit=10.5', undefined, ['limit']],
  ['?limit=all', undefined, ['limit']],
  ['?limit=10&limit=10', undefined, ['limit']],
  ['?page=0&limit=101', undefined, ['page', 'limit']],
];

describe('page and limit', () => {
  it.each(queries)('8-01 8-02 4.8-02 D5-08: "%s" is read as %j, or rejected with 400', async (query, meant, faulty) => {
    const { status, json } = await list(query);
    if (meant) {
      expect([status, json.page, json.per_page]).toEqual([200, ...meant]);
      return;
    }
    expect(status).toBe(400);
    expect(Object.keys(json)).toEqual(['code', 'domain', 'message', 'errors']);
    expect([json.code, json.domain, json.message]).toEqual([-1, 0, 'invalid_request']);
    expect(json.errors.map((issue: { path: string }) => issue.path)).toEqual(faulty);
    for (const issue of json.errors) expect(Object.keys(issue)).toEqual(['path', 'message']);
  });
});

describe('the accounts of a node', () => {
  it('D5-01: are ordered by created_at to the microsecond, then by id', async () => {
    const at = '2025-06-01 00:00:00';
    const times = [
      `${at}.000002+00`,
      `${at}.000001+00`,
      `${at}.000001+00`,
      `${at}.000001+00`,
      '2025-05-31 23:59:59.999999+00',
    ];
    const added = times.map((created_at) => ({
      id: randomUUID(),
      node_id: p.demo.other_node.node_id,
      name: 'Tied',
      type: 'organisation',
      status: 1,
      created_at,
      updated_at: created_at,
    }));
    await rows(p).run((k) => k.insertInto('accounts').values(added));
    const ties = added.slice(1, 4).map(({ id }) => id);
    const expected = [added[4]?.id, ...ties.sort(), added[0]?.id];
    const neighbour = await p.clientToken(p.demo.other_node.client);
    const { data } = (await list('?limit=100', neighbour)).json;
    expect(data.slice(0, 5).map((account: Account) => account.id)).toEqual(expected);
    expect(data[1].created_at).toBe('2025-06-01T00:00:00.000Z');
    const created = data.map((account: Account) => account.created_at);
    expect(created).toEqual([...created].sort());
  });
});
