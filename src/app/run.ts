import { isatty } from 'node:tty';
import { type Config, ConfigError, readConfig } from '../platform/config/config.ts';
import { readSecrets } from '../platform/config/secrets.ts';
import { StartError } from '../platform/errors.ts';
import { type FlushableLog, pinoLog } from '../platform/telemetry/pino-log.ts';
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

/** SQLSTATE codes of a database that is there and refuses to be used. */
const DATABASE_REFUSALS: Readonly<Record<string, string>> = {
  '28000': 'the server refuses the user of DATABASE_URL',
  '28P01': 'the server refuses the password of DATABASE_URL',
  '3D000': 'the server has no database of that name: create it, or change DATABASE_URL',
  '42501': 'the user of DATABASE_URL lacks a privilege',
  '53300': 'the server has no connection left',
  '57P03': 'the server is starting up or shutting down: try again',
};

/** Of Node's TLS: what is wrong with a certificate, or no TLS at all. */
const TLS_CODES = /^(?:ERR_(?:TLS|SSL)_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|EPROTO)/;

/** What made a start fail, in one sentence for the operator; undefined for what only a stack can tell. */
export function startFailure(error: unknown, config: Config | undefined): string | undefined {
  if (error instanceof StartError) return error.message;
  const chain = [...causes(error)];
  const codes = chain.flatMap((link) => ('code' in link && typeof link.code === 'string' ? link.code : []));
  if (chain.some(({ name }) => name.startsWith('KafkaJS'))) return kafkaFailure(chain, config);
  const path = chain.map((link) => ('path' in link ? link.path : undefined)).find((found) => typeof found === 'string');
  const host = databaseHost(config);
  if (path !== undefined && isNamedByDatabaseUrl(path, config)) {
    return `${path} cannot be read (${codes[0]}): DATABASE_URL names it`;
  }
  if (path !== undefined) return `${path} cannot be used (${codes[0]}): DATA_DIR and AUDIT_SPOOL_DIR must be writable`;
  const refusal = codes.map((code) => DATABASE_REFUSALS[code]).find((found) => found !== undefined);
  if (refusal !== undefined) return `the database at ${host} cannot be used: ${refusal}`;
  const tls = codes.find((code) => TLS_CODES.test(code)) ?? withoutTls(chain);
  if (tls !== undefined) return `the database at ${host} cannot be used by TLS (${tls}): see sslmode in DATABASE_URL`;
  const code = codes.find((found) => UNREACHABLE.has(found)) ?? timeoutOf(chain);
  if (code === undefined) return undefined;
  return `the database at ${host} does not answer (${code}): start it, or change DATABASE_URL`;
}

function kafkaFailure(chain: readonly Error[], config: Config | undefined): string {
  const reason = chain.findLast(({ message }) => message !== '')?.message ?? 'no answer';
  const brokers = config?.kafka?.brokers.join(', ');
  return `Kafka at ${brokers} cannot be used (${reason}): start it, or change the KAFKA_ variables`;
}

/** pg has no code for a server that takes the connection and stays silent. */
function timeoutOf(chain: readonly Error[]): string | undefined {
  return chain.some(({ message }) => /^timeout exceeded|^connection terminated/i.test(message)) ? 'timeout' : undefined;
}

/** pg has no code for a server that refuses TLS either. */
function withoutTls(chain: readonly Error[]): string | undefined {
  return chain.some(({ message }) => message.includes('does not support SSL'))
    ? 'the server does not support it'
    : undefined;
}

function databaseHost(config: Config | undefined): string {
  if (config?.databaseUrl === undefined) return 'DATA_DIR';
  const { host, searchParams } = new URL(config.databaseUrl);
  return searchParams.get('host') ?? host;
}

/** Certificates and their key are files. */
function isNamedByDatabaseUrl(path: string, config: Config | undefined): boolean {
  return config?.databaseUrl !== undefined && [...new URL(config.databaseUrl).searchParams.values()].includes(path);
}

/** An error, what caused it, and what it gathers. */
function* causes(error: unknown): Generator<Error> {
  if (!(error instanceof Error)) return;
  yield error;
  if (error instanceof AggregateError) for (const part of error.errors) yield* causes(part);
  yield* causes(error.cause);
}

/**
 * SIGHUP: it asks for something, and ends the process only where its terminal has gone, which says so by the same signal.
 * From its making on none is lost.
 */
export class Hangups {
  readonly #terminals = [0, 1, 2].filter((fd) => isatty(fd));
  #onAsk: (() => void) | undefined;
  #isAsked = false;

  constructor(onTerminalGone: () => void) {
    process.on('SIGHUP', () => {
      if (this.#terminals.some((fd) => !isatty(fd))) onTerminalGone();
      else if (this.#onAsk) this.#onAsk();
      else this.#isAsked = true;
    });
  }

  /** Calls `onAsk` with each signal, and at once if there was one before. */
  heed(onAsk: () => void): void {
    this.#onAsk = onAsk;
    if (this.#isAsked) onAsk();
  }
}

const EXIT_FAILED = 1;
const EXIT_CONFIG = 78;
/** A stop takes no longer, whatever has frozen: what was acknowledged is kept where it is. */
export const STOP_DEADLINE_MS = 10_000;
/** How long what nobody waits for may keep the process after its end, a connection to a frozen server, say. */
const LINGER_MS = 500;

interface RunOptions {
  /** Whether an embedded instance prints its credentials and first commands. */
  greets?: boolean;
}

/**
 * Runs an instance until SIGINT or SIGTERM and gives the exit code: 0, 1 (it cannot run) or 78 (its configuration). SIGHUP
 * reloads the gateway's table.
 */
export async function run(env: NodeJS.ProcessEnv, { greets = true }: RunOptions = {}): Promise<number> {
  const { stopped, hangups } = heedSignals();
  let config: Config | undefined;
  let log: FlushableLog | undefined;
  try {
    const read = readConfig(env);
    config = read.config;
    const secrets = readSecrets(config, read.env);
    log = await pinoLog(config.logLevel);
    dieOfTheUncaught(log);
    // A start that its configuration ends does not wait for it.
    const { startService } = await import('./service.ts');
    await using service = await startService({ config, secrets, log, variables: env });
    if (greets) await greet(service);
    log.info({ base_url: service.baseUrl, admin_url: service.adminUrl, role: config.role }, 'started');
    hangups.heed(() => void service.reload());
    const signal = await stopped;
    log.info({ signal }, 'stopping');
    return await stopInTime(service, log);
  } catch (error) {
    return complain(error, config);
  } finally {
    log?.flush();
    setTimeout(() => process.exit(), LINGER_MS).unref();
  }
}

async function stopInTime(service: Service, log: FlushableLog): Promise<number> {
  const deadline = setTimeout(() => {
    log.error({}, `the stop has taken ${STOP_DEADLINE_MS / 1_000} s: what has not ended is cut`);
    log.flush();
    process.exit(EXIT_FAILED);
  }, STOP_DEADLINE_MS);
  await service[Symbol.asyncDispose]();
  clearTimeout(deadline);
  log.info({}, 'stopped');
  return 0;
}

async function greet({ demo, baseUrl, adminUrl, context: { config, secrets, publicUrl } }: Service): Promise<void> {
  if (!demo || baseUrl === undefined) return;
  const { greeting } = await import('./demo/greeting.ts');
  const { username, password } = secrets.webhook;
  const webhook = { username, password: password.current };
  const startedInMs = process.uptime() * 1000;
  process.stdout.write(
    greeting({ demo, baseUrl: publicUrl.value, adminUrl, dataDir: config.dataDir, webhook, startedInMs }),
  );
}

function heedSignals(): { stopped: Promise<string>; hangups: Hangups } {
  const { promise: stopped, resolve } = Promise.withResolvers<string>();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  return { stopped, hangups: new Hangups(() => resolve('SIGHUP')) };
}

/** A fault that nobody caught leaves the process in an unknown state: it ends, and what it has acknowledged is kept. */
function dieOfTheUncaught(log: FlushableLog): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error) => {
      log.error({ err: error }, 'uncaught');
      log.flush();
      process.exit(EXIT_FAILED);
    });
  }
}

function complain(error: unknown, config: Config | undefined): number {
  if (error instanceof ConfigError) {
    const faults = error.faults.map((fault) => `  - ${fault}\n`).join('');
    process.stderr.write(`Portcullis cannot start, its configuration must change:\n${faults}`);
    return EXIT_CONFIG;
  }
  const text = startFailure(error, config) ?? `${error instanceof Error ? error.stack : String(error)}`;
  process.stderr.write(`Portcullis cannot start: ${text}\n`);
  return EXIT_FAILED;
}
