import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { renameTable } from '../support/harness/database-roles.ts';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { autoTransfer, leaf, limit, literal, rulesOf } from '../support/wallet-rules/rules.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const FORTY = '1234567890123456789012345678901234567890';

const p = usePortcullis();
let token: string;
let rules: ReturnType<typeof rulesOf>;
let rule: string;

beforeAll(async () => {
  token = await p.clientToken();
  rules = rulesOf(p, token);
  rule = await rules.created();
});

async function stored(id: string) {
  const [row] = await rows(p).run((k) => k.selectFrom('wallet_rules').selectAll().where('id', '=', id));
  return row;
}

describe('POST /v1/wallets/{wallet_id}/rules', () => {
  it('4.2-01 D5-05: is 201 without a body, with the Location and the ETag of version 1', async () => {
    const answer = await rules.create(autoTransfer(), p.demo.wallet_id.toUpperCase());
    expect([answer.status, answer.text, answer.headers.get('content-length')]).toEqual([201, '', '0']);
    expect(answer.headers.get('etag')).toBe('"1"');
    const [, id = ''] =
      new RegExp(`^/v1/wallets/${p.demo.wallet_id}/rules/(.+)$`).exec(answer.headers.get('location') ?? '') ?? [];
    expect(id).toMatch(UUID);
    expect(await stored(id)).toMatchObject({
      wallet_id: p.demo.wallet_id,
      node_id: p.demo.node_id,
      status: 'active',
      version: 1,
      sign_and_approve_rule: null,
      permissionless_transfer_limit_rule: null,
      priority: null,
    });
  });

  it('D5-03 2.6-10: a number of forty digits is stored exactly', async () => {
    const value = `-${FORTY}.${FORTY.slice(0, 20)}`;
    const amount = `0.${FORTY}`;
    const body = autoTransfer({}, { rule_logic: leaf({ value: literal(value) }), amount: literal(amount) });
    const row = await stored(await rules.created(body));
    expect(row?.auto_transfer_rule).toMatchObject({ amount, rule_logic: { value } });
  });

  it('D5-02: operators are stored in the short form, whatever their spelling', async () => {
    const rule_logic = { and: [leaf({ op: 'less-than' }), { or: [leaf({ op: '>=' }), { not: leaf({ op: '==' }) }] }] };
    const row = await stored(await rules.created(autoTransfer({}, { rule_logic })));
    expect(row?.auto_transfer_rule?.rule_logic).toMatchObject({
      and: [{ op: 'lt' }, { or: [{ op: 'gte' }, { not: { op: 'eq' } }] }],
    });
  });

  it('D5-04: the object of the other type is validated and stored, and unknown members are dropped', async () => {
    const other = { max_amount: 5, time_period: 'week', time_period_value: 2, unknown: 1 };
    const body = autoTransfer({ permissionless_transfer_limit_rule: other, status: 'disabled', version: 7, id: 'x' });
    const row = await stored(await rules.created(body));
    expect(row).toMatchObject({ status: 'active', version: 1 });
    expect(row?.permissionless_transfer_limit_rule).toEqual({
      max_amount: '5',
      time_period: 'week',
      time_period_value: 2,
    });
    const { status, json } = await rules.create(autoTransfer({ permissionless_transfer_limit_rule: {} }));
    expect([status, json.errors[0].path]).toEqual([400, 'permissionless_transfer_limit_rule.max_amount']);
  });

  it('2.6-12 2.6-13 D5-04: an approval may have any of its members, also min_priority above max_priority', async () => {
    const mandatory_user_id = randomUUID().toUpperCase();
    for (const [given, kept] of [
      [{}, {}],
      [{ min_user_count: 1 }, { min_user_count: 1 }],
      [
        { mandatory_user_id, min_priority: 90, max_priority: 10, min_user_count: null },
        { mandatory_user_id: mandatory_user_id.toLowerCase(), min_priority: 90, max_priority: 10 },
      ],
    ]) {
      const row = await stored(await rules.created(limit({ sign_and_approve_rule: given })));
      expect(row?.sign_and_approve_rule).toEqual(kept);
    }
  });

  it('4.2-03: the token is checked before the body, and the body before the wallet', async () => {
    const bad = limit({ network_id: 'x' });
    expect((await rules.create(bad, randomUUID())).json).toEqual({
      code: -1,
      domain: 0,
      message: 'invalid_request',
      errors: [{ path: 'network_id', message: 'must be a UUID: 8-4-4-4-12 hexadecimal digits' }],
    });
    const path = `/v1/wallets/${p.demo.wallet_id}/rules`;
    expect((await p.call('POST', path, { json: bad })).status).toBe(401);
    const reader = signed(p, apiClaims(p, { scope: 'wallet-rules:read wallets:write' }));
    expect((await p.call('POST', path, { json: limit(), token: reader })).text).toBe(envelope('forbidden'));
  });
});

describe('PUT /v1/wallets/{wallet_id}/rules/{id}', () => {
  it('4.3-01 4.3-02 D5-05: replaces the whole rule: 200 without a body, with the ETag of the next version', async () => {
    const id = await rules.created(autoTransfer({ priority: 5, sign_and_approve_rule: { min_user_count: 2 } }));
    const answer = await rules.replace(id.toUpperCase(), limit({ name: '' }));
    expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([200, '', '"2"']);
    expect(await stored(id)).toMatchObject({
      name: '',
      type: 'permissionless_transfer_limit',
      priority: null,
      auto_transfer_rule: null,
      sign_and_approve_rule: null,
      version: 2,
    });
    expect((await rules.replace(id, { name: 'only' })).status).toBe(400);
    expect((await stored(id))?.version).toBe(2);
  });

  it('4.3-03 D4-01: an unknown rule, one of another wallet and one of another node are the same 404', async () => {
    const id = await rules.created();
    const neighbour = rulesOf(p, await p.clientToken(p.demo.other_node.client));
    const { headers } = await neighbour.create(limit(), p.demo.other_node.wallet_id);
    const foreign = headers.get('location')?.split('/').at(-1) ?? '';
    const tries: [string, string][] = [
      [randomUUID(), p.demo.wallet_id],
      [id, p.demo.target_wallet_id],
      [id, p.demo.other_node.wallet_id],
      [foreign, p.demo.wallet_id],
      [foreign, p.demo.other_node.wallet_id],
    ];
    for (const ifMatch of [undefined, '*', '"1"', '"9"', 'W/"1"', '']) {
      for (const [rule, walletId] of tries) {
        const more = { walletId, ...(ifMatch === undefined ? {} : { ifMatch }) };
        const { status, text } = await rules.replace(rule, limit(), more);
        expect(`${status} ${text}`).toBe(`404 ${envelope('not_found')}`);
      }
    }
    expect((await stored(foreign))?.version).toBe(1);
    expect((await stored(id))?.version).toBe(1);
  });

  it.each([
    ['*', 200],
    ['"1"', 200],
    ['"7", "1"', 200],
    ['"2"', 412],
    ['W/"1"', 412],
    ['"4294967297"', 412],
    ['', 412],
    ['1', 400],
    ['*, "1"', 400],
  ])('D5-05 D2-19: If-Match: %s on version 1 is %i', async (ifMatch, expected) => {
    const id = await rules.created();
    const { status, text, json } = await rules.replace(id, limit(), { ifMatch });
    expect(status).toBe(expected);
    if (expected === 412) expect(text).toBe(envelope('precondition_failed'));
    if (expected === 400) expect(json.errors[0].path).toBe('If-Match');
    expect((await stored(id))?.version).toBe(expected === 200 ? 2 : 1);
  });

  it('D2-02 D5-05: an invalid body is reported before an If-Match version that does not match', async () => {
    const id = await rules.created();
    expect((await rules.replace(id, limit({ type: 'x' }), { ifMatch: '"9"' })).status).toBe(400);
  });

  it('4.3-04: a database error is a masked 500', async () => {
    const id = await rules.created();
    await renameTable(p, 'wallet_rules', 'wallet_rules_away');
    try {
      for (const { status, text } of [await rules.replace(id, limit()), await rules.create(limit())]) {
        expect(`${status} ${text}`).toBe(`500 ${envelope('internal_error')}`);
      }
    } finally {
      await renameTable(p, 'wallet_rules_away', 'wallet_rules');
    }
    expect((await rules.replace(id, limit())).status).toBe(200);
  });
});

interface Bad {
  body?: string | Buffer;
  headers?: Record<string, string>;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const DEEP = 10_000;

function send(method: 'POST' | 'PUT', bad: Bad): Promise<Answer> {
  const { body = JSON.stringify(limit()), headers = JSON_TYPE } = bad;
  const path = `/v1/wallets/${p.demo.wallet_id}/rules${method === 'PUT' ? `/${rule}` : ''}`;
  return p.call(method, path, { token, body, headers: { 'x-target-server': 'wallet-rules', ...headers } });
}

/** The text of a good limit in which a member's value is replaced by a literal. */
function limitText(member: string, literal: string): string {
  const text = JSON.stringify(limit({ priority: 5, sign_and_approve_rule: { min_user_count: 1 } }));
  const replaced = text.replace(new RegExp(`("${member}":)("[^"]*"|[\\d.]+|\\{[^}]*\\})`), `$1${literal}`);
  if (replaced === text) throw new Error(`no member ${member}`);
  return replaced;
}

/** The text of a good automatic transfer whose `rule_logic` is a literal. */
function logicText(literal: string): string {
  return JSON.stringify(autoTransfer({}, { rule_logic: 'HERE' })).replace('"HERE"', literal);
}

function leafText(member: string, literal: string): string {
  const replaced = JSON.stringify(leaf()).replace(new RegExp(`("${member}":)("[^"]*"|\\d+)`), `$1${literal}`);
  return logicText(replaced);
}

const repeated = (text: string, end: string) => `${text.repeat(DEEP)}1${end.repeat(DEEP)}`;

/** What is sent, how, and whether it is taken. What each member may be is in input.test.ts and decimal.test.ts. */
const bodies: [string, Bad, 201 | 400][] = [
  ['an empty object', { body: '{}' }, 400],
  ['NaN', { body: limitText('priority', 'NaN') }, 400],
  ['Infinity', { body: limitText('max_amount', 'Infinity') }, 400],
  ['a number in hexadecimal', { body: limitText('max_amount', '0x10') }, 400],
  ['a number with a leading zero', { body: limitText('max_amount', '010') }, 400],
  ['a number with a plus', { body: limitText('max_amount', '+1') }, 400],
  ['a byte order mark', { body: `\ufeff${JSON.stringify(limit())}` }, 201],
  ['JSON of a kind', { headers: { 'content-type': 'application/merge-patch+json' } }, 201],
  [
    'forty-nine thousand unknown members',
    { body: limitText('name', `"x",${Array.from({ length: 49_000 }, (_, i) => `"u${i}":0`).join(',')}`) },
    201,
  ],
  [
    'fifty thousand unknown members',
    { body: limitText('name', `"x",${Array.from({ length: 50_000 }, (_, i) => `"u${i}":0`).join(',')}`) },
    400,
  ],
  ['objects 10,000 deep', { body: repeated('{"a":', '}') }, 400],
  ['an unknown member 10,000 deep', { body: limitText('name', `"x","unknown":${repeated('[', ']')}`) }, 201],
  ['a name 10,000 deep', { body: limitText('name', repeated('[', ']')) }, 400],
  ['negations 10,000 deep', { body: logicText(repeated('{"not":', '}')) }, 400],
  ['groups 10,000 deep', { body: logicText(repeated('{"and":[', ']}')) }, 400],
  [
    'negations 10,000 deep, and a long number',
    { body: logicText(repeated('{"not":', '}').replace('1}', `${'1'.repeat(40)}}`)) },
    400,
  ],
  ['a group of 100,000', { body: logicText(`{"or":[${'{},'.repeat(100_000)}{}]}`) }, 400],
  ['a type twice, the last one good', { body: limitText('type', '"x","type":"permissionless_transfer_limit"') }, 400],
  ['a type twice, the last one bad', { body: limitText('type', '"permissionless_transfer_limit","type":"x"') }, 400],
  ['__proto__ with every member', { body: `{"__proto__":${JSON.stringify(limit())}}` }, 400],
  [
    '__proto__ in addition to the members',
    { body: limitText('name', '"x","__proto__":{"name":1,"status":"disabled"}') },
    201,
  ],
  ['__proto__ with a long number', { body: limitText('name', `"x","__proto__":${'1'.repeat(40)}`) }, 201],
  ['a condition whose fields are of __proto__', { body: logicText(`{"__proto__":${JSON.stringify(leaf())}}`) }, 400],
  ['an operator named constructor', { body: leafText('op', '"constructor"') }, 400],
  ['an operator named __proto__', { body: leafText('op', '"__proto__"') }, 400],
  ['a name with a lone low surrogate', { body: limitText('name', '"\\udc00x"') }, 400],
  ['a name with surrogates the wrong way round', { body: limitText('name', '"\\udc00\\ud800"') }, 400],
  ['a name with a pair of surrogates', { body: limitText('name', '"\\ud83d\\ude00"') }, 201],
  ['a name of control characters and bidi', { body: limitText('name', '"\\u0001\\u202e\\ufeff\\uffff"') }, 201],
  ['a name in SQL', { body: limitText('name', `"'; drop table wallet_rules; --"`) }, 201],
  ['a period with U+0000', { body: limitText('time_period', '"day\\u0000"') }, 400],
  ['a network with U+0000', { body: limitText('network_id', `"${randomUUID()}\\u0000"`) }, 400],
  ['a network with a space', { body: limitText('network_id', `" ${randomUUID()}"`) }, 400],
  ['a network with a line after it', { body: limitText('network_id', `"${randomUUID()}\\n"`) }, 400],
  ['a network of zeros', { body: limitText('network_id', '"00000000-0000-0000-0000-000000000000"') }, 201],
  ['a max_amount of 1e78', { body: limitText('max_amount', '1e78') }, 201],
  ['a max_amount of 1e79', { body: limitText('max_amount', '1e79') }, 400],
  ['a max_amount of 100,000 digits', { body: limitText('max_amount', '9'.repeat(100_000)) }, 400],
  ['a max_amount of 1 with 100,000 decimal zeros', { body: limitText('max_amount', `1.${'0'.repeat(100_000)}`) }, 201],
  ['a max_amount that is an object', { body: limitText('max_amount', '{"literal":"5"}') }, 400],
  ['a max_amount slightly above a whole number', { body: limitText('max_amount', `1.${'0'.repeat(40)}1`) }, 400],
  ['a number of periods of 2^64', { body: limitText('time_period_value', '18446744073709551616') }, 400],
  ['a number of periods of 1.0', { body: limitText('time_period_value', '1.0') }, 201],
  ['a number of approvers of 1e999', { body: limitText('min_user_count', '1e999') }, 400],
  ['a number of approvers that is a list', { body: limitText('min_user_count', '[1]') }, 400],
  ['a priority of 1e2', { body: limitText('priority', '1e2') }, 201],
  ['a priority of 5.000000000000000000001', { body: limitText('priority', '5.000000000000000000001') }, 400],
  ['a value of forty digits', { body: leafText('value', `-${'7'.repeat(40)}`) }, 201],
  ['an operator in full width', { body: leafText('op', '"＜"') }, 400],
  ['an approval that is a text', { body: limitText('sign_and_approve_rule', '"{}"') }, 400],
];

it.each(bodies)('D2-13 4.2-03 4.3-02: a rule with %s has the documented status', async (_name, bad, expected) => {
  for (const method of ['POST', 'PUT'] as const) {
    const { status, text, json } = await send(method, bad);
    expect([status, expected === 201 ? text : json.message]).toEqual([
      expected === 201 && method === 'PUT' ? 200 : expected,
      expected === 201 ? '' : 'invalid_request',
    ]);
    if (expected === 201) continue;
    expect(json).toMatchObject({ code: -1, domain: 0 });
    expect(json.errors.length).toBeGreaterThan(0);
    expect(json.errors.length).toBeLessThan(70);
    for (const issue of json.errors) expect(Object.keys(issue)).toEqual(['path', 'message']);
  }
});
