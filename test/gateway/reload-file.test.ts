import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type GatewayConfig, parseGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { parseTable, Reloads, tableChanges } from '../../src/gateway/endpoints/reload.ts';
import { ConfigError } from '../../src/platform/config/config.ts';

const HEAD = `services: {a: local, far: {at: 'http://127.0.0.1:9', queue: 3}}
webhook_alias: {deprecated_at: 2026-11-01T00:00:00Z, sunset: 2027-11-01T00:00:00Z}
endpoints:
`;
const never = new AbortController().signal;

function text(paths: readonly string[]): string {
  return HEAD + paths.map((path) => `  - {methods: [GET], path: '${path}', services: [a, far]}\n`).join('');
}

/** Longer than what is read beside requests. */
const LONG = text(Array.from({ length: 1_000 }, (_, n) => `/v1/things-${n}/{id}`));

let folder: string;
let path: string;
let logged: { level: string; fields: Record<string, unknown>; message: string }[];
let used: GatewayConfig[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-reload-'));
  path = join(folder, 'gateway.yaml');
  logged = [];
  used = [];
});
afterEach(() => rm(folder, { recursive: true }));

async function reloadsOf(source: string, complete = (table: GatewayConfig) => table): Promise<Reloads> {
  await writeFile(path, source);
  const log = (level: string) => (fields: object, message: string) => {
    logged.push({ level, fields: { ...fields }, message });
  };
  const reloads = new Reloads({
    path,
    source,
    table: parseGatewayConfig(path, source),
    complete,
    log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
  });
  reloads.start((table) => used.push(table));
  return reloads;
}

async function isInForce({ inForce }: Reloads): Promise<number | undefined> {
  return (await inForce.get()).values[0]?.value;
}

describe('a long gateway.yaml', () => {
  it('is parsed to the same table in a worker thread', async () => {
    expect(await parseTable({ path, source: LONG }, never)).toStrictEqual(parseGatewayConfig(path, LONG));
  });

  it('is rejected there with the same file, line and field', async () => {
    const source = LONG.replace('[GET], path: /v1/things-7/', '[FETCH], path: /v1/things-7/').replace('[GET]', '[GIT]');
    let fault: unknown;
    try {
      parseGatewayConfig(path, source);
    } catch (error) {
      fault = error;
    }
    expect(fault).toBeInstanceOf(ConfigError);
    await expect(parseTable({ path, source }, never)).rejects.toEqual(fault);
  });

  it('is no longer parsed after a stop', async () => {
    const stop = new AbortController();
    const parsed = parseTable({ path, source: LONG }, stop.signal);
    stop.abort(new Error('stopped'));
    await expect(parsed).rejects.toThrow('stopped');
  });

  it('is neither applied nor logged after a stop', async () => {
    const reloads = await reloadsOf(text(['/a']));
    await writeFile(path, LONG);
    const reloaded = reloads.reload();
    await reloads.stop();
    await reloaded;
    await reloads.reload();
    expect([used, logged]).toEqual([[], []]);
  });
});

describe('a reload', () => {
  it('applies the table of the file and logs what changed', async () => {
    const reloads = await reloadsOf(text(['/a', '/b']));
    await writeFile(path, text(['/b', '/c', '/d']));
    await reloads.reload();
    expect(used.map(({ endpoints }) => endpoints.map((endpoint) => endpoint.path))).toEqual([['/b', '/c', '/d']]);
    const counts = { endpoints: 3, endpoints_added: 2, endpoints_removed: 1, endpoints_changed: 0 };
    expect(logged).toEqual([
      { level: 'info', fields: expect.objectContaining({ file: path, ...counts }), message: expect.any(String) },
    ]);
  });

  it.each([
    [
      'an error in the file',
      () => writeFile(path, text(['/a', 'b'])),
      () => `${path}:5: endpoints.1.path: must be a path`,
    ],
    ['half of the file', () => writeFile(path, `${HEAD}  - {methods: [GE`), () => `${path}:4: not valid YAML: `],
    ['an empty file', () => writeFile(path, ''), () => `${path}:1: the file: `],
    ['no file', () => rm(path), () => `GATEWAY_CONFIG: ${path} cannot be read (ENOENT)`],
  ])('with %s keeps the table, and logs file, line and field', async (_fault, change, says) => {
    const reloads = await reloadsOf(text(['/a']));
    await change();
    await reloads.reload();
    expect(used).toEqual([]);
    expect(logged).toMatchObject([{ level: 'error', fields: { file: path } }]);
    expect(String(logged[0]?.fields.faults)).toContain(says());
    expect(await isInForce(reloads)).toBe(0);
    await writeFile(path, text(['/a']));
    await reloads.fileChanged();
    expect([used.length, await isInForce(reloads)]).toEqual([1, 1]);
  });

  it('with a conflict with the variables keeps the table', async () => {
    const reloads = await reloadsOf(text(['/a']), () => {
      throw new ConfigError(['DISCOVERS_UPSTREAM_URL: both']);
    });
    await reloads.reload();
    expect([used, logged[0]?.fields.faults]).toEqual([[], ['DISCOVERS_UPSTREAM_URL: both']]);
  });

  it('with many errors logs the first ones and their number', async () => {
    const reloads = await reloadsOf(text(['/a']));
    await writeFile(path, text(Array.from({ length: 50 }, (_, n) => `without-slash-${n}`)));
    await reloads.reload();
    expect(logged[0]?.fields).toMatchObject({ fault_count: 50, faults: { length: 20 } });
  });

  it('that is requested many times runs once after the current one, and reads the file at that time', async () => {
    const reloads = await reloadsOf(text(['/a']));
    const first = reloads.reload();
    // The first one is reading by now.
    await Promise.resolve().then(() => undefined);
    await writeFile(path, text(['/last']));
    await Promise.all([first, ...Array.from({ length: 50 }, () => reloads.reload())]);
    expect(used.length).toBeLessThanOrEqual(2);
    expect(used.at(-1)?.endpoints.map((endpoint) => endpoint.path)).toEqual(['/last']);
  });

  it('after a change notification does nothing if the text is the same', async () => {
    const reloads = await reloadsOf(text(['/a']));
    await reloads.fileChanged();
    expect([used, logged]).toEqual([[], []]);
    await reloads.reload();
    expect(used.length).toBe(1);
    await Promise.all([reloads.reload(), reloads.fileChanged()]);
    expect(used.length).toBe(2);
  });
});

it('changes between two tables are counted by method, path and name', () => {
  const before = parseGatewayConfig('g', text(['/same', '/changed', '/removed']));
  const after = parseGatewayConfig(
    'g',
    text(['/changed', '/same', '/added', '/added-too'])
      .replace("path: '/changed'", "timeout_ms: 7, path: '/changed'")
      .replace('queue: 3', 'queue: 4')
      .replace('{a: local', '{b: local, a: local'),
  );
  expect(tableChanges(before, before)).toMatchObject({ endpoints_changed: 0, services_changed: 0, endpoints: 3 });
  expect(tableChanges(before, after)).toEqual({
    endpoints: 4,
    endpoints_added: 2,
    endpoints_removed: 1,
    endpoints_changed: 1,
    services_added: 1,
    services_removed: 0,
    services_changed: 1,
  });
});
