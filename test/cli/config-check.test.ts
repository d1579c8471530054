import { expect, it } from 'vitest';
import { envSchema } from '../../src/platform/config/config.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { temporaryFile } from '../support/harness/temporary-file.ts';

const SECRET = 'this one must never be shown to anyone';
const SIGNING = Buffer.from(SECRET).toString('base64');

it('D1-12: config check prints every variable, its value in force, and whether it is set', async () => {
  const { code, out, err } = await portcullis(['config', 'check'], { PORT: '8080', HOST: '' });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  for (const name of envSchema.keyof().options) expect(out).toMatch(new RegExp(`^[* ] ${name} `, 'm'));
  expect(out).toMatch(/^\* PORT +8080$/m);
  expect(out).toMatch(/^ {2}HOST +127\.0\.0\.1$/m);
  expect(out).toMatch(/^ {2}PUBLIC_URL +http:\/\/127\.0\.0\.1:8080$/m);
});

it('config check masks secrets, also inside addresses', async () => {
  const env = {
    JWT_SECRET_USER: SECRET,
    WEBHOOK_PASSWORD: SECRET,
    WEBHOOK_SIGNING_SECRET: `whsec_${SIGNING}`,
    KAFKA_SASL_MECHANISM: 'plain',
    KAFKA_SASL_USERNAME: 'portcullis',
    KAFKA_SASL_PASSWORD: SECRET,
    DATABASE_URL: `postgres://user:${encodeURIComponent(SECRET)}@db.example/rows?password=${SECRET}`,
    MIGRATE_DATABASE_URL: `postgres://owner:${encodeURIComponent(SECRET)}@db.example/rows`,
    REDIS_URL: `redis://:${SECRET.replaceAll(' ', '')}@cache.example:6379`,
  };
  const { code, out } = await portcullis(['config', 'check', '--json'], env);
  expect(code).toBe(0);
  expect(decodeURIComponent(out).replaceAll(' ', '')).not.toContain(SECRET.replaceAll(' ', ''));
  expect(out).not.toContain(SIGNING.slice(0, 8));
  const { variables } = JSON.parse(out) as { variables: { name: string; value: string; source: string }[] };
  expect(variables).toContainEqual({ name: 'JWT_SECRET_USER', value: '***', source: 'environment' });
  expect(variables).toContainEqual({
    name: 'DATABASE_URL',
    value: 'postgres://user:***@db.example/rows',
    source: 'environment',
  });
  expect(variables.find(({ name }) => name === 'MIGRATE_DATABASE_URL')?.value).toBe(
    'postgres://owner:***@db.example/rows',
  );
  expect(variables.find(({ name }) => name === 'REDIS_URL')?.value).toBe('redis://cache.example:6379');
});

it.each([
  [{}, 'none: the embedded database has one role'],
  [{ DATABASE_URL: 'postgres://db/rows' }, 'DATABASE_URL'],
])('config check prints which address runs migrations: %j', async (env, value) => {
  const { out } = await portcullis(['config', 'check', '--json'], env);
  expect(JSON.parse(out).variables).toContainEqual({ name: 'MIGRATE_DATABASE_URL', value, source: 'default' });
});

it('D1-12: config check masks a secret read from a file, names its source, and warns of a misspelt variable', async () => {
  await using file = await temporaryFile('password', SECRET);
  const env = { WEBHOOK_PASSWORD_FILE: file.path, Redis_Url: `redis://:${SECRET}@cache` };
  const warning = 'Redis_Url is unknown: did you mean REDIS_URL?';
  const text = await portcullis(['config', 'check'], env);
  expect(text).toMatchObject({ code: 0, err: `${warning}\n` });
  expect(text.out).toMatch(/^\+ WEBHOOK_PASSWORD +\*\*\*$/m);
  const { out } = await portcullis(['config', 'check', '--json'], env);
  const { variables, warnings } = JSON.parse(out);
  expect(variables).toContainEqual({ name: 'WEBHOOK_PASSWORD', value: '***', source: 'file' });
  expect(warnings).toEqual([warning]);
  for (const shown of [text.out, text.err, out]) expect(shown).not.toContain(SECRET);
});

it('config check masks a secret that could be read as an address', async () => {
  const env = { WEBHOOK_PASSWORD: 'correct://horse/battery', JWT_SECRET_USER: `k://${'staple'.repeat(6)}` };
  const { code, out } = await portcullis(['config', 'check'], env);
  expect(code).toBe(0);
  expect(out).not.toMatch(/horse|battery|staple/);
});

it.each([false, true])(
  'D1-12, D1-04: config check on an invalid configuration exits with 1 and names every error (json: %s)',
  async (json) => {
    const env = { NODE_ENV: 'production', PORT: 'http', GATEWAY_CONFIG: '/absent/gateway.yaml' };
    const { code, out, err } = await portcullis(['config', 'check', ...(json ? ['--json'] : [])], env);
    expect(code).toBe(1);
    const faults: string[] = json ? JSON.parse(out).faults : err.trimEnd().split('\n');
    expect(faults[0]).toBe('PORT must be a port number, 0 to 65535');
    expect(faults).toContain('SECRET_PEPPER is missing: production requires it');
    expect(faults.at(-1)).toMatch(/^GATEWAY_CONFIG: \/absent\/gateway\.yaml cannot be read/);
    expect(faults).toHaveLength(12);
  },
);

it('D6-20, D1-12: config check names the missing variable that transactions_lookup requires, if the role uses it', async () => {
  const lookup = { url: 'http://127.0.0.1:1', bearer_env: 'OWNER_TOKEN' };
  await using file = await gatewayFile({}, [], { transactions_lookup: lookup });
  const env = { GATEWAY_CONFIG: file.path };
  const { code, err } = await portcullis(['config', 'check'], env);
  expect({ code, err }).toEqual({
    code: 1,
    err: 'OWNER_TOKEN is missing: transactions_lookup in gateway.yaml requires it\n',
  });
  const token = SECRET.replaceAll(' ', '');
  await using secret = await temporaryFile('token', token);
  for (const variable of [{ OWNER_TOKEN: token }, { OWNER_TOKEN_FILE: secret.path }]) {
    const given = await portcullis(['config', 'check'], { ...env, ...variable });
    expect(given.code).toBe(0);
    expect(given.out).not.toContain(token);
  }
  const { err: both } = await portcullis(['config', 'check'], {
    ...env,
    OWNER_TOKEN: token,
    OWNER_TOKEN_FILE: secret.path,
  });
  expect(both).toBe('OWNER_TOKEN and OWNER_TOKEN_FILE are both set: set only one\n');
});

it('DG-11, D1-12: config check names each persisted operation that is invalid on the schema', async () => {
  await using file = await temporaryFile('operations.json', {
    fine: '{ me { nodeId } }',
    old: '{ me { nodeIdentifier } }',
    broken: '{ me {',
  });
  const env = { GRAPHQL_PERSISTED: 'only', GRAPHQL_PERSISTED_FILE: file.path };
  const { code, err } = await portcullis(['config', 'check'], env);
  expect(code).toBe(1);
  expect(err.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/contains the document old, which is invalid: Cannot query field "nodeIdentifier"/),
    expect.stringMatching(/contains the document broken, which is invalid: Syntax Error/),
  ]);
});

it.each([
  [{ GRAPHQL_PERSISTED: 'only' }, /^GRAPHQL_PERSISTED=only needs GRAPHQL_PERSISTED_FILE$/m],
  [
    { GRAPHQL_PERSISTED: 'allow', GRAPHQL_PERSISTED_FILE: '/absent/x.json' },
    /^GRAPHQL_PERSISTED_FILE \/absent.* cannot be/m,
  ],
  [{ GRAPHQL_PERSISTED_FILE: 'x.json' }, /^GRAPHQL_PERSISTED_FILE needs GRAPHQL_PERSISTED to be allow or only$/m],
  [{ GRAPHQL_PERSISTED: 'yes' }, /^GRAPHQL_PERSISTED must be off, allow or only$/m],
])('DG-11, D1-12: config check rejects %o', async (env, message) => {
  const { code, err } = await portcullis(['config', 'check'], env);
  expect(code).toBe(1);
  expect(err).toMatch(message);
});

it('D1-04 D1-12: config check reports errors in variables, in gateway.yaml and between them together', async () => {
  const source = 'services: {a: local}\nendpoints:\n  - {methods: [GET], path: /a, services: [ghost], typo: 1}\n';
  await using file = await temporaryFile('gateway.yaml', source);
  const { code, err } = await portcullis(['config', 'check'], {
    GATEWAY_CONFIG: file.path,
    PORT: 'x',
    GATEWAY_FILE: 'y',
  });
  expect(code).toBe(1);
  for (const told of [
    'PORT must be',
    'webhook_alias: is required',
    'has the unknown member typo',
    '"ghost" is not under',
    'GATEWAY_FILE is unknown',
  ]) {
    expect(err).toContain(told);
  }
});

it('D1-12: config check reports an upstream for discovers whose path gateway.yaml already has', async () => {
  const more = { methods: ['GET'], path: '/v1/discovers/**', tokens: ['discover'] };
  await using file = await gatewayFile({}, [more]);
  const env = { GATEWAY_CONFIG: file.path, DISCOVERS_UPSTREAM_URL: 'http://host' };
  const { code, err } = await portcullis(['config', 'check'], env);
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('DISCOVERS_UPSTREAM_URL: gateway.yaml has') });
});

it('D1-18: config check lists the names that an endpoint unmasks, and rejects them for documented endpoints', async () => {
  const endpoint = { methods: ['GET'], path: '/v1/pages', services: ['accounts'] };
  const remote = { accounts: 'http://127.0.0.1:1' };
  await using good = await gatewayFile(remote, [{ ...endpoint, unmask: ['page_token'] }]);
  const shown = await portcullis(['config', 'check'], { GATEWAY_CONFIG: good.path });
  expect(shown).toMatchObject({ code: 0 });
  expect(shown.out).toContain('not masked at GET /v1/pages: page_token\n');
  await using documented = await gatewayFile(remote, [{ ...endpoint, unmask: ['Pass-Word', '-'] }]);
  const refused = await portcullis(['config', 'check'], { GATEWAY_CONFIG: documented.path });
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('must be none of password, token, secret, authorization, which are always masked');
  expect(refused.err).toContain('must have a letter or a digit');
  await using local = await gatewayFile({ accounts: 'local' }, [{ ...endpoint, unmask: ['page_token'] }]);
  const here = await portcullis(['config', 'check'], { GATEWAY_CONFIG: local.path });
  expect(here.err).toContain('is allowed only for remote services');
});
