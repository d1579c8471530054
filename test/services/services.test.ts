import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { temporaryFolder } from '../support/services/folders.ts';
import { freshDatabase, freshRedis } from '../support/services/isolation.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { provision, VARIABLES } from '../support/services/provision.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

async function accepts(address: string): Promise<boolean> {
  const { hostname, port } = new URL(address.includes('://') ? address : `kafka://${address}`);
  const socket = connect(Number(port), hostname);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/**
 * `npm run services` for the servers that this run started itself, with its data under `folder`; in a quick run without Kafka,
 * which takes the longest to start and is watched over as Redis is.
 */
async function startServices(folder: string): Promise<{ parent: ChildProcess; addresses: string[] }> {
  const started = inject('startedServices').filter((name) => inject('isThorough') || name !== 'kafka');
  const elsewhere = { DATABASE_URL: 'postgresql://x/y', REDIS_URL: 'redis://x', KAFKA_BROKERS: 'x:1', CI: '' };
  const names = started.map((service) => VARIABLES[service]);
  const env = { ...process.env, ...elsewhere, TMPDIR: folder, ...Object.fromEntries(names.map((name) => [name, ''])) };
  const parent = spawn(process.execPath, [join(import.meta.dirname, '../support/services/run.ts')], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const printed = new Map<string, string>();
  for await (const line of createInterface({ input: parent.stdout })) {
    const [, name = '', value = ''] = /^export (\w+)=(.+)$/.exec(line) ?? [];
    printed.set(name, value);
    if (printed.size === 3) break;
  }
  return { parent, addresses: names.map((name) => printed.get(name) ?? '') };
}

describeReal('postgres', 'PostgreSQL in tests', () => {
  it('accepts queries, with fsync on', async () => {
    const rows = await withPostgres(serviceAddress('postgres'), async (client) => {
      const one = await client.query('select 1 as one');
      const fsync = await client.query('show fsync');
      return [...one.rows, ...fsync.rows];
    });
    expect(rows).toEqual([{ one: 1 }, { fsync: 'on' }]);
  });

  it('each suite gets its own database, which is dropped afterwards', async () => {
    await using first = await freshDatabase();
    await using second = await freshDatabase();
    await withPostgres(first.url, (client) => client.query('create table only_here (id int)'));
    const tables = await withPostgres(second.url, (client) => client.query("select to_regclass('only_here') as found"));
    expect(tables.rows).toEqual([{ found: null }]);
    await second.drop();
    await expect(withPostgres(second.url, (client) => client.query('select 1'))).rejects.toThrow('does not exist');
  });
});

describeReal('redis', 'Redis in tests', () => {
  it('each suite gets its own, empty database', async () => {
    await using first = await freshRedis();
    await using second = await freshRedis();
    const [one, two] = await Promise.all([first.url, second.url].map((url) => createClient({ url }).connect()));
    await one?.set('only', 'here');
    expect(await two?.get('only')).toBeNull();
    one?.destroy();
    two?.destroy();
  });
});

describe('provisioning of test services', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await temporaryFolder();
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('uses the servers named by the environment, and starts none instead', async () => {
    const given = { DATABASE_URL: 'postgresql://x/y', REDIS_URL: 'redis://x', KAFKA_BROKERS: 'a:1,b:2' };
    const services = await provision(given);
    expect(services).toMatchObject({
      addresses: { postgres: 'postgresql://x/y', redis: 'redis://x', kafka: 'a:1,b:2' },
      missing: [],
    });
    await services.stop();
  });

  it('reports missing services with the reason, and fails for them with CI=true', async () => {
    const environment = { DATABASE_URL: 'postgresql://x/y', REDIS_URL: 'redis://x', TEST_SERVICES: '' };
    const services = await provision(environment);
    expect(services.missing).toEqual([{ name: 'kafka', reason: 'left out by TEST_SERVICES' }]);
    await services.stop();
    await expect(provision({ ...environment, CI: 'true' })).rejects.toThrow('- kafka (KAFKA_BROKERS): left out');
  });

  it.each([
    ['chromium', 'CHROMIUM'],
    ['prometheus', 'PROMETHEUS'],
    ['python', 'MCP_PYTHON'],
  ] as const)(
    'looks for %s only if a suite needs it: uses the one its variable names, or reports it as missing',
    async (name, variable) => {
      const servers = { DATABASE_URL: 'postgresql://x/y', REDIS_URL: 'redis://x', KAFKA_BROKERS: 'a:1' };
      const environment = { ...servers, TEST_SERVICES: '' };
      const unasked = await provision(environment);
      expect(unasked).toMatchObject({ addresses: { kafka: 'a:1' }, missing: [] });
      expect(unasked.addresses).not.toHaveProperty(name);
      const named = await provision({ ...environment, [variable]: '/a/program' }, [name]);
      expect(named).toMatchObject({ addresses: { [name]: '/a/program' }, started: [], missing: [] });
      const lacking = await provision(environment, [name]);
      expect(lacking.missing).toEqual([{ name, reason: 'left out by TEST_SERVICES' }]);
      await Promise.all([unasked, named, lacking].map((services) => services.stop()));
      const inCi = provision({ ...environment, CI: 'true' }, [name]);
      await expect(inCi).rejects.toThrow(`- ${name} (${variable}): left out`);
    },
  );

  it('SIGTERM stops the servers before the process ends, and removes their data', async () => {
    const { parent, addresses } = await startServices(folder);
    for (const address of addresses) expect(await accepts(address)).toBe(true);
    parent.kill('SIGTERM');
    expect(await once(parent, 'exit')).toEqual([0, null]);
    for (const address of addresses) expect(await accepts(address)).toBe(false);
    expect(await readdir(folder)).toEqual([]);
  });

  it('SIGKILL leaves neither a server nor data', async () => {
    const { parent, addresses } = await startServices(folder);
    for (const address of addresses) expect(await accepts(address)).toBe(true);
    parent.kill('SIGKILL');
    await vi.waitFor(async () => expect(await readdir(folder)).toEqual([]));
    for (const address of addresses) expect(await accepts(address)).toBe(false);
  });
});
