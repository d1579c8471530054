import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis();
});
afterAll(() => p[Symbol.asyncDispose]());

function directives(policy: string): Map<string, string[]> {
  return new Map(
    policy.split(';').map((directive) => {
      const [name = '', ...sources] = directive.trim().split(' ');
      return [name, sources];
    }),
  );
}

it.each(['/swagger/', '/graphql'])(
  'D8-02 DG-04: the page %s is shown in no frame and held by no opener, and sends nothing to other origins',
  async (path) => {
    const headers = { accept: 'text/html', origin: 'https://elsewhere.example' };
    const page = await p.call('GET', path, { headers });
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    expect(page.headers.get('cross-origin-opener-policy')).toBe('same-origin');
    const policy = directives(page.headers.get('content-security-policy') ?? '');
    for (const name of ['frame-ancestors', 'base-uri', 'form-action']) expect(policy.get(name)).toEqual(["'none'"]);
    const scripts = policy.get('script-src') ?? [];
    const asked = policy.get('connect-src') ?? policy.get('default-src') ?? [];
    expect([...scripts, ...asked].filter((source) => !/^'|^(?:blob|data):$/.test(source) && source !== p.url)).toEqual(
      [],
    );
  },
);

describe('what is no page', () => {
  it.each([
    ['GET', '/nowhere', '<script>'],
    ['GET', '/v1/accounts', '<script>'],
    ['GET', '/swagger/<script>alert(1)<', 'x'],
    ['POST', '/v2/oauth/token', '<script>'],
    ['POST', '/graphql', '<script>'],
  ])('2.3-01: %s %s is JSON and shows nothing of what was asked', async (method, path, text) => {
    const body = method === 'POST' ? { body: text } : {};
    const answer = await p.call(method, path, { headers: { accept: 'text/html', 'x-target-server': '' }, ...body });
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.json).toMatchObject({ code: -1, domain: 0 });
    expect(answer.text).not.toContain('script');
  });
});
