import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { buildSchema, parse, validate } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAst } from 'vitest/node';
import { readConfig } from '../../src/platform/config/config.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { temporaryFile } from '../support/harness/temporary-file.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'console');
const MANIFEST = JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8'));
const OPERATIONS: Record<string, string> = JSON.parse(
  readFileSync(join(ROOT, 'schema/console-operations.json'), 'utf8'),
);
const OTHER = '{ me { nodeId } }';

let p: Portcullis;
let off: Portcullis;
const file = beforeTests(() => temporaryFile('operations.json', { other: OTHER }));

beforeAll(async () => {
  [p, off] = await Promise.all([
    startPortcullis({ env: { CONSOLE: 'on', GRAPHQL_PERSISTED: 'only', GRAPHQL_PERSISTED_FILE: file.path } }),
    startPortcullis({ env: { CONSOLE: 'off', GRAPHQL_PERSISTED: 'only', GRAPHQL_PERSISTED_FILE: file.path } }),
  ]);
});

afterAll(async () => {
  await Promise.all([p, off].map((each) => each?.[Symbol.asyncDispose]()));
});

interface Raw {
  status: number;
  headers: Record<string, unknown>;
  bytes: Buffer;
}

/** Asks for a path as it is written: `fetch` would resolve its dots first. */
function raw(path: string, { of = p, method = 'GET', headers = {} } = {}): Promise<Raw> {
  const { hostname, port } = new URL(of.url);
  return new Promise((resolve, reject) => {
    request({ hostname, port, path, method, headers }, async (response) => {
      const bytes = Buffer.concat(await response.toArray());
      resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes });
    })
      .on('error', reject)
      .end();
  });
}

function importMap(page: string): Record<string, string> {
  return JSON.parse(/<script type="importmap">([\s\S]*?)<\/script>/.exec(page)?.[1] ?? '{}').imports;
}

const IMPORTED =
  /(?:^|[;\n}])\s*(?:import|export)(?:[\w*{}\s$,]+from)?\s*["'](?<static>[^"']+)["']|import\(\s*["'](?<dynamic>[^"']+)["']/g;

/** The name of a file without the folder of its version. */
const nameOf = (address: string) => address.replace(/^v\/[\w-]+\//, '');

/** The files that some lead to, by their names below `/console/`; without dynamic imports what is loaded at once. */
async function closure(names: readonly string[], { isDynamic = true } = {}): Promise<Map<string, Raw>> {
  const map = importMap((await raw('/console/')).bytes.toString());
  const found = new Map<string, Raw>();
  const follow = async (address: string): Promise<void> => {
    const name = nameOf(address);
    if (found.has(name)) return;
    const got = await raw(`/console/${name}`);
    found.set(name, got);
    if (!/\.(?:ts|m?js)$/.test(name)) return;
    for (const { groups } of got.bytes.toString().matchAll(IMPORTED)) {
      const specifier = groups?.static ?? (isDynamic ? groups?.dynamic : undefined);
      if (specifier === undefined) continue;
      const from = new URL(name, 'http://console/');
      const to = new URL(map[specifier] ?? specifier, map[specifier] ? 'http://console/' : from);
      await follow(to.pathname.slice(1));
    }
  };
  for (const name of names) await follow(name);
  return found;
}

let everything: Promise<Map<string, Raw>> | undefined;

/** All files that the page and the modules of views lead to. */
function reached(): Promise<Map<string, Raw>> {
  everything ??= findReached();
  return everything;
}

async function findReached(): Promise<Map<string, Raw>> {
  const page = (await raw('/console/')).bytes.toString();
  const linked = Array.from(page.matchAll(/(?:src|href)="([^"]+)"/g), ([, name = '']) => name);
  return closure(['', ...linked, ...filesOf(FOLDER).filter((name) => /^(?:kit|views)\//.test(name))]);
}

/** The files that a first visit loads: the page, what it refers to, and the view that opens first. */
async function first(): Promise<Map<string, Raw>> {
  const [, view = ''] = /import\('\.\/(views\/[^']+)'\)/.exec(readFileSync(join(FOLDER, 'views.ts'), 'utf8')) ?? [];
  return closure(['', 'console.css', 'icon.svg', 'main.ts', 'layout.ts', view], { isDynamic: false });
}

function filesOf(folder: string, under = ''): string[] {
  return readdirSync(join(folder, under), { withFileTypes: true }).flatMap((entry) => {
    const name = under === '' ? entry.name : `${under}/${entry.name}`;
    return entry.isDirectory() ? filesOf(folder, name) : [name];
  });
}

/** What imports and exports below a node of a syntax tree name; the node itself where that is no literal. */
function* specifiersIn(node: unknown): Generator<unknown> {
  if (typeof node !== 'object' || node === null) return;
  const { type, source } = node as { type?: unknown; source?: { value?: unknown } | null };
  const isImporting = /^(?:Import(?:Declaration|Expression)|Export(?:Named|All)Declaration|TSImportType)$/.test(
    `${type}`,
  );
  if (isImporting && source) yield source.value ?? source;
  for (const child of Object.values(node)) yield* specifiersIn(child);
}

describe('the files of the console', () => {
  it('are served with their types, revalidated by entity tag, and never sniffed', async () => {
    const files = await reached();
    const types = {
      ts: 'text/javascript',
      mjs: 'text/javascript',
      js: 'text/javascript',
      css: 'text/css',
      svg: 'image/svg+xml',
    };
    for (const [name, { status, headers }] of files) {
      const type = Object.entries(types).find(([extension]) => name.endsWith(`.${extension}`))?.[1] ?? 'text/html';
      expect([name, status, headers['x-content-type-options']]).toEqual([name, 200, 'nosniff']);
      expect(String(headers['content-type']).split(';')[0]).toBe(type);
      const kept = name.startsWith('packages/') ? 'public, max-age=3600' : 'no-cache';
      expect([name, headers['cache-control'], headers['referrer-policy']]).toEqual([name, kept, 'no-referrer']);
      const again = await raw(`/console/${name}`, { headers: { 'if-none-match': String(headers.etag) } });
      expect([name, again.status, again.bytes.length]).toEqual([name, 304, 0]);
      expect(again.headers['content-security-policy']).toBe(headers['content-security-policy']);
    }
    const some = ['main.ts', 'console.css', 'icon.svg', 'api.ts', 'client/index.ts', 'client/generated/rest.ts'];
    expect([...files.keys()]).toEqual(expect.arrayContaining(some));
  });

  it('include a page that other sites can neither frame nor keep a reference to', async () => {
    const { headers } = await raw('/console/');
    expect(headers['cross-origin-opener-policy']).toBe('same-origin');
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
  });

  it('include a page whose policy allows only its own origin, and only its import map inline', async () => {
    const { bytes, headers } = await raw('/console/');
    const inline = [...bytes.toString().matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)];
    const hashes = inline.map(([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`);
    expect(hashes).toHaveLength(1);
    expect(String(headers['content-security-policy']).split('; ').sort()).toEqual([
      ...["base-uri 'none'", "connect-src 'self'", "default-src 'none'", "form-action 'none'"],
      ...["frame-ancestors 'none'", "img-src 'self'"],
      ...["require-trusted-types-for 'script'", `script-src 'self' ${hashes}`, "style-src 'self'"],
      "trusted-types 'none'",
    ]);
    expect(bytes.toString()).not.toMatch(/<style|\son\w+=|\sstyle=/);
  });

  it('cannot be framed, and files other than the page have a policy that allows nothing', async () => {
    for (const [name, { headers }] of await reached()) {
      if (name !== '') expect(headers['content-security-policy']).toBe("default-src 'none'; frame-ancestors 'none'");
    }
  });

  it('are cached for a year under the folder of their version, and revalidated under another folder', async () => {
    const [, version = ''] = /src="v\/([\w-]+)\/main\.ts"/.exec((await raw('/console/')).bytes.toString()) ?? [];
    for (const name of ['main.ts', 'kit/page.ts', 'console.css', 'client/index.ts']) {
      const [plain, own, other] = await Promise.all(
        [name, `v/${version}/${name}`, `v/of-another/${name}`].map((each) => raw(`/console/${each}`)),
      );
      expect([plain, own, other].map((each) => each?.headers['cache-control'])).toEqual([
        ...['no-cache', 'public, max-age=31536000, immutable', 'no-cache'],
      ]);
      expect([own, other].map((each) => plain && each?.bytes.equals(plain.bytes))).toEqual([true, true]);
    }
    for (const name of [`v/${version}/`, `v/${version}/v/${version}/main.ts`, `v/${version}/../main.ts`, 'v/main.ts']) {
      expect([name, (await raw(`/console/${name}`)).status]).toEqual([name, expect.toBeOneOf([400, 404])]);
    }
  });

  it('are compressed for clients that accept it, each form with its own entity tag', async () => {
    const plain = await raw('/console/main.ts');
    const zipped = await raw('/console/main.ts', { headers: { 'accept-encoding': 'br, gzip' } });
    expect([plain, zipped].map(({ headers }) => [headers['content-encoding'], headers.vary])).toEqual([
      [undefined, expect.stringContaining('Accept-Encoding')],
      ['gzip', expect.stringContaining('Accept-Encoding')],
    ]);
    expect(gunzipSync(zipped.bytes).equals(plain.bytes)).toBe(true);
    expect(zipped.headers.etag).not.toBe(plain.headers.etag);
    const refused = await raw('/console/main.ts', { headers: { 'accept-encoding': 'gzip;q=0, br' } });
    expect(refused.headers['content-encoding']).toBeUndefined();
  });

  it('are loaded at once for the first view, at most 100 KB in 8 rounds of 6 connections', async () => {
    const files = await first();
    const page = files.get('')?.bytes.toString() ?? '';
    const preloaded = Array.from(page.matchAll(/rel="modulepreload" href="([^"]+)"/g), ([, address = '']) =>
      nameOf(address),
    );
    const modules = [...files.keys()].filter((name) => /\.(?:ts|mjs|js)$/.test(name));
    expect(preloaded.toSorted()).toEqual(modules.toSorted());
    const sum = (sizes: number[]) => sizes.reduce((all, size) => all + size);
    const bodies = sum(Array.from(files.values(), ({ bytes }) => gzipSync(bytes).length));
    const heads = sum(Array.from(files.values(), ({ headers }) => JSON.stringify(headers).length));
    expect(bodies).toBeLessThan(100_000);
    expect(bodies + heads).toBeLessThan(130_000);
    expect(1 + Math.ceil((files.size - 1) / 6)).toBeLessThanOrEqual(8);
  });

  it('refer to no other origin', async () => {
    const files = await reached();
    const loads = /(?:from|import|src|href|url|fetch|action)\s*[=(]?\s*["'(]\s*(?:https?:)?\/\/[^"')]+/g;
    const named = Array.from(files, ([name, { bytes }]) => [name, bytes.toString().match(loads) ?? []]);
    expect(named.filter(([, found]) => found?.length)).toEqual([]);
  });

  it('are the files that the page refers to and other modules of the console; nothing else of the folder is served', async () => {
    const files = await reached();
    for (const name of filesOf(FOLDER)) {
      const { status } = await raw(`/console/${name}`);
      expect([name, status]).toEqual([name, files.has(name) || name.endsWith('.ts') ? 200 : 404]);
    }
    const allowed = new Set(Object.keys(MANIFEST.dependencies));
    const packaged = [...files.keys()].filter((name) => name.startsWith('packages/'));
    const packageOf = (name: string) => /^packages\/((?:@[^/]+\/)?[^/]+)\//.exec(name)?.[1] ?? '';
    expect(packaged.filter((name) => !allowed.has(packageOf(name)))).toEqual([]);
    expect(new Set(packaged.map(packageOf))).toEqual(allowed);
  });

  it.each([
    ...['packages/typescript/lib/typescript.js', 'packages/graphql/index.mjs', 'packages/preact/package.json'],
    ...['packages/preact/README.md', 'packages/preact/dist/preact.mjs.map', 'packages/preact/', 'packages/'],
    ...['packages/@preact/signals/../../preact/dist/preact.mjs', 'packages/preact/../typescript/lib/tsc.js'],
    ...['../src/main.ts', '..%2fsrc/main.ts', '%2e%2e/src/main.ts', '%2e%2e%2fsrc%2fmain.ts', '.%2e/src/main.ts'],
    ...['..%5csrc%5cmain.ts', '..\\src\\main.ts', 'generated/..%2f..%2fsrc/main.ts', 'generated/%2e%2e/main.ts'],
    ...['packages/preact/%2e%2e/%2e%2e/%2e%2e/src/main.ts', 'packages/preact/dist/%2e%2e%2f%2e%2e%2fhtm/dist/htm.mjs'],
    ...['//main.ts', 'generated//graphql.ts', 'packages//preact/dist/preact.mjs', 'packages/preact//dist/preact.mjs'],
    ...['main.ts%00', 'main.ts%00.css', '%00main.ts', 'main%2ets%2f', 'main.ts/', 'main.ts%20', 'MAIN.TS', 'main.js'],
    ...['main.ts%0a', 'main.ts%0d%0aset-cookie:a=b', '/etc/passwd', '%2fetc%2fpasswd', 'file:%2f%2f%2fetc%2fpasswd'],
    ...['%c0%ae%c0%ae/src/main.ts', '%', '%zz', 'packages/__proto__/x.js', 'packages/constructor/x.js', '__proto__'],
    ...[
      'client/package.json',
      'client/../package.json',
      'client/%2e%2e/README.md',
      'client/',
      'generated/client/index.ts',
    ],
    ...[
      'index.html',
      'tsconfig.json',
      'package.json',
      'operations/shared.graphql',
      'console.css.map',
      '.',
      '..',
      '...',
    ],
    ...[
      '../schema/console-operations.json',
      'html.ts%3f',
      'main.ts;a=b',
      '~',
      'generated',
      'generated/',
      'node_modules/',
    ],
  ])('do not include %s', async (name) => {
    const { status, bytes } = await raw(`/console/${name}`);
    expect([400, 404]).toContain(status);
    expect(bytes.toString()).not.toMatch(/import|export|root:/);
  });

  it('are served only to GET, and the page only under one URL', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      expect([404, 405, 501]).toContain((await raw('/console/', { method })).status);
    }
    for (const query of ['', '?client=x&a=%3F?']) {
      const led = await raw(`/console${query}`);
      expect([led.status, led.headers.location]).toEqual([308, `/console/${query}`]);
    }
  });

  it('get the same 404 as any unknown path if CONSOLE is off', async () => {
    const bodyOf = ({ bytes }: Raw) => bytes.toString().replaceAll(/[0-9a-f-]{36}/g, 'ID');
    const unknown = await raw('/nothing', { of: off });
    for (const path of ['/console', '/console/', '/console/main.ts', '/console/packages/preact/dist/preact.mjs']) {
      const got = await raw(path, { of: off });
      expect([path, got.status, bodyOf(got)]).toEqual([path, 404, bodyOf(unknown)]);
      expect(got.headers['content-security-policy']).toEqual(unknown.headers['content-security-policy']);
    }
  });

  it('are served by default on an embedded instance, and with database servers only if CONSOLE=on', () => {
    const DATABASE_URL = 'postgres://portcullis@127.0.0.1:5432/portcullis';
    const isOn = (env: Record<string, string>) => readConfig({ DATA_DIR: '/tmp/none', ...env }).config.console;
    expect([{}, { CONSOLE: 'off' }].map(isOn)).toEqual([true, false]);
    expect([{ DATABASE_URL }, { DATABASE_URL, CONSOLE: 'on' }].map(isOn)).toEqual([false, true]);
  });
});

describe('the operations of the console', () => {
  const texts = Object.values(OPERATIONS);

  const tokens = new Map<Portcullis, Promise<string>>();
  /** The token of an instance's client. */
  function tokenOf(of: Portcullis): Promise<string> {
    const token = tokens.get(of) ?? of.clientToken();
    tokens.set(of, token);
    return token;
  }

  /** Why a document is not run; undefined where it got as far as being run. */
  async function refusal(query: string, of = p): Promise<unknown> {
    // Values of no type: an operation that is known ends at them, also one that would follow something for ever.
    const variables = Object.fromEntries(Array.from(query.matchAll(/\$(\w+):/g), ([, name]) => [name, { no: 1 }]));
    const answer = await of.call('POST', '/graphql', { token: await tokenOf(of), json: { query, variables } });
    const code = answer.json?.errors?.[0]?.extensions?.code;
    return /PERSISTED/.test(code) ? code : undefined;
  }

  /** In a quick run all of them are asked for once, and some of them in the other states of an instance. */
  const some = inTurn(texts, 8, 0);
  const refusals = async (asked: readonly string[], of = p) =>
    Promise.all(asked.map(async (text) => [text, await refusal(text, of)]));
  const ran = (asked: readonly string[]) => asked.map((text) => [text, undefined]);

  it('are valid on the schema, each named by its hash, and one per file', () => {
    const schema = buildSchema(readFileSync(join(ROOT, 'schema/schema.graphql'), 'utf8'));
    const faults = texts.flatMap((text) => validate(schema, parse(text)).map(String));
    expect(faults).toEqual([]);
    expect(Object.keys(OPERATIONS)).toEqual(texts.map((text) => createHash('sha256').update(text).digest('hex')));
    const names = (text: string) =>
      parse(text).definitions.flatMap((node) => (node.kind === 'OperationDefinition' ? [node.name?.value] : []));
    const folder = join(FOLDER, 'operations');
    const written = readdirSync(folder).flatMap((name) => names(readFileSync(join(folder, name), 'utf8')));
    expect(texts.flatMap(names).sort()).toEqual(written.sort());
  });

  it('run under GRAPHQL_PERSISTED=only in addition to a file, also after a reload; no other operation does', async () => {
    expect(await refusals(texts)).toEqual(ran(texts));
    expect(await refusal(OTHER)).toBeUndefined();
    for (const other of [`${texts[0]} `, '{ me { subject } }', `#\n${texts[1]}`]) {
      expect(await refusal(other)).toMatch(/PERSISTED/);
    }
    await file.write({ subject: '{ me { subject } }' });
    await p.service.reload();
    expect(await refusals(some)).toEqual(ran(some));
    expect(await refusal(OTHER)).toMatch(/PERSISTED/);
    expect(await refusal('{ me { subject } }')).toBeUndefined();
  });

  it('need no file, and do not run if the console is off', async () => {
    await using alone = await startPortcullis({ env: { CONSOLE: 'on', GRAPHQL_PERSISTED: 'only' } });
    expect(await refusals(some, alone)).toEqual(ran(some));
    await alone.service.reload();
    expect(await refusals(some, alone)).toEqual(ran(some));
    expect(await refusal(OTHER, alone)).toMatch(/PERSISTED/);
    expect(await refusals(some, off)).toEqual(some.map((text) => [text, expect.stringMatching(/PERSISTED/)]));
    const lacking = { GRAPHQL_PERSISTED: 'only', DATA_DIR: '/tmp/none' };
    expect(() => readConfig({ ...lacking, CONSOLE: 'off' })).toThrow(/GRAPHQL_PERSISTED_FILE/);
  });
});

describe('the source of the console', () => {
  const own = filesOf(FOLDER).filter((name) => !/^(?:generated|node_modules)\/|^README|^package-lock/.test(name));

  it('has at most 6,300 lines', () => {
    const lines = own.map((name) => readFileSync(join(FOLDER, name), 'utf8').split('\n').length - 1);
    expect(lines.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(6_300);
  });

  it('imports only its own modules and packages, and builds no HTML and no URL from text', () => {
    const packages = [...Object.keys(MANIFEST.dependencies), '@portcullis/client'];
    const isOwn = (specifier: string) => /^\.\.?\/(?:[a-z-]+\/)*[a-z-]+\.ts$/.test(specifier);
    const isPackaged = (specifier: string) => packages.some((each) => `${specifier}/`.startsWith(`${each}/`));
    const imported: unknown[] = [];
    for (const name of own.filter((each) => each.endsWith('.ts'))) {
      const text = readFileSync(join(FOLDER, name), 'utf8');
      const specifiers = [...specifiersIn(parseAst(text, { lang: 'ts' }, name))];
      imported.push(...specifiers);
      const others = specifiers.filter((each) => typeof each !== 'string' || !(isOwn(each) || isPackaged(each)));
      expect([name, others]).toEqual([name, []]);
      expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|srcdoc/i);
      expect(text).not.toMatch(/\b(?:href|src|action|formaction)=\$\{(?!linkTo\(|link\})/i);
      expect(text).not.toMatch(/\blocation(?:\.href)?\s*=[^=]|\blocation\.(?:assign|replace)|\bopen\(/);
    }
    expect(imported).toEqual(expect.arrayContaining(['./html.ts', './generated/graphql.ts', 'preact', 'preact/hooks']));
  });
});
