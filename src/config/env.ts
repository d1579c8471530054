import { z } from 'zod';

const SECRET_BYTES = 32;

const text = z.string().min(1);
const port = z.coerce
  .number('a port number, 0 to 65535')
  .int('a whole number')
  .min(0, 'at least 0')
  .max(65_535, 'at most 65535');
const days = z.coerce.number('a number of days').int('a whole number').min(1, 'at least 1');
const list = text.transform((value) =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);
const flag = z.enum(['true', 'false'], 'true or false').transform((value) => value === 'true');
const secret = z.string().refine((value) => Buffer.byteLength(value) >= SECRET_BYTES, `at least ${SECRET_BYTES} bytes`);
const httpUrl = z
  .url({ protocol: /^https?$/, error: 'a URL that begins with http:// or https://' })
  .transform(withoutSlash);
const brokers = list.refine((hosts) => hosts.length > 0 && hosts.every((host) => /^[^\s:]+:\d+$/.test(host)), {
  error: 'a comma-separated list of host:port',
});

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}

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
  WEBHOOK_USERNAME: text.optional(),
  WEBHOOK_PASSWORD: text.optional(),
  WEBHOOK_PASSWORD_PREVIOUS: text.optional(),
  MAX_SESSIONS: z.coerce.number('a number').int('a whole number').min(1, 'at least 1').default(1000),
  TRUST_PROXY: list.default(['loopback']),
  CORS_ORIGINS: list.default(['*']),
  AUDIT_RETENTION_DAYS: days.default(90),
  EVENTS_RETENTION_DAYS: days.default(30),
  GRAPHQL_INTROSPECTION: z.enum(['on', 'off'], 'on or off').optional(),
  GRAPHQL_MAX_COST: z.coerce.number('a number').int('a whole number').min(1, 'at least 1').default(5000),
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

/** Variables that hold a secret: their values are in no message, log or listing. */
export const SECRET_VARIABLES: ReadonlySet<string> = new Set([
  'DATABASE_URL',
  'REDIS_URL',
  'KAFKA_SASL_PASSWORD',
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
]);
