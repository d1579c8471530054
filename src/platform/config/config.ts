import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { respelt } from '../../lib/spelling.ts';
import { DEFAULT_ADMIN_PORT, DEFAULT_PORT, GROUPS } from './variables.ts';

/** The schema of each environment variable; `readConfig` checks how they fit together. */
export const envSchema = z.object({
  ...GROUPS.process,
  ...GROUPS.stores,
  ...GROUPS.secrets,
  ...GROUPS.features,
  ...GROUPS.telemetry,
});

export type Env = z.output<typeof envSchema>;

/** The variables that are required in production, although an embedded run has defaults for them. */
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

/** The variables that the roles `gateway` and `worker` require, since their processes share the stores. */
export const REQUIRED_BY_ROLES = [
  'DATABASE_URL',
  'REDIS_URL',
  'KAFKA_BROKERS',
] as const satisfies readonly (keyof Env)[];

/**
 * The variables that contain a secret, which no message, log or listing may show. Each may be in a file instead, which
 * the variable of the same name and `_FILE` names.
 */
export const SECRET_VARIABLES: ReadonlySet<string> = new Set([
  'DATABASE_URL',
  'MIGRATE_DATABASE_URL',
  'REDIS_URL',
  'KAFKA_SASL_PASSWORD',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
  'GAS_RPC_URLS',
  'JWT_SECRET_USER',
  'JWT_SECRET_USER_PREVIOUS',
  'JWT_SECRET_DISCOVER',
  'JWT_SECRET_DISCOVER_PREVIOUS',
  'JWT_SECRET_LEGACY',
  'JWT_SECRET_LEGACY_PREVIOUS',
  'SECRET_PEPPER',
  'SECRET_PEPPER_PREVIOUS',
  'AUDIT_SIGNING_KEY',
  'AUDIT_SIGNING_KEY_PREVIOUS',
  'WEBHOOK_PASSWORD',
  'WEBHOOK_PASSWORD_PREVIOUS',
  'WEBHOOK_SIGNING_SECRET',
  'WEBHOOK_SIGNING_SECRET_PREVIOUS',
]);

/** The names of all variables that are read. */
const NAMES = [...envSchema.keyof().options, ...Array.from(SECRET_VARIABLES, (name) => `${name}_FILE`)];

/**
 * Thrown when the configuration prevents a start; the process exits with 78. It lists everything that is wrong, each
 * with the variable or place and what to change.
 */
export class ConfigError extends Error {
  override name = 'ConfigError';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.faults = faults;
  }
}

/** The resolved, frozen configuration, without the secrets that `readSecrets` returns. */
export type Config = ReturnType<typeof toConfig>;

/** Where spans are exported to, and which of them. */
export type TracingConfig = NonNullable<Config['tracing']>;

/**
 * The shortest webhook password that production accepts, in characters. Only its length protects it from guessing,
 * since the webhook has no status for too many attempts.
 */
const MIN_WEBHOOK_PASSWORD = 16;
const REPOSITORY = resolve(import.meta.dirname, '../../..');

/** What the environment says. */
export interface ReadConfig {
  config: Config;
  env: Env;
  /** The texts of the variables that are set, secrets from files included. */
  variables: SetVariables;
  /**
   * A message for each variable that is not read, although its name is likely for one that is, and for each whose
   * absence the operator should know of.
   */
  warnings: readonly string[];
}

/**
 * Reads the environment into a frozen configuration.
 * @throws ConfigError that lists every missing, malformed or contradictory variable, and the warnings.
 */
export function readConfig(env: NodeJS.ProcessEnv): ReadConfig {
  const faults: string[] = [];
  const variables = variablesIn(env, faults);
  const result = envSchema.safeParse(variables);
  const enclosed = NAMES.filter((name) => ENCLOSED.test(variables[name] ?? ''));
  const plain = enclosed.filter((name) => !SECRET_VARIABLES.has(name));
  const production = variables.NODE_ENV === 'production';
  faults.push(
    ...(result.error?.issues ?? []).flatMap(({ path, message }) => {
      const name = path.join('.');
      return plain.includes(name) ? [] : `${name} must be ${message}`;
    }),
    ...plain.map(enclosedFault),
    ...missing(variables, production),
    ...clashes(variables, production),
  );
  const misspellings = [
    ...misspelt(Object.keys(env)),
    ...enclosed.filter((name) => !plain.includes(name)).map(enclosedFault),
  ];
  if (!result.success || faults.length > 0) throw new ConfigError([...faults, ...misspellings]);
  const isSyncUnsafe = variables.AUDIT_SYNC === 'on' && variables.DATABASE_URL === undefined;
  const syncWarning =
    'AUDIT_SYNC=on needs a DATABASE_URL: the embedded database may lose audit records with the machine';
  const warnings = [
    ...misspellings,
    ...(production ? unsealed(variables) : []),
    ...(isSyncUnsafe ? [syncWarning] : []),
  ];
  return { config: Object.freeze(toConfig(result.data, production)), env: result.data, variables, warnings };
}

type SetVariables = Readonly<NodeJS.ProcessEnv>;

/**
 * Returns the variables that are set; one with an empty value counts as unset. A secret that could not be read from its
 * file is a member without a value, and its reason is added to `faults`.
 */
function variablesIn(env: NodeJS.ProcessEnv, faults: string[]): SetVariables {
  const set = Object.keys(env).filter((name) => env[name]);
  const secrets = [...SECRET_VARIABLES].filter((name) => env[name] || env[`${name}_FILE`]);
  return Object.fromEntries([
    ...set.map((name) => [name, env[name]]),
    ...secrets.map((name) => [name, secretOf(name, env, faults)]),
  ]);
}

/** Likely mistaken names and the variables that they mean: other products use them, or they suggest themselves. */
const LIKELY: Readonly<Record<string, string>> = {
  GATEWAY_FILE: 'GATEWAY_CONFIG',
  GATEWAY_YAML: 'GATEWAY_CONFIG',
  GATEWAY_CONFIG_FILE: 'GATEWAY_CONFIG',
  POSTGRES_URL: 'DATABASE_URL',
  DATABASE_URI: 'DATABASE_URL',
  REDIS_URI: 'REDIS_URL',
  KAFKA_BROKER: 'KAFKA_BROKERS',
  KAFKA_BOOTSTRAP_SERVERS: 'KAFKA_BROKERS',
  JWT_SECRET: 'JWT_SECRET_USER',
  WEBHOOK_USER: 'WEBHOOK_USERNAME',
  WEBHOOK_SECRET: 'WEBHOOK_SIGNING_SECRET',
  CORS_ORIGIN: 'CORS_ORIGINS',
  TRUSTED_PROXIES: 'TRUST_PROXY',
};

const TRACES = 'docs/configuration.md#traces';

function misspelt(names: readonly string[]): string[] {
  return names.flatMap((name) => {
    const suggestion = respelt(name, NAMES) ?? LIKELY[respelt(name, Object.keys(LIKELY)) ?? ''];
    if (suggestion !== undefined) return suggestion === name ? [] : `${name} is unknown: did you mean ${suggestion}?`;
    return name.startsWith('OTEL_') ? `${name} is not read: ${TRACES} lists the OTEL_ variables that are` : [];
  });
}

/** Matches a value that has come with the quotes or the line ends of an environment file. */
const ENCLOSED = /^(["'`]).*\1$|^\s|\s$/s;

function enclosedFault(name: string): string {
  return `${name} has quotes or blanks around its value, which are part of it: remove them`;
}

/** Returns a message for each variable without which the audit shows less tampering. */
function unsealed(variables: SetVariables): string[] {
  const risks = {
    AUDIT_SIGNING_KEY:
      'anyone who can write to the database can change audit records and their seals without detection',
    AUDIT_CHECKPOINTS: 'anyone who can write to the database can delete the latest audit records without detection',
  };
  return Object.entries(risks).flatMap(([name, risk]) => (name in variables ? [] : `${name} is not set: ${risk}`));
}

function missing(variables: SetVariables, production: boolean): string[] {
  const role = variables.PORTCULLIS_ROLE;
  const isShared = role === 'gateway' || role === 'worker';
  const reason = production ? 'production' : `PORTCULLIS_ROLE=${role}`;
  const required = production ? REQUIRED_IN_PRODUCTION : isShared ? REQUIRED_BY_ROLES : [];
  return required.filter((name) => !(name in variables)).map((name) => `${name} is missing: ${reason} requires it`);
}

/** Returns a message for each conflict between variables that are each valid. */
function clashes(variables: SetVariables, production: boolean): string[] {
  const { WEBHOOK_PASSWORD: password, GRAPHQL_PERSISTED: persisted = 'off', PORTCULLIS_ROLE: role } = variables;
  const [port, adminPort] = [variables.PORT ?? DEFAULT_PORT, variables.ADMIN_PORT ?? DEFAULT_ADMIN_PORT].map(Number);
  const isSet = (name: keyof Env) => variables[name] !== undefined;
  const sasl = (['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'] as const).filter(isSet);
  const jwtSecrets = ['JWT_SECRET_USER', 'JWT_SECRET_DISCOVER', 'JWT_SECRET_LEGACY'].flatMap(
    (name) => variables[name] ?? [],
  );
  const all: [isClash: boolean, message: string][] = [
    [
      role !== 'worker' && port !== 0 && port === adminPort,
      `PORT and ADMIN_PORT must differ: both are ${port}, and both listeners bind to HOST`,
    ],
    [
      variables.REUSE_PORT === 'on' && (port === 0 || !isSet('DATABASE_URL')),
      'REUSE_PORT=on needs a PORT other than 0, and a DATABASE_URL: only one process can open the embedded database',
    ],
    [sasl.length % 3 !== 0, 'KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD must be set together'],
    [
      new Set(jwtSecrets).size !== jwtSecrets.length,
      'JWT_SECRET_USER, JWT_SECRET_DISCOVER and JWT_SECRET_LEGACY must all be different',
    ],
    [
      production && password !== undefined && [...password].length < MIN_WEBHOOK_PASSWORD,
      `WEBHOOK_PASSWORD must have at least ${MIN_WEBHOOK_PASSWORD} characters in production`,
    ],
    [
      isSet('MIGRATE_DATABASE_URL') && !isSet('DATABASE_URL'),
      'MIGRATE_DATABASE_URL needs DATABASE_URL: the embedded database has one role',
    ],
    [
      variables.AUDIT_CHECKPOINTS?.startsWith('kafka:') === true && !isSet('KAFKA_BROKERS'),
      'AUDIT_CHECKPOINTS=kafka:… needs KAFKA_BROKERS',
    ],
    [
      isSet('AUDIT_SIGNING_KEY_PREVIOUS') && !isSet('AUDIT_SIGNING_KEY'),
      'AUDIT_SIGNING_KEY_PREVIOUS needs AUDIT_SIGNING_KEY',
    ],
    [
      variables.WEBHOOK_SIGNATURE === 'required' && !isSet('WEBHOOK_SIGNING_SECRET'),
      'WEBHOOK_SIGNATURE=required needs WEBHOOK_SIGNING_SECRET',
    ],
    [
      isSet('WEBHOOK_SIGNING_SECRET_PREVIOUS') && !isSet('WEBHOOK_SIGNING_SECRET'),
      'WEBHOOK_SIGNING_SECRET_PREVIOUS needs WEBHOOK_SIGNING_SECRET',
    ],
    [
      persisted === 'only' && !isSet('GRAPHQL_PERSISTED_FILE') && variables.CONSOLE !== 'on',
      'GRAPHQL_PERSISTED=only needs GRAPHQL_PERSISTED_FILE',
    ],
    [
      persisted === 'off' && isSet('GRAPHQL_PERSISTED_FILE'),
      'GRAPHQL_PERSISTED_FILE needs GRAPHQL_PERSISTED to be allow or only',
    ],
  ];
  return all.filter(([isClash]) => isClash).map(([, message]) => message);
}

function toConfig(env: Env, production: boolean) {
  const dataDir = resolve(env.DATA_DIR);
  return {
    production,
    host: env.HOST ?? (production ? '0.0.0.0' : '127.0.0.1'),
    /** The port of the public listener; 0 means any free port. */
    port: env.PORT,
    /** Whether other processes on this machine may listen on the public port too. */
    reusePort: env.REUSE_PORT === 'on',
    adminPort: env.ADMIN_PORT,
    /** The base URL that clients use; undefined means `http://host:port` of the public listener. */
    publicUrl: env.PUBLIC_URL,
    role: env.PORTCULLIS_ROLE,
    databaseUrl: env.DATABASE_URL,
    /** The URL by which the owner of the tables migrates; undefined means `databaseUrl`. */
    migrateDatabaseUrl: env.MIGRATE_DATABASE_URL,
    /** The longest duration of a statement that a request waits for, in milliseconds. */
    statementTimeoutMs: env.STATEMENT_TIMEOUT_MS,
    redisUrl: env.REDIS_URL,
    kafka: kafkaConfig(env),
    topicPrefix: env.TOPIC_PREFIX,
    dataDir,
    auditSpoolDir: env.AUDIT_SPOOL_DIR === undefined ? join(dataDir, 'audit') : resolve(env.AUDIT_SPOOL_DIR),
    /** Whether the end of a response waits until the disk has its audit record. */
    auditSync: env.AUDIT_SYNC === 'on',
    /** Where seals of the audit are kept outside the database: a file's path or a topic; undefined means nowhere. */
    auditCheckpoints: checkpointsOf(env.AUDIT_CHECKPOINTS),
    gatewayConfigPath: gatewayConfigPath(env.GATEWAY_CONFIG),
    /**
     * Whether a notification must be signed, if a signing secret is set; `optional` accepts unsigned ones, but no wrong
     * signature.
     */
    webhookSignature: env.WEBHOOK_SIGNATURE,
    maxSessions: env.MAX_SESSIONS,
    /** The URL of the service behind `/v1/discovers/**`; undefined means that this path is not registered. */
    discoversUpstreamUrl: env.DISCOVERS_UPSTREAM_URL,
    /** The URLs of the RPC providers that are asked for gas fees, by the id of their network. */
    gasNodes: new Map(env.GAS_RPC_URLS),
    trustProxy: env.TRUST_PROXY,
    /** The most connections that the public listener accepts at once. */
    maxConnections: env.MAX_CONNECTIONS,
    corsOrigins: env.CORS_ORIGINS,
    /** Whether the mutation `registerTransaction` may register ids that their owner has not registered. */
    registrationByMutation: (env.REGISTRATION_BY_MUTATION ?? (production ? 'off' : 'on')) === 'on',
    graphqlIntrospection: env.GRAPHQL_INTROSPECTION === undefined ? !production : env.GRAPHQL_INTROSPECTION === 'on',
    /** Whether the console is served. */
    console: (env.CONSOLE ?? (env.DATABASE_URL === undefined ? 'on' : 'off')) === 'on',
    /** Whether frequent GraphQL queries run as compiled code. */
    graphqlJit: env.GRAPHQL_JIT === 'on',
    graphqlMaxCost: env.GRAPHQL_MAX_COST,
    graphqlPersisted: env.GRAPHQL_PERSISTED,
    /** The path of the file that lists the persisted GraphQL documents. */
    graphqlPersistedFile: env.GRAPHQL_PERSISTED_FILE && resolve(env.GRAPHQL_PERSISTED_FILE),
    auditRetentionDays: env.AUDIT_RETENTION_DAYS,
    auditMaskedNames: env.AUDIT_MASKED_NAMES,
    eventsRetentionDays: env.EVENTS_RETENTION_DAYS,
    logLevel: env.LOG_LEVEL,
    /** Undefined means that nothing is traced. */
    tracing: tracingConfig(env),
  };
}

/** Returns the path of the gateway's configuration: the given one, or else `gateway.yaml` in the repository. */
export function gatewayConfigPath(path: string | undefined): string {
  return path === undefined || path === '' ? join(REPOSITORY, 'gateway.yaml') : resolve(path);
}

function checkpointsOf(setting: string | undefined) {
  const destination = setting?.slice(setting.indexOf(':') + 1);
  if (destination === undefined) return undefined;
  return setting?.startsWith('file:') ? { file: resolve(destination) } : { topic: destination };
}

function tracingConfig(env: Env) {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url = base && `${base}/v1/traces` } =
    env;
  if (url === undefined) return undefined;
  const { 'service.name': namedThere = 'portcullis', ...attributes } = env.OTEL_RESOURCE_ATTRIBUTES ?? {};
  return {
    /** The URL of each export. */
    url,
    /** The HTTP headers of each export, such as credentials. */
    headers: { ...env.OTEL_EXPORTER_OTLP_HEADERS, ...env.OTEL_EXPORTER_OTLP_TRACES_HEADERS },
    timeoutMs: env.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ?? env.OTEL_EXPORTER_OTLP_TIMEOUT,
    serviceName: env.OTEL_SERVICE_NAME ?? namedThere,
    /** Further attributes of the process. */
    attributes,
    /** Whether the SDK makes the sampler that its variable names. */
    isSamplerNamed: env.OTEL_TRACES_SAMPLER !== undefined,
    /**
     * The fraction of traces to record, 0 to 1, among those that begin here; all others follow the decision made where
     * they began.
     */
    ratio: env.OTEL_TRACES_SAMPLER_ARG,
    /** How long a span waits to be exported together with others, and how long its export may take, in milliseconds. */
    exportEveryMs: env.OTEL_BSP_SCHEDULE_DELAY,
    exportTimeoutMs: env.OTEL_BSP_EXPORT_TIMEOUT,
    /** The most spans that wait to be exported, and of one export. */
    maxWaiting: env.OTEL_BSP_MAX_QUEUE_SIZE,
    maxBatch: env.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
    maxCharacters: env.OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT ?? env.OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT,
  };
}

function kafkaConfig(env: Env) {
  if (env.KAFKA_BROKERS === undefined) return undefined;
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = env;
  const sasl = mechanism && username && password ? { mechanism, username, password } : undefined;
  return { brokers: env.KAFKA_BROKERS, ssl: env.KAFKA_SSL, sasl };
}

/**
 * Returns the secret that a variable has, or that is in the file that the variable `NAME_FILE` names, without a byte
 * order mark at its start and one line break at its end. Returns undefined if neither is set, or if the secret cannot be had, whose reason it adds to
 * `faults`.
 */
export function secretOf(name: string, env: NodeJS.ProcessEnv, faults: string[]): string | undefined {
  const { [name]: value, [`${name}_FILE`]: path } = env;
  if (!path) return value || undefined;
  try {
    const text = value ? '' : new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
    const secret = text.replace(/\r?\n$/, '');
    if (secret !== '') return secret;
    faults.push(value ? `${name} and ${name}_FILE are both set: set only one` : `${name}_FILE: ${path} is empty`);
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : error;
    faults.push(`${name}_FILE: ${path} cannot be read (${reason}): set it to a readable text file in UTF-8`);
  }
  return undefined;
}
