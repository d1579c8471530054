import { baseUrlOf } from '../../lib/ip-address.ts';
import { type Config, type Env, envSchema, type ReadConfig, SECRET_VARIABLES } from './config.ts';

/** An environment variable with its effective value. */
export interface ResolvedVariable {
  name: keyof Env;
  /** The value in force, as text for the operator; secrets are masked. */
  value: string;
  source: 'environment' | 'file' | 'default';
}

const MASK = '***';
const ADDRESSES: ReadonlySet<string> = new Set<keyof Env>(['DATABASE_URL', 'MIGRATE_DATABASE_URL', 'REDIS_URL']);

/** Returns every variable with its value in force, in the order of the documentation. */
export function resolvedVariables({ config, env, variables }: ReadConfig): ResolvedVariable[] {
  const defaults = defaultsOf(config);
  return envSchema.keyof().options.map((name) => {
    const text = variables[name];
    if (text === undefined) return { name, value: defaults[name] ?? shown(env[name]), source: 'default' };
    if (!SECRET_VARIABLES.has(name)) return { name, value: shown(env[name]), source: 'environment' };
    return {
      name,
      value: masked(name, text),
      source: variables[`${name}_FILE`] === undefined ? 'environment' : 'file',
    };
  });
}

/** Returns the texts for unset variables whose default is not in their schema. */
function defaultsOf(config: Config): Partial<Record<keyof Env, string>> {
  const generated = config.production ? 'unset' : 'generated once into DATA_DIR';
  return {
    HOST: config.host,
    PUBLIC_URL: baseUrlOf(config.host, config.port),
    DATABASE_URL: 'embedded in DATA_DIR',
    MIGRATE_DATABASE_URL:
      config.databaseUrl === undefined ? 'none: the embedded database has one role' : 'DATABASE_URL',
    REDIS_URL: 'in process',
    KAFKA_BROKERS: 'in the database',
    TOPIC_PREFIX: 'none',
    DATA_DIR: config.dataDir,
    AUDIT_SPOOL_DIR: config.auditSpoolDir,
    AUDIT_CHECKPOINTS: 'only in the database',
    GATEWAY_CONFIG: config.gatewayConfigPath,
    JWT_SECRET_USER: generated,
    JWT_SECRET_DISCOVER: generated,
    JWT_SECRET_LEGACY: generated,
    SECRET_PEPPER: generated,
    AUDIT_SIGNING_KEY: generated,
    WEBHOOK_USERNAME: 'chain-processor',
    WEBHOOK_PASSWORD: generated,
    REGISTRATION_BY_MUTATION: config.registrationByMutation ? 'on' : 'off',
    CONSOLE: config.console ? 'on' : 'off',
    GRAPHQL_INTROSPECTION: config.graphqlIntrospection ? 'on' : 'off',
  };
}

function shown(value: Env[keyof Env]): string {
  return value === undefined ? 'unset' : String(value);
}

/** Masks a secret. Only a store's URL keeps some of its parts: scheme, user, host and path. */
function masked(name: keyof Env, text: string): string {
  if (!ADDRESSES.has(name)) return MASK;
  const { protocol, username, host, pathname } = new URL(text);
  return `${protocol}//${username === '' ? '' : `${username}:${MASK}@`}${host}${pathname}`;
}
