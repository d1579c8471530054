import { join, resolve } from 'node:path';
import { type Env, envSchema, REQUIRED_IN_PRODUCTION } from './env.ts';

/** A start that cannot be: every fault at once, each naming its variable or place and what to change. Exit 78. */
export class ConfigError extends Error {
  override name = 'ConfigError';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.faults = faults;
  }
}

export interface KafkaConfig {
  brokers: string[];
  ssl: boolean;
  sasl: { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string } | undefined;
}

/** The resolved, frozen configuration; secrets stand apart in `secrets.ts`. */
export interface Config {
  production: boolean;
  host: string;
  /** 0 takes a free port. */
  port: number;
  adminPort: number;
  /** Undefined: `http://host:port` as listened on. */
  publicUrl: string | undefined;
  role: 'all' | 'gateway' | 'worker';
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  kafka: KafkaConfig | undefined;
  topicPrefix: string;
  dataDir: string;
  auditSpoolDir: string;
  gatewayConfigPath: string;
  maxSessions: number;
  trustProxy: string[];
  corsOrigins: string[];
  graphqlIntrospection: boolean;
  graphqlMaxCost: number;
  auditRetentionDays: number;
  eventsRetentionDays: number;
  logLevel: Env['LOG_LEVEL'];
}

const REPOSITORY = resolve(import.meta.dirname, '../..');

/**
 * Reads the environment into a frozen configuration.
 * @throws ConfigError that lists every missing or malformed variable.
 */
export function readConfig(env: NodeJS.ProcessEnv): { config: Config; env: Env } {
  const parsed = envSchema.safeParse(withoutEmpty(env));
  const production = env.NODE_ENV === 'production';
  const faults = parsed.success
    ? []
    : parsed.error.issues.map((issue) => `${issue.path.join('.')} must be ${issue.message}`);
  if (production) {
    for (const name of REQUIRED_IN_PRODUCTION)
      if (!env[name]) faults.push(`${name} is missing: production requires it`);
  }
  if (parsed.success) faults.push(...faultsBetween(parsed.data));
  if (!parsed.success || faults.length > 0) throw new ConfigError(faults);
  return { config: Object.freeze(toConfig(parsed.data, production)), env: parsed.data };
}

function withoutEmpty(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''),
  );
}

function faultsBetween(env: Env): string[] {
  const faults: string[] = [];
  const sasl = [env.KAFKA_SASL_MECHANISM, env.KAFKA_SASL_USERNAME, env.KAFKA_SASL_PASSWORD];
  if (sasl.some((part) => part !== undefined) && sasl.some((part) => part === undefined)) {
    faults.push('KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD must be set together');
  }
  const jwtSecrets = [env.JWT_SECRET_USER, env.JWT_SECRET_DISCOVER, env.JWT_SECRET_LEGACY].filter(
    (s) => s !== undefined,
  );
  if (new Set(jwtSecrets).size !== jwtSecrets.length) {
    faults.push('JWT_SECRET_USER, JWT_SECRET_DISCOVER and JWT_SECRET_LEGACY must all be different');
  }
  if (env.PORTCULLIS_ROLE !== 'all') {
    for (const name of ['DATABASE_URL', 'REDIS_URL', 'KAFKA_BROKERS'] as const) {
      if (env[name] === undefined)
        faults.push(`${name} is missing: PORTCULLIS_ROLE=${env.PORTCULLIS_ROLE} requires it`);
    }
  }
  return faults;
}

function toConfig(env: Env, production: boolean): Config {
  const dataDir = resolve(env.DATA_DIR);
  return {
    production,
    host: env.HOST ?? (production ? '0.0.0.0' : '127.0.0.1'),
    port: env.PORT,
    adminPort: env.ADMIN_PORT,
    publicUrl: env.PUBLIC_URL,
    role: env.PORTCULLIS_ROLE,
    databaseUrl: env.DATABASE_URL,
    redisUrl: env.REDIS_URL,
    kafka: kafkaConfig(env),
    topicPrefix: env.TOPIC_PREFIX,
    dataDir,
    auditSpoolDir: env.AUDIT_SPOOL_DIR === undefined ? join(dataDir, 'audit') : resolve(env.AUDIT_SPOOL_DIR),
    gatewayConfigPath:
      env.GATEWAY_CONFIG === undefined ? join(REPOSITORY, 'gateway.yaml') : resolve(env.GATEWAY_CONFIG),
    maxSessions: env.MAX_SESSIONS,
    trustProxy: env.TRUST_PROXY,
    corsOrigins: env.CORS_ORIGINS,
    graphqlIntrospection: env.GRAPHQL_INTROSPECTION === undefined ? !production : env.GRAPHQL_INTROSPECTION === 'on',
    graphqlMaxCost: env.GRAPHQL_MAX_COST,
    auditRetentionDays: env.AUDIT_RETENTION_DAYS,
    eventsRetentionDays: env.EVENTS_RETENTION_DAYS,
    logLevel: env.LOG_LEVEL,
  };
}

function kafkaConfig(env: Env): KafkaConfig | undefined {
  if (env.KAFKA_BROKERS === undefined) return undefined;
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = env;
  const sasl = mechanism && username && password ? { mechanism, username, password } : undefined;
  return { brokers: env.KAFKA_BROKERS, ssl: env.KAFKA_SSL, sasl };
}
