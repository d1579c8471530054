import { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Answer, startPortcullis } from '../support/harness.ts';

/** Static pages and files of every kind, each with the clause that it serves, if any. */
const PAGES: [clause: string, path: string][] = [
  ['DG-04', '/graphql'],
  ['4.9-04', '/swagger/'],
  ['4.9-04', '/swagger/openapi.json'],
  ['4.9-04', '/swagger/swagger-ui-bundle.js'],
  ['4.9-04', '/swagger/favicon-32x32.png'],
  ['The console', '/console/'],
  ['The console', '/console/main.ts'],
  ['The console', '/console/packages/preact/dist/preact.mjs'],
  ['D3-12', '/.well-known/oauth-authorization-server'],
  ['D8-08', '/.well-known/oauth-protected-resource/v2/mcp'],
];

const p = beforeTests(() => startPortcullis({ env: { CONSOLE: 'on' } }));
afterEach(() => void vi.restoreAllMocks());

function get(path: string, tags?: string): Promise<Answer> {
  const headers = { accept: 'text/html,*/*', ...(tags === undefined ? {} : { 'if-none-match': tags }) };
  return p.call('GET', path, { headers });
}

describe.each(PAGES)('%s: %s', (_clauses, path) => {
  it('is rendered once, and all responses send the same buffer without a copy', async () => {
    await get(path);
    const ended = vi.spyOn(ServerResponse.prototype, 'end');
    const copied = vi.spyOn(Buffer, 'from');
    const concatenated = vi.spyOn(Buffer, 'concat');
    const answers = await Promise.all(Array.from({ length: 5 }, () => get(path)));
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200));
    const sent = ended.mock.calls.map(([body]: unknown[]) => body);
    expect(sent).toHaveLength(5);
    expect([new Set(sent).size, Buffer.isBuffer(sent[0])]).toEqual([1, true]);
    const isCopied = [copied, concatenated].some(({ mock }) => mock.calls.flat(2).includes(sent[0] as Buffer));
    expect(isCopied).toBe(false);
  });

  it('has an entity tag: a client that has the page gets 304 without a body', async () => {
    const { headers, text } = await get(path);
    const tag = headers.get('etag') ?? '';
    expect(tag).toMatch(/^"[\w-]{43}"$/);
    expect(headers.get('cache-control')).toMatch(/^no-cache$|max-age=3600/);
    for (const tags of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      const again = await get(path, tags);
      expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', tag]);
    }
    const other = await get(path, '"other"');
    expect([other.status, other.text === text]).toEqual([200, true]);
  });
});

function directives(policy: string): Map<string, string[]> {
  return new Map(
    policy.split(';').map((directive) => {
      const [name = '', ...sources] = directive.trim().split(' ');
      return [name, sources];
    }),
  );
}

it.each(['/swagger/', '/graphql'])(
  'D8-02 DG-04: the page %s cannot be framed, has no opener, and sends nothing to other origins',
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

describe('any other response', () => {
  it.each([
    ['GET', '/nowhere', '<script>'],
    ['GET', '/v1/accounts', '<script>'],
    ['GET', '/swagger/<script>alert(1)<', 'x'],
    ['POST', '/v2/oauth/token', '<script>'],
    ['POST', '/graphql', '<script>'],
  ])('2.3-01: %s %s is JSON and does not repeat the input', async (method, path, text) => {
    const body = method === 'POST' ? { body: text } : {};
    const answer = await p.call(method, path, { headers: { accept: 'text/html', 'x-target-server': '' }, ...body });
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.json).toMatchObject({ code: -1, domain: 0 });
    expect(answer.text).not.toContain('script');
  });
});
