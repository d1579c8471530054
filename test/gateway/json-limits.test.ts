import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ExactNumber, JsonLimitError, MAX_EXACT_NUMBERS, MAX_NESTING, parseJson } from '../../src/lib/json.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { basic } from '../support/webhook/stand.ts';

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const numbers = (count: number, literal: string) => `[${Array(count).fill(literal).join(',')}]`;
const NESTED = `must not have values more than ${MAX_NESTING} levels within each other`;
const NUMBERS = `must not have more than ${MAX_EXACT_NUMBERS} numbers that need more than a double`;

describe('a JSON text', () => {
  it('7.2-01: nested beyond the limit is refused before it is parsed', () => {
    const parse = vi.spyOn(JSON, 'parse');
    for (const text of [nested(MAX_NESTING + 1), '['.repeat(500_000), '{"a":'.repeat(MAX_NESTING + 1)]) {
      expect(() => parseJson(text)).toThrow(new JsonLimitError(NESTED));
    }
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
    expect(parseJson(nested(MAX_NESTING))).toBeInstanceOf(Array);
  });

  it.each(['1e400', '12345678901234567', '-0.1234567890123456789', '1E-4000'])(
    '7.2-01: %s is read digit by digit so often and no more',
    (literal) => {
      expect(parseJson(numbers(MAX_EXACT_NUMBERS, literal))).toEqual(
        Array(MAX_EXACT_NUMBERS).fill(new ExactNumber(literal)),
      );
      expect(() => parseJson(numbers(MAX_EXACT_NUMBERS + 1, literal))).toThrow(new JsonLimitError(NUMBERS));
    },
  );

  it('7.2-01: numbers that a double keeps, and digits in texts, do not count', () => {
    const plain = `[1e400,${Array(100_000).fill('1.5,"12345678901234567","\\\\\\""').join(',')}]`;
    expect(parseJson(plain)).toHaveLength(300_001);
    expect(parseJson(`["${'\\n'.repeat(500_000)}",1e400]`)).toEqual(['\n'.repeat(500_000), new ExactNumber('1e400')]);
  });
});

describe('a JSON body beyond the limits', () => {
  let p: Portcullis;
  let token: string;

  beforeAll(async () => {
    p = await startPortcullis();
    token = await p.clientToken();
  });
  afterAll(() => p[Symbol.asyncDispose]());

  const endpoints: [path: () => string, headers: () => Record<string, string>, kilobytes: number][] = [
    [() => `/v1/wallets/${p.demo.wallet_id}/rules`, () => ({}), 1_000],
    [() => `/v1/wallets/${p.demo.wallet_id}/rules`, () => ({ 'idempotency-key': `k${Math.random()}` }), 1_000],
    [() => '/v2/users/migrate/with-wallet/bulk', () => ({}), 2_000],
    [() => '/v2/webhooks/custodial', () => ({ authorization: basic(p.webhook.username, p.webhook.password) }), 250],
  ];

  it.each(endpoints)('7.2-01: %s is a 400 that says what to change', async (path, headers, kilobytes) => {
    const bytes = kilobytes * 1_000;
    const texts: [string, string][] = [
      [nested(bytes / 2), NESTED],
      [numbers(Math.floor(bytes / 6), '1e400'), NUMBERS],
    ];
    for (const [text, message] of texts) {
      const answer = await p.call('POST', path(), {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers() },
        body: text,
      });
      expect(answer.status, answer.text).toBe(400);
      expect(answer.json.message).toBe('invalid_request');
      expect(answer.text).toContain(message);
    }
  });

  it('7.2-01: a GraphQL and an MCP request are refused with the same words', async () => {
    const body = `{"query":"{ __typename }","variables":{"a":${numbers(MAX_EXACT_NUMBERS + 1, '1e400')}}}`;
    const headers = { 'content-type': 'application/json' };
    const graphql = await p.call('POST', '/graphql', { token, headers, body });
    expect([graphql.status, graphql.text]).toEqual([400, expect.stringContaining(`the body ${NUMBERS}`)]);
    const message = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":${numbers(MAX_EXACT_NUMBERS + 1, '1e400')}}}`;
    const mcp = await p.call('POST', '/v2/mcp', {
      token: p.demo.client.client_secret,
      headers: { ...headers, accept: 'application/json, text/event-stream' },
      body: message,
    });
    expect([mcp.status, mcp.text]).toEqual([400, expect.stringContaining(NUMBERS)]);
  });
});
