import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { normalTarget } from '../../src/gateway/exchange/request-head.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { startForwarder, startUpstream } from '../support/gateway/forwarder.ts';
import { request, sendRaw } from '../support/gateway/raw.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

let p: Portcullis;
let token: string;

beforeAll(async () => {
  p = await startPortcullis();
  token = await p.clientToken();
});
afterAll(() => p[Symbol.asyncDispose]());

function get(target: string) {
  return sendRaw(p.url, request('GET', target, { Authorization: `Bearer ${token}` }));
}

/** Spellings that a lenient service might take for /v1/accounts, or for a way out of its folder. */
const hostile = [
  'http://a:65536/v1/accounts',
  'http://1.2.3.999/v1/accounts',
  '/v1%2Faccounts',
  '/v1%2faccounts',
  '%2Fv1/accounts',
  '/v1%5Caccounts',
  '/v1%5caccounts',
  '/v1\\accounts',
  '\\v1\\accounts',
  '/\\v1/accounts',
  '//v1/accounts',
  '/v1//accounts',
  '///v1/accounts',
  '/v1/accounts//',
  '/v1/accounts/',
  '/v1/accounts/.',
  '/v1/accounts/..',
  '/v1/./accounts',
  '/./v1/accounts',
  '/../v1/accounts',
  '/v1/x/../accounts',
  '/v1/health/../accounts',
  '/health/../v1/accounts',
  '/swagger/../v1/accounts',
  '/swagger/..',
  '/swagger/%2e%2e',
  '/swagger/.%2e',
  '/swagger/%2E.',
  '/v1/%2e/accounts',
  '/v1/x/%2e%2e/accounts',
  '/v1/x/%2E%2E/accounts',
  '/v1/x/..%2faccounts',
  '/v2/mcp/../../v1/accounts',
  '/v2/mcp/%2e%2e/oauth/token',
  '/v2/mcp/a//b',
  '/v2/mcp/a%2Fb',
  '/v2/mcp/a%00',
  '/v1/accounts%00',
  '/v1/accounts%00.json',
  '/%00/v1/accounts',
  '/v1/accounts%',
  '/v1/accounts%2',
  '/v1/accounts%zz',
  '/v1/accounts%u0041',
  '/v1/%c1%a1ccounts',
  '/v1%c0%afaccounts',
  '/v1/accounts%ff',
  '/v1/accounts%e0%80%af',
  '/v1/accounts%20',
  '/v1/accounts%3Fpage=1',
  '/v1/accounts%23',
  '/v1/accounts#',
  '/v1/accounts#?page=1',
  '/v1/accounts%252e',
  '/v1/%2561ccounts',
  '/v1/accounts%0a',
  '/v1/accounts%0d%0aX-A:b',
  '/v1/accounts\u00e9',
  '/v1/accounts%C3%A9',
  '/v1/accounts;a=b',
  '/v1/accounts..',
  '/v1/accounts...',
  '.',
  '..',
  'v1/accounts',
  '*',
  'http:///v1/accounts',
  'http:/v1/accounts',
  'ftp://portcullis/v1/accounts',
  'javascript:/v1/accounts',
  'http://portcullis//v1/accounts',
  'http://portcullis/v1/x/../accounts',
  'http://portcullis\\v1/accounts/..',
  'portcullis:80',
];

/** Other spellings of the same path by RFC 3986, section 6.2.2, which are the same. */
const equivalent = [
  '/v1/%61ccounts',
  '/v1/%61%63counts',
  '/%76%31/accounts',
  '/v1/accounts?',
  '/v1/accounts?page=1&x=%2F..%2F%00//\\',
  'http://portcullis/v1/accounts',
  'HTTP://other.example:99/v1/accounts?limit=1',
  'https://user@portcullis/v1/%61ccounts',
];

describe('a hostile spelling of a path', () => {
  it.each(hostile)('D2-04: %j is a 404 and reaches no service', async (target) => {
    const answer = await get(target);
    expect(answer.status).toBe(404);
    expect(answer.body).toBe(envelope('not_found'));
  });

  it('D2-04: it is a 404 for a preflight and for a public endpoint too', async () => {
    for (const target of ['/health/..', '//health', '/v1/../health', '/v1%2Fhealth', '/health%00', '/\\health']) {
      for (const method of ['GET', 'OPTIONS', 'HEAD']) {
        const answer = await sendRaw(p.url, request(method, target));
        expect([method, target, answer.status]).toEqual([method, target, 404]);
      }
    }
  });

  it('D2-26: a dot segment with a parameter is one for every service, here and elsewhere', async () => {
    const dots = ['.', '..', '%2e', '%2E%2e', '.%2e', '%2e.'];
    const parameters = [';', ';x', ';a=b', '%3B', '%3bx', ';%2e%2e', ';%3b;', '%3B..', ';a=%2561'];
    const segments = dots.flatMap((dot) => parameters.map((parameter) => `${dot}${parameter}`));
    const targets = segments.flatMap((segment) => [segment, `${segment}/x`, `x/${segment}/y`, `x/${segment}?q`]);
    await using upstream = await startUpstream((_req, res) => res.end('reached'));
    await using f = await startForwarder({ services: { a: upstream.url } });
    for (const target of targets) {
      expect([target, (await get(`/v2/mcp/${target}`)).status]).toEqual([target, 404]);
      expect([target, (await sendRaw(f.url, request('GET', `/${target}`))).status]).toEqual([target, 404]);
    }
    expect(upstream.seen).toEqual([]);
    // A parameter of another segment is a part of its name, and so are dots that are decoded twice.
    for (const other of ['/a;..', '/..a;x', '/...;', '/a;x/b', '/..%253Bx', '/a..;'])
      expect([other, (await sendRaw(f.url, request('GET', other))).status]).toEqual([other, 200]);
  });

  it.each(equivalent)('D2-04: %s is the same path', async (target) => {
    expect((await get(target)).status).toBe(200);
  });

  it('D2-04: a normal path is its own normal form, and never holds what a service could read otherwise', () => {
    const part = fc.constantFrom(
      'a',
      '..',
      '.',
      '/',
      ';',
      '%3b',
      '\\',
      '%2f',
      '%5C',
      '%00',
      '%2e',
      '%61',
      '%25',
      '%',
      '?',
      '%c3%a9',
      'v1',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const normal = normalTarget(`/${parts.join('')}`);
        if (!normal) return;
        expect(normalTarget(normal.path)).toEqual({ path: normal.path, query: '' });
        expect(decodeURIComponent(normal.path)).not.toMatch(/\/\/|\\|\0|\/\.\.?([;/]|$)/);
        expect(normal.path).not.toMatch(/%(2f|5c|00|61)/i);
      }),
    );
  });
});
