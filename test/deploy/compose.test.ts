import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { STOP_DEADLINE_MS } from '../../src/app/run.ts';
import { envSchema } from '../../src/platform/config/config.ts';
import { type ComposeFile, type ComposeService, environmentOf, interpolated } from '../support/deploy/compose.ts';
import { faultsOf, manifest, newSecrets, read, readYaml } from '../support/deploy/files.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { ROOT } from '../support/start/process.ts';

const file = readYaml<ComposeFile>('compose.yaml');
const services = Object.entries(file.services);
const own = services.filter(([, { build }]) => build !== undefined);
const names = new Set<string>(envSchema.keyof().options);

const ROLES = { 'gateway-1': 'gateway', 'gateway-2': 'gateway', worker: 'worker', migrate: undefined };

function service(name: string): ComposeService {
  const found = file.services[name];
  if (found === undefined) throw new Error(`compose.yaml has no service ${name}`);
  return found;
}

it('the product consists of two gateways, a worker and the migration', () => {
  expect(Object.fromEntries(own.map(([name, { environment }]) => [name, environment?.PORTCULLIS_ROLE]))).toEqual(ROLES);
});

it.each(Object.keys(ROLES))(
  'D1-04: %s sets every variable that production requires, and no unknown one',
  async (name) => {
    const environment = environmentOf(service(name), newSecrets());
    expect(environment.NODE_ENV).toBe('production');
    expect(Object.keys(environment).filter((variable) => !names.has(variable))).toEqual([]);
    expect(await faultsOf(environment)).toEqual([]);
  },
);

it('no secret has a value in the file: each comes from deploy/new-secrets.sh, or nothing starts', () => {
  const texts = services.flatMap(([, { environment = {} }]) => Object.values(environment).map(String));
  const missing = new Set(texts.flatMap((text) => interpolated(text, {}).missing));
  expect([...missing].sort()).toEqual(Object.keys(newSecrets()).sort());
  expect(new Set(Object.values(newSecrets())).size).toBe(missing.size);
  expect(read('.gitignore').split('\n')).toContain('.env');
});

it('URLs name services of the file, with the ports that those listen on', () => {
  const { DATABASE_URL, REDIS_URL, KAFKA_BROKERS } = environmentOf(service('worker'), newSecrets());
  expect(new URL(DATABASE_URL ?? '')).toMatchObject({
    hostname: 'postgres',
    username: 'portcullis_service',
    port: '5432',
  });
  expect(new URL(REDIS_URL ?? '')).toMatchObject({ hostname: 'redis', port: '6379' });
  expect(KAFKA_BROKERS).toBe('kafka:9092');
  expect(service('kafka').environment?.KAFKA_ADVERTISED_LISTENERS).toBe('PLAINTEXT://kafka:9092');
  expect(new URL(DATABASE_URL ?? '').pathname).toBe(`/${service('postgres').environment?.POSTGRES_DB}`);
});

it('only migrate has the URL of the table owner, for the same database', () => {
  const secrets = newSecrets();
  const owning = own.filter(([, { environment = {} }]) => 'MIGRATE_DATABASE_URL' in environment);
  expect(owning.map(([name]) => name)).toEqual(['migrate']);
  const { DATABASE_URL, MIGRATE_DATABASE_URL } = environmentOf(service('migrate'), secrets);
  const { environment = {} } = service('postgres');
  const login = { username: environment.POSTGRES_USER, password: secrets.POSTGRES_PASSWORD };
  expect(MIGRATE_DATABASE_URL).toBe(Object.assign(new URL(DATABASE_URL ?? ''), login).href);
});

it('PostgreSQL creates the service role with the name and password of the service URL', async () => {
  const secrets = newSecrets();
  const { username, password } = new URL(environmentOf(service('worker'), secrets).DATABASE_URL ?? '');
  const [mounted] = service('postgres').configs ?? [];
  expect(mounted?.target).toMatch(/^\/docker-entrypoint-initdb\.d\/\w+\.sh$/);
  await using folder = await emptyFolder();
  await writeFile(join(folder.path, 'psql'), '#!/bin/sh\nprintf "%s\\n" "$@"\ncat', { mode: 0o755 });
  const script = join(ROOT, file.configs[mounted?.source ?? '']?.file ?? '');
  const env = { ...environmentOf(service('postgres'), secrets), PATH: `${folder.path}:${process.env.PATH}` };
  const said = execFileSync('sh', [script], { env, encoding: 'utf8' });
  expect(said.split('\n').slice(0, -1)).toEqual([
    '--set=ON_ERROR_STOP=1',
    `--set=password=${password}`,
    '--username=portcullis',
    '--dbname=portcullis',
    `create role ${username} login password :'password';`,
  ]);
});

it.each(own)('%s runs the release image, without capabilities and with a read-only file system', (_, container) => {
  expect(container).toMatchObject({
    image: `portcullis:${manifest.version}`,
    build: '.',
    read_only: true,
    tmpfs: ['/tmp'],
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
  });
  expect(Number.parseInt(container.stop_grace_period ?? '', 10) * 1_000).toBeGreaterThan(STOP_DEADLINE_MS);
});

it('every image has a full version, and every server drops all capabilities', () => {
  for (const [name, { image, cap_drop }] of services) {
    expect(image, name).toMatch(/^[a-z/]+:\d+\.\d+(?:\.\d+)?(?:-alpine|-dev)?$/);
    expect(cap_drop, name).toEqual(['ALL']);
  }
});

it('a service waits for the health of services with a check, and for the completion of migrate', () => {
  for (const [name, { depends_on = {} }] of services) {
    for (const [other, { condition }] of Object.entries(depends_on)) {
      const { healthcheck, build } = service(other);
      const isChecked = healthcheck?.test !== undefined || (build !== undefined && healthcheck?.disable !== true);
      expect(isChecked, `${name} waits for ${other}`).toBe(condition === 'service_healthy');
    }
  }
  for (const name of ['gateway-1', 'gateway-2', 'worker']) {
    expect(service(name).depends_on?.migrate?.condition).toBe('service_completed_successfully');
  }
});

it('only the load balancer is reachable, and the stores have no outbound network', () => {
  expect(services.filter(([, { ports }]) => ports !== undefined).map(([name]) => name)).toEqual(['load-balancer']);
  expect(file.networks.back).toEqual({ internal: true });
  for (const name of ['postgres', 'redis', 'kafka']) expect(service(name).networks).toEqual(['back']);
});

it('networks, volumes and files that services name exist, and each volume is mounted once', () => {
  const volumes = services.flatMap(([, container]) =>
    (container.volumes ?? []).map((text) => text.split(':')[0] ?? ''),
  );
  expect(volumes.sort()).toEqual(Object.keys(file.volumes).sort());
  const networks = services.flatMap(([, container]) => container.networks ?? []);
  expect(new Set(networks)).toEqual(new Set(Object.keys(file.networks)));
  const configs = services.flatMap(([, container]) => (container.configs ?? []).map(({ source }) => source));
  expect(configs).toEqual(Object.keys(file.configs));
  for (const { file: path } of Object.values(file.configs)) expect(existsSync(join(ROOT, path ?? ''))).toBe(true);
});

it('D1-05: the load balancer uses both gateways, passes the address of the client, and does not buffer streams', () => {
  const conf = read('deploy/compose/nginx.conf');
  const gateways = own.flatMap(([name, { environment }]) => (environment?.PORTCULLIS_ROLE === 'gateway' ? [name] : []));
  const port = envSchema.shape.PORT.parse(undefined);
  expect(Array.from(conf.matchAll(/^\s+server (\S+) resolve [^;]+;/gm), ([, at]) => at)).toEqual(
    gateways.map((name) => `${name}:${port}`),
  );
  expect(conf).toMatch(/X-Forwarded-For \$remote_addr;/);
  expect(conf).toMatch(/X-Real-IP \$remote_addr;/);
  for (const header of ['Forwarded', 'ssl-client-fingerprint']) expect(conf).toContain(`${header} '';`);
  expect(conf).toMatch(/proxy_buffering off;\s+proxy_request_buffering off;\s+client_max_body_size 0;/);
  for (const name of gateways) expect(service(name).environment?.TRUST_PROXY).toBe('uniquelocal');
});

it('a gateway or worker is healthy if its private /readyz is, and the load balancer waits for that', async () => {
  const admin = envSchema.shape.ADMIN_PORT.parse(undefined);
  const asked = `http://127.0.0.1:${admin}/readyz?exclude=stores`;
  for (const name of ['gateway-1', 'gateway-2', 'worker']) {
    const [how, ...words] = service(name).healthcheck?.test ?? [];
    expect([how, words[0], words[1]], name).toEqual(['CMD', 'node', '-e']);
    for (const [status, code] of [
      [200, 0],
      [503, 1],
    ] as const)
      expect(await exitOf(words[2] ?? '', asked, status)).toBe(code);
  }
  for (const name of ['gateway-1', 'gateway-2'])
    expect(service('load-balancer').depends_on?.[name]?.condition).toBe('service_healthy');
});

it('D1-05: a request that a gateway does not accept is retried once at the other, but not a POST that was sent in part', () => {
  const conf = read('deploy/compose/nginx.conf').replaceAll(/#.*/g, '');
  expect(conf).toMatch(/proxy_next_upstream error timeout;\s+proxy_next_upstream_tries 2;/);
  expect(conf).not.toContain('non_idempotent');
});

/** How the program of a health check ends whose question is answered with a status. */
async function exitOf(program: string, asked: string, status: number): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const fetched = async (url: string) => {
    expect(url).toBe(asked);
    return { ok: status < 300 };
  };
  new Function('fetch', 'process', program)(fetched, { exit: resolve });
  return promise;
}

it('D1-13: gateways can be recreated in turn: the load balancer forgets addresses and failures before the next health check', () => {
  const conf = read('deploy/compose/nginx.conf');
  const seconds = (found: RegExpExecArray | null) => Number(found?.[1]) * (found?.[2] === 'ms' ? 0.001 : 1);
  const times = [
    /proxy_connect_timeout (\d+)(ms|s);/,
    /resolver \S+ valid=(\d+)(s);/,
    /server gateway-1:4000 .*fail_timeout=(\d+)(s);/,
  ].map((pattern) => seconds(pattern.exec(conf)));
  const all = [...times, Number.parseInt(service('gateway-1').healthcheck?.interval ?? '', 10)];
  expect(all).not.toContain(Number.NaN);
  for (const [index, time] of all.entries()) expect(time).toBeGreaterThan(all[index - 1] ?? 0);
});
