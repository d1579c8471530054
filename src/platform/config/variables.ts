import { z } from 'zod';
import {
  atLeastOne,
  brokers,
  checkpoints,
  compression,
  databaseUrl,
  days,
  ed25519FormerKeys,
  ed25519PrivateKey,
  environment,
  flag,
  gasNodes,
  httpUrl,
  names,
  origins,
  otlpPairs,
  peers,
  port,
  ratio,
  redisUrl,
  sampler,
  secret,
  signingSecret,
  text,
} from './variable-forms.ts';

/** The entry of a variable in the configuration reference, besides its format and its default. */
export interface About {
  description: string;
  /** The text that says what applies if the variable is unset and its schema has no default. */
  unset?: string;
  /** The only role besides `all` that reads the variable; if absent, both roles do. */
  role?: 'gateway' | 'worker';
}

function about<Schema extends z.ZodType>(schema: Schema, words: About): Schema {
  return schema.meta({ ...words });
}

export const DEFAULT_PORT = 4000;
export const DEFAULT_ADMIN_PORT = 4001;
const GENERATED = 'generated once into `DATA_DIR`';

function rotating<Schema extends z.ZodType>(schema: Schema, name: string): Schema {
  return about(schema, {
    description: `the previous \`${name}\`, used only to verify`,
    unset: 'none',
    role: 'gateway',
  });
}

function jwtSecret(tokens: string) {
  return about(secret.optional(), {
    description: `the HMAC key of ${tokens}, used as raw bytes; each class needs a different key`,
    unset: GENERATED,
    role: 'gateway',
  });
}

const process = {
  NODE_ENV: about(environment.optional(), {
    description:
      'in `production`, nothing is generated or embedded and there is no demo; near spellings (`prod`, `Production`) are rejected',
    unset: 'not production',
  }),
  PORTCULLIS_ROLE: about(z.enum(['all', 'gateway', 'worker'], 'one of all, gateway, worker').default('all'), {
    description:
      'what the process does: `gateway` serves HTTP, `worker` consumes, relays and runs jobs, `all` does both',
  }),
  HOST: about(text.optional(), {
    description: 'the address that both listeners bind to',
    unset: '`127.0.0.1`; in production `0.0.0.0`',
  }),
  PORT: about(port.default(DEFAULT_PORT), {
    description: 'port of the public listener; 0 selects a free port',
    role: 'gateway',
  }),
  REUSE_PORT: about(z.enum(['on', 'off'], 'on or off').default('off'), {
    description:
      'whether several processes on this machine share PORT (SO_REUSEPORT), each with an ADMIN_PORT and a DATA_DIR of its own (docs/operations/processes.md)',
    role: 'gateway',
  }),
  ADMIN_PORT: about(port.default(DEFAULT_ADMIN_PORT), {
    description: 'port of the listener for `/metrics`, `/livez` and `/readyz`; keep it private',
  }),
  PUBLIC_URL: about(httpUrl.optional(), {
    description: 'base URL at which clients reach the gateway; used in the `iss` of tokens and in documents',
    unset: '`http://HOST:PORT`',
    role: 'gateway',
  }),
  TRUST_PROXY: about(peers.default(['loopback']), {
    description:
      'peers whose `X-Forwarded-*`, `Forwarded`, `X-Real-IP` and `ssl-client-*` headers are trusted; they are removed from all other requests, also with underscores for hyphens',
    role: 'gateway',
  }),
  MAX_CONNECTIONS: about(atLeastOne.default(20_000), {
    description:
      'maximum number of connections to the public listener; one peer outside `TRUST_PROXY` may have half of them. The process needs as many open files (`ulimit -n`)',
    role: 'gateway',
  }),
  CORS_ORIGINS: about(origins.default(['*']), {
    description: 'origins that browsers may call from, without credentials',
    role: 'gateway',
  }),
  LOG_LEVEL: about(
    z
      .enum(
        ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
        'one of fatal, error, warn, info, debug, trace, silent',
      )
      .default('info'),
    { description: 'lowest level that is logged; the log is JSON on standard output, formatted text in a terminal' },
  ),
};

const stores = {
  DATABASE_URL: about(databaseUrl.optional(), {
    description:
      'URL of PostgreSQL. For TLS add `sslmode=verify-full`, and `sslrootcert=FILE` for a private CA. A connection pooler must support prepared statements (PgBouncer 1.21 or later)',
    unset: 'embedded in `DATA_DIR`',
  }),
  MIGRATE_DATABASE_URL: about(databaseUrl.optional(), {
    description:
      'URL of the same database with the role that owns its tables. `migrate` uses it and grants the role of `DATABASE_URL` the privileges of a service. Services do not use it in production (docs/operations/database-roles.md)',
    unset: '`DATABASE_URL`; the embedded database has one role',
  }),
  STATEMENT_TIMEOUT_MS: about(atLeastOne.default(10_000), {
    description:
      'milliseconds after which a PostgreSQL statement of a request is cancelled (504); background work has no limit',
    role: 'gateway',
  }),
  REDIS_URL: about(redisUrl.optional(), {
    description:
      'URL of Redis, or of any server of a Redis Cluster, for rates, quotas and wake-ups. A cluster has only database 0',
    unset: 'in process',
  }),
  KAFKA_BROKERS: about(brokers.optional(), { description: 'Kafka', unset: 'in process, durable in the database' }),
  KAFKA_SSL: about(flag.default(false), { description: 'whether to connect to the brokers with TLS' }),
  KAFKA_SASL_MECHANISM: about(
    z.enum(['plain', 'scram-sha-256', 'scram-sha-512'], 'one of plain, scram-sha-256, scram-sha-512').optional(),
    {
      description: 'SASL mechanism for the brokers; set all three `KAFKA_SASL_` variables or none',
      unset: 'no login',
    },
  ),
  KAFKA_SASL_USERNAME: about(text.optional(), { description: 'user name for the brokers', unset: 'no login' }),
  KAFKA_SASL_PASSWORD: about(text.optional(), { description: 'password for the brokers', unset: 'no login' }),
  TOPIC_PREFIX: about(
    z
      .string()
      .regex(/^[a-zA-Z0-9._-]*$/, 'letters, digits, dot, dash and underscore')
      .default(''),
    { description: 'prefix of every topic, consumer group, cache key and channel' },
  ),
  DATA_DIR: about(text.default('.data'), {
    description: 'the folder of the embedded stores, of generated secrets and of the audit spool',
  }),
  AUDIT_SPOOL_DIR: about(text.optional(), {
    description: 'folder for audit records that are not in the database yet; it must survive a restart',
    unset: '`DATA_DIR/audit`',
  }),
  AUDIT_SYNC: about(z.enum(['on', 'off'], 'on or off').default('off'), {
    description:
      'whether a response waits until the disk has its audit record, which then survives a power cut (docs/operations/audit.md)',
  }),
  AUDIT_RETENTION_DAYS: about(days.default(90), { description: 'how long audit records are kept', role: 'worker' }),
  AUDIT_MASKED_NAMES: about(names.default([]), {
    description:
      'further names whose values are masked in audit records and logs, comma-separated, in any spelling (docs/secret-names.md)',
    role: 'gateway',
  }),
  AUDIT_CHECKPOINTS: about(checkpoints.optional(), {
    description:
      'where audit checkpoints are copied outside the database: `file:PATH` or `kafka:TOPIC` (docs/operations/audit-chain.md)',
    unset: 'only in the database',
  }),
  EVENTS_RETENTION_DAYS: about(days.default(30), {
    description: 'how long transaction events are kept, which limits how far back a subscription can resume',
    role: 'worker',
  }),
};

const secrets = {
  JWT_SECRET_USER: jwtSecret('user tokens, which Portcullis issues'),
  JWT_SECRET_USER_PREVIOUS: rotating(secret.optional(), 'JWT_SECRET_USER'),
  JWT_SECRET_DISCOVER: jwtSecret('discover tokens'),
  JWT_SECRET_DISCOVER_PREVIOUS: rotating(secret.optional(), 'JWT_SECRET_DISCOVER'),
  JWT_SECRET_LEGACY: jwtSecret('legacy tokens'),
  JWT_SECRET_LEGACY_PREVIOUS: rotating(secret.optional(), 'JWT_SECRET_LEGACY'),
  SECRET_PEPPER: about(secret.optional(), {
    description: 'the HMAC key of stored client secrets; the command line needs the same key',
    unset: GENERATED,
    role: 'gateway',
  }),
  SECRET_PEPPER_PREVIOUS: rotating(secret.optional(), 'SECRET_PEPPER'),
  AUDIT_SIGNING_KEY: about(ed25519PrivateKey.optional(), {
    description: 'Ed25519 private key that signs audit checkpoints: PKCS #8 as PEM, or as DER in base64',
    unset: `${GENERATED}; in production checkpoints are not signed`,
  }),
  AUDIT_SIGNING_KEY_PREVIOUS: about(ed25519FormerKeys.optional(), {
    description: 'all previous `AUDIT_SIGNING_KEY`s or their public keys, concatenated PEM, for `audit verify`',
    unset: 'none',
  }),
  WEBHOOK_USERNAME: about(text.regex(/^[^:]*$/, 'without a colon (RFC 7617)').optional(), {
    description: 'user name of the chain processor for the webhook',
    unset: '`chain-processor`',
    role: 'gateway',
  }),
  WEBHOOK_PASSWORD: about(text.optional(), {
    description: 'password of the chain processor; at least 16 characters in production',
    unset: GENERATED,
    role: 'gateway',
  }),
  WEBHOOK_PASSWORD_PREVIOUS: rotating(text.optional(), 'WEBHOOK_PASSWORD'),
  WEBHOOK_SIGNING_SECRET: about(signingSecret.optional(), {
    description: 'secret that signs notifications (Standard Webhooks)',
    unset: 'signatures are ignored',
    role: 'gateway',
  }),
  WEBHOOK_SIGNING_SECRET_PREVIOUS: rotating(signingSecret.optional(), 'WEBHOOK_SIGNING_SECRET'),
  WEBHOOK_SIGNATURE: about(z.enum(['optional', 'required'], 'optional or required').default('optional'), {
    description: 'whether notifications must be signed; `required` needs `WEBHOOK_SIGNING_SECRET`',
    role: 'gateway',
  }),
};

const features = {
  GATEWAY_CONFIG: about(text.optional(), {
    description: 'file of services and endpoints; its schema is `schema/gateway.schema.json`',
    unset: 'the `gateway.yaml` that comes with Portcullis',
  }),
  MAX_SESSIONS: about(atLeastOne.default(1000), {
    description: 'maximum number of sessions per supervisor',
    role: 'gateway',
  }),
  DISCOVERS_UPSTREAM_URL: about(httpUrl.optional(), {
    description: 'where `/v1/discovers/**` goes',
    unset: 'the path is not registered',
    role: 'gateway',
  }),
  GAS_RPC_URLS: about(gasNodes.optional(), {
    description: 'RPC providers (Ethereum JSON-RPC) for gas fees; the URLs are treated as secrets',
    unset: 'the gas fee route returns an empty list',
    role: 'gateway',
  }),
  REGISTRATION_BY_MUTATION: about(z.enum(['on', 'off'], 'on or off').optional(), {
    description:
      'whether `registerTransaction` may register ids that neither the topic nor the lookup knows. The caller then sees their parked notifications',
    unset: '`on`; in production `off`',
    role: 'gateway',
  }),
  GRAPHQL_INTROSPECTION: about(z.enum(['on', 'off'], 'on or off').optional(), {
    description: 'whether clients may query the schema; `off` also removes suggested names from errors',
    unset: '`on`; in production `off`',
    role: 'gateway',
  }),
  CONSOLE: about(z.enum(['on', 'off'], 'on or off').optional(), {
    description: 'whether the console is served at `/console/` (docs/operations/console.md)',
    unset: '`on` in the embedded run, otherwise `off`',
    role: 'gateway',
  }),
  GRAPHQL_JIT: about(z.enum(['on', 'off'], 'on or off').default('on'), {
    description: 'whether frequent queries run as compiled code (docs/operations/compiled-operations.md)',
    role: 'gateway',
  }),
  GRAPHQL_MAX_COST: about(atLeastOne.default(5000), {
    description:
      'maximum number of objects that an operation or a batch may request; each count of rows counts as 200, a wallet preview by 1,000 balances as 400',
    role: 'gateway',
  }),
  GRAPHQL_PERSISTED: about(z.enum(['off', 'allow', 'only'], 'off, allow or only').default('off'), {
    description:
      'whether persisted operations are rejected, accepted, or the only operations allowed (docs/operations/persisted-operations.md)',
    role: 'gateway',
  }),
  GRAPHQL_PERSISTED_FILE: about(text.optional(), {
    description: 'file of persisted operations; required by `only`',
    unset: 'none',
    role: 'gateway',
  }),
};

const forTraces = (name: string) => `the same for traces alone; it goes before \`OTEL_${name}\``;

const unusedLimit = (what: string) =>
  about(atLeastOne.optional(), { description: `no effect: spans of Portcullis have no ${what}`, unset: '`128`' });

/** Those of the OpenTelemetry specification that its SDK knows for traces. It reads some of them itself. */
const telemetry = {
  OTEL_EXPORTER_OTLP_ENDPOINT: about(httpUrl.optional(), {
    description: 'URL of the trace collector, OTLP over HTTP, without `/v1/traces` (docs/operations/traces.md)',
    unset: 'nothing is traced',
  }),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: about(httpUrl.optional(), {
    description: 'full URL for traces; it goes before `OTEL_EXPORTER_OTLP_ENDPOINT`',
    unset: 'none',
  }),
  OTEL_EXPORTER_OTLP_HEADERS: about(otlpPairs.optional(), {
    description: 'headers of each export: a comma-separated list of `name=value`, values percent-encoded',
    unset: 'none',
  }),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: about(otlpPairs.optional(), {
    description: 'further headers; they go before those of `OTEL_EXPORTER_OTLP_HEADERS`',
    unset: 'none',
  }),
  OTEL_EXPORTER_OTLP_TIMEOUT: about(atLeastOne.default(5000), {
    description: 'milliseconds after which an export that has no answer is given up',
  }),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: about(atLeastOne.optional(), {
    description: forTraces('EXPORTER_OTLP_TIMEOUT'),
    unset: 'none',
  }),
  OTEL_EXPORTER_OTLP_COMPRESSION: about(compression.optional(), {
    description: 'compression of exports',
    unset: '`none`',
  }),
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: about(compression.optional(), {
    description: forTraces('EXPORTER_OTLP_COMPRESSION'),
    unset: 'none',
  }),
  OTEL_EXPORTER_OTLP_CERTIFICATE: about(text.optional(), {
    description: "file with the authority of the collector's certificate, in PEM",
    unset: "Node's authorities",
  }),
  OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: about(text.optional(), {
    description: forTraces('EXPORTER_OTLP_CERTIFICATE'),
    unset: 'none',
  }),
  OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: about(text.optional(), {
    description: 'file with the client certificate for the collector, in PEM',
    unset: 'none',
  }),
  OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE: about(text.optional(), {
    description: forTraces('EXPORTER_OTLP_CLIENT_CERTIFICATE'),
    unset: 'none',
  }),
  OTEL_EXPORTER_OTLP_CLIENT_KEY: about(text.optional(), {
    description: 'file with the private key of the client certificate, in PEM',
    unset: 'none',
  }),
  OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: about(text.optional(), {
    description: forTraces('EXPORTER_OTLP_CLIENT_KEY'),
    unset: 'none',
  }),
  OTEL_SERVICE_NAME: about(text.optional(), {
    description: 'the name of the service in traces',
    unset: '`service.name` of `OTEL_RESOURCE_ATTRIBUTES`, or `portcullis`',
  }),
  OTEL_RESOURCE_ATTRIBUTES: about(otlpPairs.optional(), {
    description: 'further attributes of the process: a comma-separated list of `name=value`, values percent-encoded',
    unset: 'none',
  }),
  OTEL_TRACES_SAMPLER: about(sampler.optional(), {
    description: 'which traces are recorded; those `parentbased` follow a caller that has decided',
    unset: '`parentbased_traceidratio`',
  }),
  OTEL_TRACES_SAMPLER_ARG: about(ratio.default(1), {
    description: 'sampling ratio of the samplers with `traceidratio`, 0 to 1',
  }),
  OTEL_BSP_SCHEDULE_DELAY: about(atLeastOne.default(5000), {
    description: 'milliseconds between two exports of spans',
  }),
  OTEL_BSP_EXPORT_TIMEOUT: about(atLeastOne.default(5000), {
    description: 'milliseconds after which spans that are being exported are given up',
  }),
  OTEL_BSP_MAX_QUEUE_SIZE: about(atLeastOne.default(2048), {
    description: 'maximum number of spans that wait for export; further ones are dropped',
  }),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: about(atLeastOne.default(512), {
    description: 'maximum number of spans in an export',
  }),
  OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: about(atLeastOne.default(256), {
    description: 'maximum length of an attribute, in characters',
  }),
  OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: about(atLeastOne.optional(), {
    description: forTraces('ATTRIBUTE_VALUE_LENGTH_LIMIT'),
    unset: 'none',
  }),
  OTEL_ATTRIBUTE_COUNT_LIMIT: about(atLeastOne.optional(), {
    description: 'maximum number of attributes of a span',
    unset: '`128`',
  }),
  OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: about(atLeastOne.optional(), {
    description: forTraces('ATTRIBUTE_COUNT_LIMIT'),
    unset: 'none',
  }),
  OTEL_SPAN_EVENT_COUNT_LIMIT: unusedLimit('events'),
  OTEL_SPAN_LINK_COUNT_LIMIT: unusedLimit('links'),
  OTEL_SPAN_ATTRIBUTE_PER_EVENT_COUNT_LIMIT: unusedLimit('events'),
  OTEL_SPAN_ATTRIBUTE_PER_LINK_COUNT_LIMIT: unusedLimit('links'),
};

/** All variables, grouped by topic, in the order of the documentation. */
export const GROUPS = { process, stores, secrets, features, telemetry };
