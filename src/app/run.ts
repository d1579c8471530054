import { performance } from 'node:perf_hooks';
import { isatty } from 'node:tty';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { causes } from '../lib/causes.ts';
import { type Config, ConfigError, readConfig } from '../platform/config/config.ts';
import { readSecrets } from '../platform/config/secrets.ts';
import { MigrationOwnerError, StartError } from '../platform/errors.ts';
import { type FlushableLog, pinoLog } from '../platform/telemetry/process-log.ts';
import type { Service } from './service.ts';

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

const ABSENT = 'a table or column is missing that its migrations made: restore a backup (docs/operations/restore.md)';

/** The reasons why a database server that responds may refuse to be used, by SQLSTATE. */
const DATABASE_REFUSALS: Readonly<Record<string, string>> = {
  '25006': 'the server is a standby or read-only: set DATABASE_URL to the primary',
  '28000': 'the server rejects the user of DATABASE_URL',
  '28P01': 'the server rejects the password of DATABASE_URL',
  '3D000': 'the server has no database with this name: create it, or change DATABASE_URL',
  '42703': ABSENT,
  '42P01': ABSENT,
  '42501': 'the user of DATABASE_URL lacks a privilege (docs/operations/database-roles.md)',
  '53300': 'the server has no free connections',
  '57P03': 'the server is starting up or shutting down: try again',
};

/** Matches the codes of Node's errors about TLS: a bad certificate, or no TLS at all. */
const TLS_CODES = /^(?:ERR_(?:TLS|SSL)_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|EPROTO)/;

/** Matches pg's messages about a database server that does not respond. */
const SILENCE = /^timeout exceeded|^connection terminated/i;

/** Returns why a start failed, in one sentence for the operator; undefined if only a stack trace can explain it. */
export function startFailure(error: unknown, config: Config | undefined): string | undefined {
  if (error instanceof StartError) return error.message;
  if (error instanceof MigrationOwnerError)
    return startFailure(error.cause, config && { ...config, databaseUrl: config.migrateDatabaseUrl })?.replace(
      'DATABASE_URL',
      'MIGRATE_DATABASE_URL',
    );
  const chain = [...causes(error)];
  const codes = chain.flatMap((link) => ('code' in link && typeof link.code === 'string' ? link.code : []));
  if (chain.some(({ name }) => name.startsWith('KafkaJS'))) return kafkaFailure(chain, config);
  const path = chain
    .flatMap((link) => ('path' in link && typeof link.path === 'string' ? link.path : []))
    // A file of the program that is missing is no fault of its configuration.
    .find((candidate) => !/\.[jt]s$/.test(candidate));
  const url = config?.databaseUrl === undefined ? undefined : new URL(config.databaseUrl);
  const host = url ? (url.searchParams.get('host') ?? url.host) : 'DATA_DIR';
  // A certificate, or its key.
  if (path !== undefined && [...(url?.searchParams.values() ?? [])].includes(path)) {
    return `${path} cannot be read (${codes[0]}): check the path in DATABASE_URL`;
  }
  if (path !== undefined) return `${path} cannot be used (${codes[0]}): DATA_DIR and AUDIT_SPOOL_DIR must be writable`;
  const refusal = codes.map((code) => DATABASE_REFUSALS[code]).find((candidate) => candidate !== undefined);
  if (refusal !== undefined) return `the database at ${host} cannot be used: ${refusal}`;
  // pg has no codes for a server that refuses TLS, or that does not respond.
  const hasMessage = (words: RegExp) => chain.some(({ message }) => words.test(message));
  const refusesTls = hasMessage(/does not support SSL/) ? 'the server does not support it' : undefined;
  const tls = codes.find((code) => TLS_CODES.test(code)) ?? refusesTls;
  if (tls !== undefined) return `the database at ${host} cannot be used with TLS (${tls}): see sslmode in DATABASE_URL`;
  const code = codes.find((candidate) => UNREACHABLE.has(candidate)) ?? (hasMessage(SILENCE) ? 'timeout' : undefined);
  if (code === undefined) return undefined;
  const advice = code === 'timeout' ? 'it may be frozen, or the network drops packets; restart it' : 'start it';
  return `the database at ${host} does not respond (${code}): ${advice}, or change DATABASE_URL`;
}

function kafkaFailure(chain: readonly Error[], config: Config | undefined): string {
  const reason = chain.findLast(({ message }) => message !== '')?.message ?? 'no answer';
  const isTopic = chain.some((link) => 'type' in link && link.type === 'UNKNOWN_TOPIC_OR_PARTITION');
  return `Kafka at ${config?.kafka?.brokers.join(', ')} cannot be used (${reason}): ${
    isTopic ? 'a topic is missing; create it by portcullis migrate' : 'start it, or change the KAFKA_ variables'
  }`;
}

const EXIT_FAILED = 1;
const EXIT_CONFIG = 78;
/**
 * The longest time that a stop may take, in milliseconds, even if a store hangs; acknowledged work already survives the process.
 */
export const STOP_DEADLINE_MS = 10_000;
/**
 * How long leftovers, such as a connection to a frozen server, may keep the process alive after its end, in
 * milliseconds.
 */
const LINGER_MS = 500;
const REST_MS = 5_000;
/** The share of its time that the event loop of a process at rest is busy at most. */
const REST_UTILIZATION = 0.2;

/**
 * Runs a process until SIGINT or SIGTERM, and returns its exit code: 0, 1 (it cannot run) or 78 (wrong configuration).
 * SIGHUP reloads `gateway.yaml` and the persisted operations. An embedded run prints its credentials and first
 * commands, unless `greets` is false.
 */
export async function run(env: NodeJS.ProcessEnv, { greets = true }: { greets?: boolean } = {}): Promise<number> {
  const { stopped, onHangup } = installSignals();
  let config: Config | undefined;
  let log: FlushableLog | undefined;
  try {
    const read = readConfig(env);
    config = read.config;
    // PGlite's code compiles on other threads while this one loads the rest.
    if (config.databaseUrl === undefined) void import('../platform/embedded/pglite-code.ts');
    const secrets = readSecrets(config, read.env);
    log = await pinoLog(config.logLevel);
    // An uncaught error leaves the process in an unknown state; acknowledged work survives the process.
    for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
      process.on(event, (error) => {
        log?.error({ err: error }, 'uncaught');
        log?.flush();
        process.exit(EXIT_FAILED);
      });
    }
    for (const warning of read.warnings) log.warn({}, warning);
    // Imported late: a start that fails because of its configuration need not wait for it.
    const { startService } = await import('./service.ts');
    await using service = await startService({ config, secrets, log, variables: env });
    if (greets) await greet(service);
    log.info({ base_url: service.baseUrl, admin_url: service.adminUrl, role: config.role }, 'started');
    onHangup(() => void service.reload());
    collectAtRest();
    log.info({ signal: await stopped }, 'stopping');
    return await stopInTime(service, log);
  } catch (error) {
    return reportStartFailure(error, config);
  } finally {
    log?.flush();
    setTimeout(() => process.exit(), LINGER_MS).unref();
  }
}

/**
 * Collects all garbage once, after the first interval in which the process has rested. Loading the program fills the
 * space of young objects, 64 MB in the image, which V8 otherwise keeps until it is busy. The collection takes up to a
 * second, so it waits while there is work. From then on V8 decides how much the heap may grow: allowed to grow by twice
 * what is left, a process under attack took 1.4 GB, with the buffers outside of the heap; it takes 0.7.
 */
function collectAtRest(): void {
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    if (utilization > REST_UTILIZATION) return;
    clearInterval(timer);
    setFlagsFromString('--expose-gc');
    runInNewContext('gc')({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  }, REST_MS).unref();
}

async function stopInTime(service: Service, log: FlushableLog): Promise<number> {
  using _deadline = setTimeout(() => {
    log.error({}, `stop took ${STOP_DEADLINE_MS / 1_000} s; closing the remaining connections`);
    log.flush();
    process.exit(EXIT_FAILED);
  }, STOP_DEADLINE_MS);
  await service[Symbol.asyncDispose]();
  log.info({}, 'stopped');
  return 0;
}

async function greet({ demo, baseUrl, adminUrl, context }: Service): Promise<void> {
  if (!demo || baseUrl === undefined) return;
  const { config, secrets, publicUrl, directory, issuer } = context;
  const [{ greeting }, { consoleFiles }] = await Promise.all([
    import('./demo/demo.ts'),
    import('../api/console/console-files.ts'),
  ]);
  const hasConsole = config.console && consoleFiles() !== undefined;
  const client = await directory.client(demo.client.client_id);
  const token =
    client && (await issuer.sign(issuer.forClient(client, { names: client.scopes, isNarrowed: false }))).access_token;
  process.stdout.write(
    greeting({
      demo,
      token,
      hasConsole,
      baseUrl: publicUrl.value,
      adminUrl,
      dataDir: config.dataDir,
      webhook: secrets.webhook,
      startedInMs: process.uptime() * 1000,
    }),
  );
}

/**
 * Handles the signals of the process. `stopped` resolves with the signal that ends it. SIGHUP requests a reload:
 * `onHangup` sets what is called for each from then on, and at once if there was one before. Only if the process's
 * terminal has been closed, which sends the same signal, does SIGHUP end the process.
 */
function installSignals() {
  const { promise: stopped, resolve } = Promise.withResolvers<string>();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  const terminals = [0, 1, 2].filter((fd) => isatty(fd));
  let wasAsked = false;
  let ask = () => {
    wasAsked = true;
  };
  process.on('SIGHUP', () => (terminals.some((fd) => !isatty(fd)) ? resolve('SIGHUP') : ask()));
  const onHangup = (reload: () => void) => {
    ask = reload;
    if (wasAsked) reload();
  };
  return { stopped, onHangup };
}

function reportStartFailure(error: unknown, config: Config | undefined): number {
  if (error instanceof ConfigError) {
    const faults = error.faults.map((fault) => `  - ${fault}\n`).join('');
    process.stderr.write(`Portcullis cannot start because its configuration is invalid:\n${faults}`);
    return EXIT_CONFIG;
  }
  const text = startFailure(error, config) ?? `${error instanceof Error ? error.stack : String(error)}`;
  process.stderr.write(`Portcullis cannot start: ${text}\n`);
  return EXIT_FAILED;
}
