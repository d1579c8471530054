import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readConfig, SECRET_VARIABLES } from '../../src/platform/config/config.ts';
import { knownAuditKeys } from '../../src/platform/config/secrets.ts';
import { configFaults } from '../support/gateway/config-faults.ts';
import { emptyFolder } from '../support/start/folders.ts';

const NETWORK = 'e1f2a3b4-5c6d-4e7f-8091-a2b3c4d5e6f7';
const LONG = 'x'.repeat(32);
const ED25519_KEY = inBase64(generateKeyPairSync('ed25519').privateKey);
const RSA_KEY = inBase64(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey);
const PRODUCTION = {
  ...{ PUBLIC_URL: 'https://a.example', DATABASE_URL: 'postgres://db/rows', REDIS_URL: 'redis://cache' },
  ...{ KAFKA_BROKERS: 'a:1', JWT_SECRET_USER: `u${LONG}`, JWT_SECRET_DISCOVER: `d${LONG}`, JWT_SECRET_LEGACY: LONG },
  ...{ SECRET_PEPPER: LONG, WEBHOOK_USERNAME: 'me', WEBHOOK_PASSWORD: LONG, NODE_ENV: 'production' },
};

function inBase64(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'der' }).toString('base64');
}

const faults = (env: NodeJS.ProcessEnv) => configFaults(() => readConfig(env));

it('D1-01: without variables it is an embedded instance on 127.0.0.1:4000', () => {
  const { config } = readConfig({});
  expect(config).toMatchObject({ production: false, host: '127.0.0.1', port: 4000, adminPort: 4001, role: 'all' });
  expect(config.databaseUrl ?? config.redisUrl ?? config.kafka).toBeUndefined();
  expect(Object.isFrozen(config)).toBe(true);
});

it.each([
  ['PORT', '-1'],
  ['PORT', '65536'],
  ['PORT', '0x10'],
  ['PORT', ' 80'],
  ['ADMIN_PORT', '1e3'],
  ['PUBLIC_URL', 'ftp://portcullis.example'],
  ['PUBLIC_URL', 'https://portcullis.example/?a=b'],
  ['PORTCULLIS_ROLE', 'ALL'],
  ['DATABASE_URL', 'db:5432'],
  ['REDIS_URL', 'cache:6379'],
  ['KAFKA_BROKERS', ','],
  ['KAFKA_BROKERS', 'broker'],
  ['KAFKA_SSL', 'yes'],
  ['TOPIC_PREFIX', 'a/b'],
  ['JWT_SECRET_USER', 'x'.repeat(31)],
  ['SECRET_PEPPER', 'é'.repeat(15)],
  ['WEBHOOK_SIGNING_SECRET', 'x'.repeat(64)],
  ['WEBHOOK_SIGNING_SECRET', 'whsec_c2hvcnQ='],
  ['WEBHOOK_SIGNATURE', 'off'],
  ['WEBHOOK_SIGNATURE', 'required'],
  ['WEBHOOK_SIGNING_SECRET_PREVIOUS', `whsec_${'c2ln'.repeat(8)}`],
  ['MAX_CONNECTIONS', '0'],
  ['MAX_SESSIONS', '0'],
  ['MAX_SESSIONS', '1.5'],
  ['TRUST_PROXY', 'everybody'],
  ['TRUST_PROXY', '10.0.0.0/33'],
  ['CORS_ORIGINS', 'https://app.example/'],
  ['CORS_ORIGINS', ','],
  ['GAS_RPC_URLS', 'https://node.example'],
  ['GAS_RPC_URLS', 'mainnet=https://node.example'],
  ['GAS_RPC_URLS', `${NETWORK}=ws://node.example`],
  ['GAS_RPC_URLS', `${NETWORK}=http://a%zz:b@node.example/`],
  ['GAS_RPC_URLS', `${NETWORK}=https://a.example,${NETWORK.toUpperCase()}=https://b.example`],
  ['AUDIT_RETENTION_DAYS', '0'],
  ['AUDIT_SIGNING_KEY', 'x'.repeat(64)],
  ['AUDIT_SIGNING_KEY', RSA_KEY],
  ['AUDIT_SIGNING_KEY_PREVIOUS', ED25519_KEY],
  ['AUDIT_CHECKPOINTS', '/var/seals'],
  ['AUDIT_CHECKPOINTS', 'topic:audit'],
  ['AUDIT_CHECKPOINTS', 'kafka:audit'],
  ['MIGRATE_DATABASE_URL', 'postgres://owner@db/rows'],
  ['EVENTS_RETENTION_DAYS', 'forever'],
  ['PUBLIC_URL', 'https://me:secret@gate.example'],
  ['DISCOVERS_UPSTREAM_URL', 'http://me:secret@discovers'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://me:secret@collector:4318'],
  ['DATABASE_URL', 'postgres://me:100%@db/rows'],
  ['DATABASE_URL', 'postgres://me:p@db/100%'],
  ['DATABASE_URL', 'postgres:///rows'],
  ['REDIS_URL', 'redis://:100%@cache'],
  ['REDIS_URL', 'redis://cache/rows'],
  ['REDIS_URL', 'redis://'],
  ['GRAPHQL_INTROSPECTION', 'true'],
  ['GRAPHQL_MAX_COST', ''.padEnd(11, '9')],
  ['LOG_LEVEL', 'INFO'],
  ['NODE_ENV', 'prod'],
  ['NODE_ENV', 'PROD-eu'],
  ['NODE_ENV', 'prd'],
  ['NODE_ENV', 'Production '],
  ['NODE_ENV', 'producton'],
  ['NODE_ENV', 'Roduction'],
])('D1-04: %s=%j is rejected by name', (name, value) => {
  expect(faults({ [name]: value })).toEqual([expect.stringContaining(name)]);
});

it.each([
  [{ PORT: '' }, { port: 4000 }],
  [{ PORT: '0' }, { port: 0 }],
  [{ PUBLIC_URL: 'https://portcullis.example/gate/' }, { publicUrl: 'https://portcullis.example/gate' }],
  [{ KAFKA_BROKERS: 'a:1, b:2,' }, { kafka: { brokers: ['a:1', 'b:2'], ssl: false, sasl: undefined } }],
  [{ TRUST_PROXY: 'loopback, 10.0.0.0/8' }, { trustProxy: ['loopback', '10.0.0.0/8'] }],
  [{ CORS_ORIGINS: 'https://a.example,http://b:8080' }, { corsOrigins: ['https://a.example', 'http://b:8080'] }],
  [
    { GAS_RPC_URLS: ` ${NETWORK.toUpperCase()}=https://n.example/?a=1,2 ` },
    { gasNodes: new Map([[NETWORK, 'https://n.example/?a=1,2']]) },
  ],
  [{ DATABASE_URL: 'postgres://me:100%25@db/rows' }, { databaseUrl: 'postgres://me:100%25@db/rows' }],
  [{ DATABASE_URL: 'postgres:///rows?host=/run' }, { databaseUrl: 'postgres:///rows?host=/run' }],
  [{ REDIS_URL: 'rediss://:100%25@cache/0' }, { redisUrl: 'rediss://:100%25@cache/0' }],
  [{ REDIS_URL: 'redis://cache/' }, { redisUrl: 'redis://cache/' }],
  [{ AUDIT_CHECKPOINTS: 'file:/var/a:b' }, { auditCheckpoints: { file: '/var/a:b' } }],
  [{ AUDIT_CHECKPOINTS: 'kafka:audit', KAFKA_BROKERS: 'a:1' }, { auditCheckpoints: { topic: 'audit' } }],
  [{ JWT_SECRET_USER: 'é'.repeat(16) }, {}],
  [{ GRAPHQL_INTROSPECTION: 'off' }, { graphqlIntrospection: false }],
  [{ NODE_ENV: 'development' }, { production: false }],
  [{ NODE_ENV: 'pre-production' }, { production: false }],
])('%j is accepted', (env: NodeJS.ProcessEnv, expected) => {
  expect(readConfig(env).config).toMatchObject(expected);
});

it('AUDIT_SIGNING_KEY_PREVIOUS accepts several PEM blocks, private or public, or one key in base64', () => {
  const pem = () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    return [privateKey.export({ type: 'pkcs8', format: 'pem' }), publicKey.export({ type: 'spki', format: 'pem' })];
  };
  const [one = '', other = ''] = [pem()[0], pem()[1]].map(String);
  const withPrevious = (previous: string) => ({
    ...{ DATA_DIR: '/none', AUDIT_SIGNING_KEY: ED25519_KEY, AUDIT_SIGNING_KEY_PREVIOUS: previous },
  });
  const known = (previous: string) => {
    const { config, env } = readConfig(withPrevious(previous));
    return knownAuditKeys(config, env).map(({ type }) => type);
  };
  expect(known(`${one}${other}`)).toEqual(['private', 'private', 'public']);
  expect(known(ED25519_KEY)).toEqual(['private', 'private']);
  expect(() => readConfig(withPrevious(`${one}${other.replace('M', '!')}`))).toThrow(/AUDIT_SIGNING_KEY_PREVIOUS/);
});

it('D1-04: a misspelt variable is reported with its likely name, whether other variables are valid or not', () => {
  const env = { databaseurl: 'postgres://db/rows', Jwt_Secret_User_File: '/run/x', PATH: '/bin', REDIS_URLS: 'x' };
  const warnings = [
    'databaseurl is unknown: did you mean DATABASE_URL?',
    'Jwt_Secret_User_File is unknown: did you mean JWT_SECRET_USER_FILE?',
  ];
  expect(readConfig(env).warnings).toEqual(warnings);
  expect(faults({ ...env, PORT: 'x' })).toEqual(['PORT must be a port number, 0 to 65535', ...warnings]);
});

it.each([
  ['GATEWAY_FILE', 'GATEWAY_CONFIG'],
  ['GATEWAY_CONFIG_FILE', 'GATEWAY_CONFIG'],
  ['gateway_yaml', 'GATEWAY_CONFIG'],
  ['POSTGRES_URL', 'DATABASE_URL'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['KAFKA_BROKER', 'KAFKA_BROKERS'],
  ['KAFKA_BOOTSTRAP_SERVERS', 'KAFKA_BROKERS'],
  ['JWT_SECRET', 'JWT_SECRET_USER'],
  ['WEBHOOK_SECRET', 'WEBHOOK_SIGNING_SECRET'],
  ['CORS_ORIGIN', 'CORS_ORIGINS'],
  ['TRUSTED_PROXIES', 'TRUST_PROXY'],
])('D1-04: %s is reported as a likely misspelling of %s', (name, meant) => {
  const secret = 'this value is never shown';
  expect(readConfig({ [name]: secret }).warnings).toEqual([`${name} is unknown: did you mean ${meant}?`]);
});

it.each(['PATH', 'HOSTNAME', 'KAFKA_SERVICE_HOST', 'GATEWAY_PORT', 'GATEWAY_SERVICE_PORT', 'constructor', '__proto__'])(
  'D1-04: %s, which other software sets, is not reported',
  (name) => expect(readConfig(Object.fromEntries([[name, 'x']])).warnings).toEqual([]),
);

it('production warns if audit records are not signed, or seals are not exported', () => {
  const told = (env: NodeJS.ProcessEnv) => readConfig(env).warnings.map((warning) => warning.split(':')[0]);
  expect(told(PRODUCTION)).toEqual(['AUDIT_SIGNING_KEY is not set', 'AUDIT_CHECKPOINTS is not set']);
  expect(told({ ...PRODUCTION, AUDIT_SIGNING_KEY: ED25519_KEY, AUDIT_CHECKPOINTS: 'kafka:audit' })).toEqual([]);
  expect(told({})).toEqual([]);
});

it.each(['\n', '\r\n', ''])('D1-04: every secret can be read from a file, which may end with %j', async (end) => {
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
  const signing = `whsec_${'c2ln'.repeat(8)}`;
  const special: Record<string, string> = {
    DATABASE_URL: 'postgres://me:hidden@db/rows',
    MIGRATE_DATABASE_URL: 'postgres://owner:hidden@db/rows',
    REDIS_URL: 'redis://:hidden@cache',
    GAS_RPC_URLS: `${NETWORK}=https://me:hidden@node.example`,
    OTEL_EXPORTER_OTLP_HEADERS: 'key=hidden',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'key=hidden',
    WEBHOOK_SIGNING_SECRET: signing,
    WEBHOOK_SIGNING_SECRET_PREVIOUS: signing,
    AUDIT_SIGNING_KEY: pem.toString().trimEnd(),
    AUDIT_SIGNING_KEY_PREVIOUS: ED25519_KEY,
  };
  const secrets = [...SECRET_VARIABLES].map((name) => [name, special[name] ?? `${name} ${LONG}`] as const);
  await using folder = await emptyFolder();
  const login = { KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'me' };
  for (const [name, secret] of secrets) await writeFile(join(folder.path, name), secret + end);
  const files = Object.fromEntries(secrets.map(([name]) => [`${name}_FILE`, join(folder.path, name)]));
  const { env } = readConfig({ ...login, ...files });
  expect(env).toEqual(readConfig({ ...login, ...Object.fromEntries(secrets) }).env);
});

it('D1-04: a secret that is set twice, or whose file is unusable, is reported by name without its value', async () => {
  await using folder = await emptyFolder();
  const [bad, empty, short] = ['bad', 'empty', 'short'].map((name) => join(folder.path, name));
  await writeFile(bad ?? '', Buffer.from([0xff, 0xfe]));
  await writeFile(empty ?? '', '\n');
  await writeFile(short ?? '', 'hidden\n');
  const found = faults({
    NODE_ENV: 'production',
    SECRET_PEPPER: 'hidden'.repeat(6),
    SECRET_PEPPER_FILE: short,
    JWT_SECRET_USER_FILE: '/absent/secret',
    JWT_SECRET_LEGACY_FILE: folder.path,
    JWT_SECRET_DISCOVER_FILE: empty,
    WEBHOOK_PASSWORD_FILE: short,
    DATABASE_URL_FILE: bad,
    REDIS_URL_FILE: short,
  });
  expect(found.filter((fault) => !fault.includes('is missing'))).toEqual([
    expect.stringMatching(/^DATABASE_URL_FILE: \S+ cannot be read \(ERR_ENCODING_INVALID_ENCODED_DATA\)/),
    expect.stringMatching(/^JWT_SECRET_USER_FILE: \/absent\/secret cannot be read \(ENOENT\)/),
    `JWT_SECRET_DISCOVER_FILE: ${empty} is empty`,
    expect.stringMatching(/^JWT_SECRET_LEGACY_FILE: \S+ cannot be read \(EISDIR\)/),
    'SECRET_PEPPER and SECRET_PEPPER_FILE are both set: set only one',
    expect.stringMatching(/^REDIS_URL must be a URL/),
    'WEBHOOK_PASSWORD must have at least 16 characters in production',
  ]);
  expect(found.join()).not.toContain('hidden');
  for (const name of ['SECRET_PEPPER', 'JWT_SECRET_USER', 'DATABASE_URL']) {
    expect(found).not.toContain(`${name} is missing: production requires it`);
  }
});

it('D1-14: a role other than all requires the URLs of all three servers', () => {
  expect(faults({ PORTCULLIS_ROLE: 'worker', REDIS_URL: 'redis://cache' })).toEqual([
    'DATABASE_URL is missing: PORTCULLIS_ROLE=worker requires it',
    'KAFKA_BROKERS is missing: PORTCULLIS_ROLE=worker requires it',
  ]);
});

it('D1-04: conflicting variables are reported together with malformed ones', () => {
  const same = { JWT_SECRET_USER: LONG, JWT_SECRET_LEGACY: LONG };
  expect(faults({ PORT: 'x', KAFKA_SASL_MECHANISM: 'plain', ...same })).toEqual([
    'PORT must be a port number, 0 to 65535',
    'KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD must be set together',
    'JWT_SECRET_USER, JWT_SECRET_DISCOVER and JWT_SECRET_LEGACY must all be different',
  ]);
});

it('D1-04: a password that is not percent-encoded is one error, which says how to encode it and does not show it', () => {
  expect(faults({ DATABASE_URL: 'postgres://me:100%@db/rows' })).toEqual([
    'DATABASE_URL must be a URL whose parts are percent-encoded: % is %25',
  ]);
});

it.each([
  ['fifteen letters', ['WEBHOOK_PASSWORD must have at least 16 characters in production']],
  ['𝄞'.repeat(15), ['WEBHOOK_PASSWORD must have at least 16 characters in production']],
  ['sixteen letters!', []],
])('D1-04: production requires a webhook password of at least 16 characters: %j', (password, expected) => {
  const production = { NODE_ENV: 'production', WEBHOOK_PASSWORD: password, WEBHOOK_PASSWORD_PREVIOUS: 'short' };
  expect(faults(production).filter((fault) => !fault.includes('is missing'))).toEqual(expected);
  expect(faults({ ...production, NODE_ENV: 'test' })).toEqual([]);
});

it('no message contains the value of a secret', () => {
  const env = Object.fromEntries([...SECRET_VARIABLES].map((name) => [name, 'hunter2']));
  expect(faults(env).join('\n')).not.toContain('hunter2');
});

it('D1-04: by default production hides introspection and listens on every address', () => {
  const { config } = readConfig(PRODUCTION);
  expect(config).toMatchObject({
    production: true,
    host: '0.0.0.0',
    graphqlIntrospection: false,
    registrationByMutation: false,
  });
});

it.each([
  [{}, true],
  [{ REGISTRATION_BY_MUTATION: 'off' }, false],
  [{ REGISTRATION_BY_MUTATION: 'on' }, true],
])('D6-22: outside production %j allows registration by mutation: %s', (env, expected) => {
  expect(readConfig(env).config.registrationByMutation).toBe(expected);
});

/** Values that people copy from other products, and what the message must say. */
const COPIED: [name: string, value: string, told: string][] = [
  ...['1', '2', '0', '010.0.0.1', '0x7f000001', '127.1', '10.0.0.0/8,1'].map(
    (value) => ['TRUST_PROXY', value, 'not their number'] as [string, string, string],
  ),
  ['TRUST_PROXY', 'true', 'CIDR ranges'],
  ['TRUST_PROXY', '*', 'CIDR ranges'],
  ['TRUST_PROXY', '10.0.*.*', 'CIDR ranges'],
  ['TRUST_PROXY', '[::1]', 'CIDR ranges'],
  ['TRUST_PROXY', 'lb.internal', 'CIDR ranges'],
  ['CORS_ORIGINS', 'https://*.example.com', 'without a wildcard'],
  ['CORS_ORIGINS', 'https://app.example,https://*.example.com', 'without a wildcard'],
  ['CORS_ORIGINS', '*.example.com', 'without a wildcard'],
  ['CORS_ORIGINS', 'http://localhost:*', 'without a wildcard'],
  ['CORS_ORIGINS', 'https://*', 'without a wildcard'],
  ['CORS_ORIGINS', '**', 'without a wildcard'],
  ['CORS_ORIGINS', 'https://app.example/', 'such as https://app.example'],
  ['CORS_ORIGINS', 'https://app.example:443', 'a default port'],
  ['CORS_ORIGINS', 'app.example', 'such as https://app.example'],
  ['CORS_ORIGINS', 'https://a.example https://b.example', 'comma-separated'],
  ['CORS_ORIGINS', '["https://app.example"]', 'comma-separated'],
  ['KAFKA_BROKERS', 'PLAINTEXT://kafka:9092', 'without a scheme'],
  ['KAFKA_BROKERS', 'kafka://kafka:9092', 'without a scheme'],
  ['KAFKA_BROKERS', 'kafka:9092,SASL_SSL://kafka:9093', 'without a scheme'],
  ['KAFKA_BROKERS', 'kafka', 'host:port'],
  ['KAFKA_BROKERS', 'kafka:', 'host:port'],
  ['KAFKA_BROKERS', 'kafka:99999', 'host:port'],
  ['KAFKA_BROKERS', '::1:9092', 'in brackets'],
  ['KAFKA_BROKERS', '[::1]', 'in brackets'],
  ['KAFKA_BROKERS', '[kafka]:9092', 'in brackets'],
  ['KAFKA_BROKERS', '[127.0.0.1]:9092', 'in brackets'],
  ['KAFKA_BROKERS', 'kafka:9092/topic', 'host:port'],
  ['KAFKA_BROKERS', 'kafka:9092;kafka2:9092', 'comma-separated'],
  ['DATABASE_URL', 'jdbc:postgresql://db/rows', 'postgres:// or postgresql://'],
  ['DATABASE_URL', 'postgresql+asyncpg://db/rows', 'postgres:// or postgresql://'],
  ['DATABASE_URL', 'host=db dbname=rows', 'postgres:// or postgresql://'],
  ['REDIS_URL', 'cache:6379', 'redis:// or rediss://'],
  ['REDIS_URL', 'redis-sentinel://cache:26379', 'redis:// or rediss://'],
  ['LOG_LEVEL', 'INFO', 'one of fatal, error'],
  ['LOG_LEVEL', 'warning', 'one of fatal, error'],
  ['LOG_LEVEL', 'verbose', 'one of fatal, error'],
  ['PORT', ':4000', 'a port number'],
  ['PORT', '0.0.0.0:4000', 'a port number'],
  ['PORT', 'tcp://10.0.0.1:4000', 'a port number'],
  ['PUBLIC_URL', 'api.example.com', 'http:// or https://'],
  ['STATEMENT_TIMEOUT_MS', '10s', 'without a unit'],
  ['STATEMENT_TIMEOUT_MS', '10_000', 'a whole number'],
  ['MAX_CONNECTIONS', '20k', 'without a unit'],
  ['MAX_CONNECTIONS', 'unlimited', 'a whole number'],
  ['AUDIT_RETENTION_DAYS', '90d', 'a number of days'],
  ['OTEL_BSP_SCHEDULE_DELAY', '5s', 'without a unit'],
  ['OTEL_TRACES_SAMPLER_ARG', '10%', 'a number from 0 to 1'],
  ...['true', 'yes', '1', 'ON', 'enabled'].map((value) => ['CONSOLE', value, 'on or off'] as [string, string, string]),
  ...['on', 'yes', '1', 'TRUE'].map((value) => ['KAFKA_SSL', value, 'true or false'] as [string, string, string]),
  ['KAFKA_SASL_MECHANISM', 'SCRAM-SHA-512', 'one of plain'],
  ['GRAPHQL_PERSISTED', 'true', 'off, allow or only'],
  ...['PORT="4000"', "HOST='0.0.0.0'", 'LOG_LEVEL="info"', 'DATA_DIR=`.data`', 'PUBLIC_URL="https://a.example"'].map(
    (line) => [...line.split(/=(.*)/).slice(0, 2), 'has quotes or blanks around its value'] as [string, string, string],
  ),
  ...['HOST=0.0.0.0\r', 'PORT= 4000', 'DATA_DIR=.data ', 'OTEL_SERVICE_NAME=x\n', 'TOPIC_PREFIX=a. '].map(
    (line) =>
      [...line.split(/=(.*)/s).slice(0, 2), 'has quotes or blanks around its value'] as [string, string, string],
  ),
];

it.each(COPIED)('D1-04: %s=%j is one error, which says what to write', (name, value, told) => {
  const sasl = name === 'KAFKA_SASL_MECHANISM' ? { KAFKA_SASL_USERNAME: 'me', KAFKA_SASL_PASSWORD: 'x' } : {};
  expect(faults({ ...sasl, [name]: value })).toEqual([expect.stringContaining(told)]);
});

it.each<[name: keyof NodeJS.ProcessEnv, value: string, read: object]>([
  ['KAFKA_BROKERS', '[::1]:9092', { kafka: { brokers: ['[::1]:9092'] } }],
  [
    'KAFKA_BROKERS',
    '[2001:DB8::1]:9092, kafka-1.internal:9092',
    { kafka: { brokers: ['[2001:DB8::1]:9092', 'kafka-1.internal:9092'] } },
  ],
  [
    'TRUST_PROXY',
    '10.0.0.0/8, ::1, fd00::/8, uniquelocal',
    { trustProxy: ['10.0.0.0/8', '::1', 'fd00::/8', 'uniquelocal'] },
  ],
  ['TRUST_PROXY', '10.0.0.0/255.0.0.0', { trustProxy: ['10.0.0.0/255.0.0.0'] }],
  ['TRUST_PROXY', '0.0.0.0/1,::/1', { trustProxy: ['0.0.0.0/1', '::/1'] }],
  ['CORS_ORIGINS', '*', { corsOrigins: ['*'] }],
  [
    'CORS_ORIGINS',
    'https://a.example, http://localhost:3000',
    { corsOrigins: ['https://a.example', 'http://localhost:3000'] },
  ],
  ['DATABASE_URL', 'postgres://db/rows?sslmode=require', { databaseUrl: 'postgres://db/rows?sslmode=require' }],
])('D1-04: %s=%s is accepted and read as intended', (name, value, read) => {
  expect(readConfig({ [name]: value }).config).toMatchObject(read);
});

it('D1-04: a secret in quotes or blanks is used unchanged, with a warning that does not show it', () => {
  for (const secret of [`"${LONG}"`, `'${LONG}'`, `${LONG}\r`, ` ${LONG}`]) {
    const { env, warnings } = readConfig({ JWT_SECRET_USER: secret });
    expect(env.JWT_SECRET_USER).toBe(secret);
    expect(warnings).toEqual([expect.stringContaining('JWT_SECRET_USER has quotes or blanks around its value')]);
    expect(warnings.join()).not.toContain('xxx');
  }
  expect(readConfig({ JWT_SECRET_USER: `"${LONG}` }).warnings).toEqual([]);
});

it.each([
  ['a byte order mark', '\ufeff', ''],
  ['a byte order mark and LF', '\ufeff', '\n'],
  ['a byte order mark and CRLF', '\ufeff', '\r\n'],
])('D1-04: %s in the file of a secret is not part of it', async (_what, start, end) => {
  await using folder = await emptyFolder();
  const path = join(folder.path, 'secret');
  for (const name of ['JWT_SECRET_USER', 'SECRET_PEPPER', 'WEBHOOK_PASSWORD', 'DATABASE_URL'] as const) {
    const secret = name === 'DATABASE_URL' ? 'postgres://me:x@db/rows' : `é${LONG}`;
    await writeFile(path, start + secret + end);
    expect(readConfig({ [`${name}_FILE`]: path }).env[name]).toBe(secret);
  }
  await writeFile(path, start + end);
  expect(faults({ SECRET_PEPPER_FILE: path })).toEqual([`SECRET_PEPPER_FILE: ${path} is empty`]);
});

it('D1-04: a secret file in UTF-16, as PowerShell writes it, is rejected with the encoding to use', async () => {
  await using folder = await emptyFolder();
  const path = join(folder.path, 'secret');
  await writeFile(path, Buffer.from(`\ufeff${LONG}\r\n`, 'utf16le'));
  expect(faults({ SECRET_PEPPER_FILE: path })).toEqual([expect.stringContaining('text file in UTF-8')]);
});
