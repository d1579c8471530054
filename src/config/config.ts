import { join, resolve } from 'node:path';
import type { z } from 'zod';
import { type Env, envSchema, REQUIRED_BY_ROLES, REQUIRED_IN_PRODUCTION } from './env.ts';

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

/** Where spans go, and which. */
export interface TracingConfig {
  /** The base of the collector's OTLP addresses. */
  endpoint: string;
  /** Sent with each batch: credentials, say. */
  headers: Readonly<Record<string, string>>;
  serviceName: string;
  /** The share of the traces that begin here; of others their beginning has decided. */
  ratio: number;
  /** How long a span waits for others to be sent with. */
  exportEveryMs: number;
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
  /** Of statements that a request waits for. */
  statementTimeoutMs: number;
  redisUrl: string | undefined;
  kafka: KafkaConfig | undefined;
  topicPrefix: string;
  dataDir: string;
  auditSpoolDir: string;
  gatewayConfigPath: string;
  /** Whether a notification must be signed, where a signing secret is set. */
  webhookSignature: Env['WEBHOOK_SIGNATURE'];
  maxSessions: number;
  /** Undefined: `/v1/discovers/**` is not registered. */
  discoversUpstreamUrl: string | undefined;
  /** The nodes that are asked what gas costs, by the id of their network. */
  gasNodes: ReadonlyMap<string, string>;
  trustProxy: string[];
  /** Of the public listener, at once. */
  maxConnections: number;
  corsOrigins: string[];
  /** Whether the mutation registers ids that their owner has not named. */
  registrationByMutation: boolean;
  graphqlIntrospection: boolean;
  graphqlMaxCost: number;
  graphqlPersisted: Env['GRAPHQL_PERSISTED'];
  /** Of the documents that ids stand for. */
  graphqlPersistedFile: string | undefined;
  auditRetentionDays: number;
  eventsRetentionDays: number;
  logLevel: Env['LOG_LEVEL'];
  /** Undefined: nothing is traced. */
  tracing: TracingConfig | undefined;
}

/** Nothing but its length holds up whoever guesses it: the webhook has no status for too many. */
const MIN_WEBHOOK_PASSWORD = 16;
const REPOSITORY = resolve(import.meta.dirname, '../..');

/**
 * Reads the environment into a frozen configuration.
 * @throws ConfigError that lists every missing or malformed variable.
 */
export function readConfig(env: NodeJS.ProcessEnv): { config: Config; env: Env } {
  const given = withoutEmpty(env);
  const parsed = envSchema.safeParse(given);
  const production = given.NODE_ENV === 'production';
  const faults = [
    ...(parsed.success ? [] : malformed(parsed.error)),
    ...missing(given, production),
    ...clashes(given, production),
  ];
  if (!parsed.success || faults.length > 0) throw new ConfigError(faults);
  return { config: Object.freeze(toConfig(parsed.data, production)), env: parsed.data };
}

type Given = Readonly<Record<string, string>>;

/** A variable that is set to nothing is one that is not set. */
function withoutEmpty(env: NodeJS.ProcessEnv): Given {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''),
  );
}

function malformed({ issues }: z.ZodError): string[] {
  return issues.map((issue) => `${issue.path.join('.')} must be ${issue.message}`);
}

function missing(given: Given, production: boolean): string[] {
  const role = given.PORTCULLIS_ROLE;
  const isShared = role === 'gateway' || role === 'worker';
  const reason = production ? 'production' : `PORTCULLIS_ROLE=${role}`;
  const required = production ? REQUIRED_IN_PRODUCTION : isShared ? REQUIRED_BY_ROLES : [];
  return required
    .filter((name) => given[name] === undefined)
    .map((name) => `${name} is missing: ${reason} requires it`);
}

function clashes(given: Given, production: boolean): string[] {
  const faults: string[] = [];
  const sasl = ['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'].map((name) => given[name]);
  if (new Set(sasl.map((part) => part === undefined)).size > 1) {
    faults.push('KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD must be set together');
  }
  const secrets = ['JWT_SECRET_USER', 'JWT_SECRET_DISCOVER', 'JWT_SECRET_LEGACY'].flatMap((name) => given[name] ?? []);
  if (new Set(secrets).size !== secrets.length) {
    faults.push('JWT_SECRET_USER, JWT_SECRET_DISCOVER and JWT_SECRET_LEGACY must all be different');
  }
  const { WEBHOOK_PASSWORD: password } = given;
  if (production && password !== undefined && [...password].length < MIN_WEBHOOK_PASSWORD) {
    faults.push(`WEBHOOK_PASSWORD must have at least ${MIN_WEBHOOK_PASSWORD} characters in production`);
  }
  if (given.WEBHOOK_SIGNING_SECRET === undefined) {
    if (given.WEBHOOK_SIGNATURE === 'required') faults.push('WEBHOOK_SIGNATURE=required needs WEBHOOK_SIGNING_SECRET');
    if (given.WEBHOOK_SIGNING_SECRET_PREVIOUS !== undefined) {
      faults.push('WEBHOOK_SIGNING_SECRET_PREVIOUS needs WEBHOOK_SIGNING_SECRET');
    }
  }
  const { GRAPHQL_PERSISTED: persisted = 'off', GRAPHQL_PERSISTED_FILE: file } = given;
  if (persisted === 'only' && file === undefined) faults.push('GRAPHQL_PERSISTED=only needs GRAPHQL_PERSISTED_FILE');
  if (persisted === 'off' && file !== undefined) {
    faults.push('GRAPHQL_PERSISTED_FILE needs GRAPHQL_PERSISTED to be allow or only');
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
    statementTimeoutMs: env.STATEMENT_TIMEOUT_MS,
    redisUrl: env.REDIS_URL,
    kafka: kafkaConfig(env),
    topicPrefix: env.TOPIC_PREFIX,
    dataDir,
    auditSpoolDir: env.AUDIT_SPOOL_DIR === undefined ? join(dataDir, 'audit') : resolve(env.AUDIT_SPOOL_DIR),
    gatewayConfigPath: gatewayConfigPath(env.GATEWAY_CONFIG),
    webhookSignature: env.WEBHOOK_SIGNATURE,
    maxSessions: env.MAX_SESSIONS,
    discoversUpstreamUrl: env.DISCOVERS_UPSTREAM_URL,
    gasNodes: new Map(env.GAS_RPC_URLS),
    trustProxy: env.TRUST_PROXY,
    maxConnections: env.MAX_CONNECTIONS,
    corsOrigins: env.CORS_ORIGINS,
    registrationByMutation: (env.REGISTRATION_BY_MUTATION ?? (production ? 'off' : 'on')) === 'on',
    graphqlIntrospection: env.GRAPHQL_INTROSPECTION === undefined ? !production : env.GRAPHQL_INTROSPECTION === 'on',
    graphqlMaxCost: env.GRAPHQL_MAX_COST,
    graphqlPersisted: env.GRAPHQL_PERSISTED,
    graphqlPersistedFile: env.GRAPHQL_PERSISTED_FILE && resolve(env.GRAPHQL_PERSISTED_FILE),
    auditRetentionDays: env.AUDIT_RETENTION_DAYS,
    eventsRetentionDays: env.EVENTS_RETENTION_DAYS,
    logLevel: env.LOG_LEVEL,
    tracing: tracingConfig(env),
  };
}

/** The path of the gateway's configuration: the one that is given, or the one of the repository. */
export function gatewayConfigPath(given: string | undefined): string {
  return given === undefined || given === '' ? join(REPOSITORY, 'gateway.yaml') : resolve(given);
}

function tracingConfig(env: Env): TracingConfig | undefined {
  if (env.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined;
  return {
    endpoint: env.OTEL_EXPORTER_OTLP_ENDPOINT,
    headers: env.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    serviceName: env.OTEL_SERVICE_NAME,
    ratio: env.OTEL_TRACES_SAMPLER_ARG,
    exportEveryMs: env.OTEL_BSP_SCHEDULE_DELAY,
  };
}

function kafkaConfig(env: Env): KafkaConfig | undefined {
  if (env.KAFKA_BROKERS === undefined) return undefined;
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = env;
  const sasl = mechanism && username && password ? { mechanism, username, password } : undefined;
  return { brokers: env.KAFKA_BROKERS, ssl: env.KAFKA_SSL, sasl };
}
