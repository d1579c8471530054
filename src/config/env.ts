import proxyAddr from 'proxy-addr';
import { z } from 'zod';
import { SIGNING_SECRET_FORM, signingKey } from '../lib/signing-secret.ts';

const SECRET_BYTES = 32;

const text = z.string().min(1);
const port = integer(0, 65_535, 'a port number, 0 to 65535');
const atLeastOne = integer(1, 2 ** 31 - 1, 'a whole number, at least 1');
const days = integer(1, 36_500, 'a number of days, 1 to 36500');
const list = text.transform((value) =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);
const flag = z.enum(['true', 'false'], 'true or false').transform((value) => value === 'true');
const secret = z.string().refine((value) => Buffer.byteLength(value) >= SECRET_BYTES, `at least ${SECRET_BYTES} bytes`);
const signingSecret = z.string().refine((value) => signingKey(value) !== undefined, SIGNING_SECRET_FORM);
const httpUrl = z
  .url({ protocol: /^https?$/, error: 'a URL that begins with http:// or https://' })
  .refine((url) => !/[?#]/.test(url), 'a URL without a query or a fragment')
  .transform((url) => url.replace(/\/+$/, ''));
const brokers = list.refine((hosts) => hosts.length > 0 && hosts.every((host) => /^[^\s:]+:\d+$/.test(host)), {
  error: 'a comma-separated list of host:port',
});
const peers = list.refine(isPeerList, {
  error: 'a comma-separated list of addresses, networks, loopback, linklocal or uniquelocal',
});
const origins = list.refine((all) => all.length > 0 && all.every(isOrigin), {
  error: '*, or a comma-separated list of origins such as https://app.example',
});

function integer(minimum: number, maximum: number, what: string) {
  return z
    .string()
    .regex(/^\d{1,10}$/, what)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, what);
}

function isNodeUrl(text: string): boolean {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) return false;
  try {
    decodeURIComponent(url.username + url.password);
    return true;
  } catch {
    return false;
  }
}

function isPeerList(all: string[]): boolean {
  try {
    proxyAddr.compile(all);
    return true;
  } catch {
    return false;
  }
}

function isOrigin(text: string): boolean {
  return text === '*' || (URL.canParse(text) && new URL(text).origin === text);
}

const gasNodes = z.string().transform((text, context) => {
  // A URL may hold a comma: only one before another id and its = parts two entries.
  const entries = text.split(/,(?=\s*[0-9a-f-]{36}=)/i).map((entry) => /^\s*([^=]*)=(.*?)\s*$/.exec(entry));
  const nodes = entries.map((entry) => [entry?.[1]?.toLowerCase() ?? '', entry?.[2] ?? ''] as const);
  const isRight = nodes.every(([id, url]) => z.guid().safeParse(id).success && isNodeUrl(url));
  if (isRight && new Set(nodes.map(([id]) => id)).size === nodes.length) return nodes;
  context.addIssue('a comma-separated list of network_id=url, each network once, each URL http:// or https://');
  return z.NEVER;
});

const otlpHeaders = z.string().transform((text, context) => {
  const pairs = text.split(',').map((part) => /^\s*([\w!#$%&'*+.^`|~-]+)=(.*?)\s*$/.exec(part));
  try {
    if (pairs.every((pair) => pair !== null)) {
      return Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, decodeURIComponent(value)]));
    }
  } catch {
    // Told as any other fault.
  }
  context.addIssue('a comma-separated list of name=value, the values percent-encoded');
  return z.NEVER;
});

/** Every environment variable, one by one; what one means together with another is decided in `config.ts`. */
export const envSchema = z.object({
  NODE_ENV: z.string().optional(),
  HOST: text.optional(),
  PORT: port.default(4000),
  ADMIN_PORT: port.default(4001),
  PUBLIC_URL: httpUrl.optional(),
  PORTCULLIS_ROLE: z.enum(['all', 'gateway', 'worker'], 'one of all, gateway, worker').default('all'),
  DATABASE_URL: z
    .url({ protocol: /^postgres(ql)?$/, error: 'a URL that begins with postgres:// or postgresql://' })
    .optional(),
  REDIS_URL: z.url({ protocol: /^rediss?$/, error: 'a URL that begins with redis:// or rediss://' }).optional(),
  KAFKA_BROKERS: brokers.optional(),
  KAFKA_SSL: flag.default(false),
  KAFKA_SASL_MECHANISM: z
    .enum(['plain', 'scram-sha-256', 'scram-sha-512'], 'one of plain, scram-sha-256, scram-sha-512')
    .optional(),
  KAFKA_SASL_USERNAME: text.optional(),
  KAFKA_SASL_PASSWORD: text.optional(),
  TOPIC_PREFIX: z
    .string()
    .regex(/^[a-zA-Z0-9._-]*$/, 'letters, digits, dot, dash and underscore')
    .default(''),
  DATA_DIR: text.default('.data'),
  AUDIT_SPOOL_DIR: text.optional(),
  GATEWAY_CONFIG: text.optional(),
  JWT_SECRET_USER: secret.optional(),
  JWT_SECRET_USER_PREVIOUS: secret.optional(),
  JWT_SECRET_DISCOVER: secret.optional(),
  JWT_SECRET_DISCOVER_PREVIOUS: secret.optional(),
  JWT_SECRET_LEGACY: secret.optional(),
  JWT_SECRET_LEGACY_PREVIOUS: secret.optional(),
  SECRET_PEPPER: secret.optional(),
  SECRET_PEPPER_PREVIOUS: secret.optional(),
  WEBHOOK_USERNAME: text.regex(/^[^:]*$/, 'without a colon (RFC 7617)').optional(),
  WEBHOOK_PASSWORD: text.optional(),
  WEBHOOK_PASSWORD_PREVIOUS: text.optional(),
  WEBHOOK_SIGNING_SECRET: signingSecret.optional(),
  WEBHOOK_SIGNING_SECRET_PREVIOUS: signingSecret.optional(),
  WEBHOOK_SIGNATURE: z.enum(['optional', 'required'], 'optional or required').default('optional'),
  MAX_SESSIONS: atLeastOne.default(1000),
  DISCOVERS_UPSTREAM_URL: httpUrl.optional(),
  TRUST_PROXY: peers.default(['loopback']),
  CORS_ORIGINS: origins.default(['*']),
  GAS_RPC_URLS: gasNodes.optional(),
  AUDIT_RETENTION_DAYS: days.default(90),
  EVENTS_RETENTION_DAYS: days.default(30),
  GRAPHQL_INTROSPECTION: z.enum(['on', 'off'], 'on or off').optional(),
  GRAPHQL_MAX_COST: atLeastOne.default(5000),
  GRAPHQL_PERSISTED: z.enum(['off', 'allow', 'only'], 'off, allow or only').default('off'),
  GRAPHQL_PERSISTED_FILE: text.optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
  OTEL_EXPORTER_OTLP_HEADERS: otlpHeaders.optional(),
  OTEL_SERVICE_NAME: text.default('portcullis'),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .regex(/^(0(\.\d{1,6})?|1(\.0{1,6})?)$/, 'a number from 0 to 1')
    .transform(Number)
    .default(1),
  OTEL_BSP_SCHEDULE_DELAY: atLeastOne.default(5000),
  LOG_LEVEL: z
    .enum(
      ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
      'one of fatal, error, warn, info, debug, trace, silent',
    )
    .default('info'),
});

export type Env = z.output<typeof envSchema>;

/** Variables that production requires, beside those that the embedded run has a default for. */
export const REQUIRED_IN_PRODUCTION = [
  'PUBLIC_URL',
  'DATABASE_URL',
  'REDIS_URL',
  'KAFKA_BROKERS',
  'JWT_SECRET_USER',
  'JWT_SECRET_DISCOVER',
  'JWT_SECRET_LEGACY',
  'SECRET_PEPPER',
  'WEBHOOK_USERNAME',
  'WEBHOOK_PASSWORD',
] as const satisfies readonly (keyof Env)[];

/** Variables that the roles gateway and worker require: they share the work of one instance. */
export const REQUIRED_BY_ROLES = [
  'DATABASE_URL',
  'REDIS_URL',
  'KAFKA_BROKERS',
] as const satisfies readonly (keyof Env)[];

/** Variables that hold a secret: their values are in no message, log or listing. */
export const SECRET_VARIABLES: ReadonlySet<string> = new Set([
  'DATABASE_URL',
  'REDIS_URL',
  'KAFKA_SASL_PASSWORD',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'GAS_RPC_URLS',
  'JWT_SECRET_USER',
  'JWT_SECRET_USER_PREVIOUS',
  'JWT_SECRET_DISCOVER',
  'JWT_SECRET_DISCOVER_PREVIOUS',
  'JWT_SECRET_LEGACY',
  'JWT_SECRET_LEGACY_PREVIOUS',
  'SECRET_PEPPER',
  'SECRET_PEPPER_PREVIOUS',
  'WEBHOOK_PASSWORD',
  'WEBHOOK_PASSWORD_PREVIOUS',
  'WEBHOOK_SIGNING_SECRET',
  'WEBHOOK_SIGNING_SECRET_PREVIOUS',
]);
