import { type Config, ConfigError, readConfig } from './config/config.ts';
import { readSecrets } from './config/secrets.ts';
import { Hangups } from './lib/hangup.ts';
import { type FlushableLog, pinoLog } from './lib/pino-log.ts';
import type { Service } from './service.ts';
import { startFailure } from './start-failure.ts';

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
