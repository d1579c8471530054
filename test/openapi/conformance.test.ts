import { describe, expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { cases, TOKEN } from '../support/openapi/cases.ts';
import { operationOf, operations, unlike } from '../support/openapi/described.ts';
import { openApiFixture } from '../support/openapi/fixture.ts';

const CLIENT = { grant_type: 'client_credentials' };

const fixture = beforeTests(openApiFixture);

describe('responses compared with the OpenAPI document', () => {
  it.each(cases)('D8-02: $method $path: $name', async ({ method, path, status, options, values }) => {
    const answer = await fixture.call(method, path, values?.(fixture), options?.(fixture));
    expect([answer.status, ...unlike(operationOf(method, path), answer)]).toEqual([status]);
  });

  it('D8-02: every operation with a success response is tried with one', () => {
    const tried = new Set(cases.filter(({ status }) => status < 300).map(({ method, path }) => `${method} ${path}`));
    for (const { method, path, operation } of operations) {
      const isServed = Object.keys(operation.responses ?? {}).some((status) => status.startsWith('2'));
      expect([method, path, tried.has(`${method} ${path}`)]).toEqual([method, path, isServed]);
    }
  });

  it.each([
    ['?include_deleted=true&limit=100&unknown=1', 200],
    ['?page=9007199254740991&limit=1', 200],
    ['?page=9007199254740992', 400],
    ['?limit=101', 400],
    ['?page=1&page=1', 400],
  ])('8-01 8-02 D8-02: GET /v1/accounts%s', async (query, status) => {
    const answer = await fixture.p.call('GET', `/v1/accounts${query}`, { token: fixture.token });
    expect([answer.status, ...unlike(operationOf('GET', '/v1/accounts'), answer)]).toEqual([status]);
  });

  it('8-05 D8-02: limits are reported in the documented headers, in 429 responses too', async () => {
    const asked = { json: { ...fixture.limited, ...CLIENT } };
    const token = (await fixture.call('POST', TOKEN, {}, asked)).json.access_token;
    const page = await fixture.call('GET', '/v1/accounts', {}, { token });
    const full = await fixture.call('GET', '/v1/accounts', {}, { token });
    const refused = await fixture.call('POST', TOKEN, {}, asked);
    expect([page.status, full.status, refused.status]).toEqual([200, 429, 429]);
    for (const answer of [page, full]) {
      expect(unlike(operationOf('GET', '/v1/accounts'), answer)).toEqual([]);
      expect(answer.headers.get('x-ratelimit-limit-hour')).toBe('3');
    }
    expect(unlike(operationOf('POST', TOKEN), refused)).toEqual([]);
  });

  it.each(operations)('D8-02: $method $path: a request without a token or a body', async (operation) => {
    const answer = await fixture.call(operation.method, operation.path);
    expect(unlike(operation, answer)).toEqual([]);
    expect(answer.status).not.toBe(503);
  });

  it.each(operations)('D2-05 D8-02: $method $path: a correlation id that is too long', async (operation) => {
    const headers = { 'x-correlation-id': 'x'.repeat(1_025) };
    const answer = await fixture.call(operation.method, operation.path, {}, { headers });
    expect([answer.status, ...unlike(operation, answer)]).toEqual([400]);
  });
});
