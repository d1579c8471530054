import { ConfigError, readConfig } from './config/config.ts';
import { readSecrets } from './config/secrets.ts';
import { type FlushableLog, pinoLog } from './lib/pino-log.ts';
import { type Service, startService } from './service.ts';
import { StartError } from './start-error.ts';

const EXIT_FAILED = 1;
const EXIT_CONFIG = 78;

/** Runs an instance until SIGINT or SIGTERM and gives the exit code: 0, 1 (it cannot run) or 78 (its configuration). */
export async function run(env: NodeJS.ProcessEnv): Promise<number> {
  const stopped = untilStopped();
  try {
    const { config, env: variables } = readConfig(env);
    const secrets = readSecrets(config, variables);
    const log = await pinoLog(config.logLevel);
    process.on('uncaughtException', (error) => die(log, error));
    process.on('unhandledRejection', (error) => die(log, error));
    await using service = await startService({ config, secrets, log });
    await greet(service);
    const signal = await stopped;
    log.info({ signal }, 'stopping');
    await service[Symbol.asyncDispose]();
    log.info({}, 'stopped');
    log.flush();
    return 0;
  } catch (error) {
    return complain(error);
  }
}

async function greet({ demo, baseUrl, adminUrl, context: { config, secrets, log } }: Service): Promise<void> {
  if (demo && baseUrl !== undefined) {
    const { greeting } = await import('./demo/greeting.ts');
    const { username, password } = secrets.webhook;
    const webhook = { username, password: password.current };
    const startedInMs = process.uptime() * 1000;
    process.stdout.write(greeting({ demo, baseUrl, adminUrl, dataDir: config.dataDir, webhook, startedInMs }));
  }
  log.info({ base_url: baseUrl, admin_url: adminUrl, role: config.role }, 'started');
}

function untilStopped(): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  return promise;
}

/** A fault that nobody caught leaves the process in an unknown state: it ends, and what it has acknowledged is kept. */
function die(log: FlushableLog, error: unknown): never {
  log.error({ err: error }, 'uncaught');
  log.flush();
  process.exit(EXIT_FAILED);
}

function complain(error: unknown): number {
  if (error instanceof ConfigError) {
    const faults = error.faults.map((fault) => `  - ${fault}\n`).join('');
    process.stderr.write(`Portcullis cannot start, its configuration must change:\n${faults}`);
    return EXIT_CONFIG;
  }
  const text = error instanceof StartError ? error.message : `${error instanceof Error ? error.stack : String(error)}`;
  process.stderr.write(`Portcullis cannot start: ${text}\n`);
  return EXIT_FAILED;
}
