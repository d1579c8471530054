import { z } from 'zod';
import { GROUPS } from './variables.ts';

/** Every environment variable, one by one; what one means together with another is decided in `config.ts`. */
export const envSchema = z.object({
  ...GROUPS.process,
  ...GROUPS.stores,
  ...GROUPS.secrets,
  ...GROUPS.features,
  ...GROUPS.telemetry,
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
