import { describe, expect, it } from 'vitest';
import { swaggerFiles } from '../../src/api/openapi/swagger-files.ts';
import { IDS } from '../../src/lib/example-ids.ts';
import { recordOf } from '../support/audit/records.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startEmbedded } from '../support/harness.ts';
import { committed } from '../support/openapi/described.ts';

const p = beforeTests(startEmbedded);

/** The committed document, with the ids of the demo in the place of those of the examples. */
function ofDemo(): string {
  return Object.entries(IDS).reduce(
    (text, [name, id]) => text.replaceAll(id, String(Reflect.get(p.demo, name))),
    committed,
  );
}

/** What a page loads, by its own words. */
function loadedBy(page: string): string[] {
  return [...page.matchAll(/<(?:script|link)\b[^>]*\b(?:src|href)="([^"]*)"/g)].map(([, from = '']) => from);
}

describe('Swagger UI', () => {
  it('4.9-04 D8-02: /swagger/ needs no token, and every file it loads exists', async () => {
    const page = await p.call('GET', '/swagger/', { headers: { authorization: 'Bearer broken' } });
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const types: Record<string, string> = { js: 'text/javascript', css: 'text/css', png: 'image/png' };
    const loaded = loadedBy(page.text);
    expect(loaded).toHaveLength(5);
    for (const from of loaded) {
      const url = new URL(from, `${p.url}/swagger/`);
      expect(url.origin).toBe(p.url);
      const file = await p.call('GET', url.pathname);
      expect([from, file.status]).toEqual([from, 200]);
      expect(file.headers.get('content-type')).toContain(types[from.split('.').at(-1) ?? '']);
      expect(file.text.length).toBeGreaterThan(100);
    }
  });

  it('D8-02: its initializer loads the document of this instance, and no other host', async () => {
    const script = await p.call('GET', '/swagger/initializer.js');
    expect(script.text).toContain("url: 'openapi.json'");
    expect(script.text).toContain('validatorUrl: null');
    expect(script.text).not.toMatch(/https?:/);
  });

  it('D8-02: its policy forbids inline scripts and other hosts, and the page has no inline script or style', async () => {
    const page = await p.call('GET', '/swagger/');
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toContain('unsafe');
    expect(page.text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|javascript:/i);
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it.each([
    '/swagger/%2e%2e%2fpackage.json',
    '/swagger/..%2fpackage.json',
    '/swagger/..%5cpackage.json',
    '/swagger/%2e%2e/package.json',
    '/swagger/....//package.json',
    '/swagger/package.json',
    '/swagger/index.html.bak',
    '/swagger/swagger-ui.js',
    '/swagger/constructor',
    '/swagger/__proto__',
    '/swagger/openapi.json/',
    '/swagger/OPENAPI.JSON',
  ])('D2-04 D2-15 4.9-04: %s is a 404', async (path) => {
    const answer = await p.call('GET', path);
    expect([answer.status, answer.text]).toEqual([404, envelope('not_found')]);
  });

  it('4.9-04: /swagger redirects to /swagger/', async () => {
    const answer = await fetch(`${p.url}/swagger`, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location'), await answer.text()]).toEqual([308, '/swagger/', '']);
  });

  it.each(['HEAD', 'POST', 'PUT', 'DELETE'])('D2-15: %s /swagger/openapi.json is a 404', async (method) => {
    expect((await p.call(method, '/swagger/openapi.json')).status).toBe(404);
  });

  it.each(['bytes=0-10', 'bytes=99999999-', 'items=1'])(
    '4.9-04: a range (%s) is ignored: the response is the whole document',
    async (range) => {
      const answer = await p.call('GET', '/swagger/openapi.json', { headers: { range, 'if-match': '"x"' } });
      expect([answer.status, answer.text === ofDemo()]).toEqual([200, true]);
    },
  );
});

describe('/swagger/openapi.json', () => {
  it('D8-02: is the committed document, with the ids of the demo data in its examples', async () => {
    const answer = await p.call('GET', '/swagger/openapi.json');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(answer.text === ofDemo()).toBe(true);
    expect(answer.json.paths['/v2/admin/tokens/{id}'].get.parameters[0].schema.example).toBe(p.demo.asset_id);
    expect(answer.json.servers).toEqual([{ url: '/' }]);
  });

  it('D8-02: has PUBLIC_URL as its server when it is set, and is otherwise unchanged', async () => {
    const file = await swaggerFiles('https://gateway.example/$1/').find('openapi.json');
    const text = file?.bytes.toString() ?? '';
    const expected = JSON.parse(committed.replaceAll(/(?<="(?:token|refresh)Url": ")/g, () => '/$1'));
    expect(JSON.parse(text)).toEqual({ ...expected, servers: [{ url: 'https://gateway.example/$1' }] });
    expect(expected.components.securitySchemes.oauth2.flows.password.tokenUrl).toBe('/$1/v2/oauth/token');
    expect(text).toContain('18446744073709551615');
  });

  it('1-02 1-04 D2-07: is audited with its correlation id and its length, without its body', async () => {
    const id = `swagger-${Date.now()}`;
    const headers = { 'x-correlation-id': id, 'accept-encoding': 'identity' };
    const { text } = await p.call('GET', '/swagger/openapi.json', { headers });
    const record = await recordOf(p, id);
    expect(record).toMatchObject({ path: '/swagger/openapi.json', status_code: 200, response_body: null });
    expect(Number(record.response_bytes)).toBe(Buffer.byteLength(text));
  });
});
