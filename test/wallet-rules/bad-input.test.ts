import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { autoTransfer, leaf, limit, rulesOf } from '../support/wallet-rules/rules.ts';

interface Bad {
  body?: string | Buffer;
  headers?: Record<string, string>;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const DEEP = 10_000;

const p = usePortcullis();
let token: string;
let rule: string;

beforeAll(async () => {
  token = await p.clientToken();
  rule = await rulesOf(p, token).created();
});

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
