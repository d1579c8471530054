import { CONSOLE_OPERATIONS } from '../api/console/console-files.ts';
import {
  openPersistedFile,
  type PersistedFile,
  readPersistedDocuments,
} from '../api/graphql/execution/persisted-file.ts';
import { keyedLog } from '../audit/masked-names.ts';
import {
  type GatewayConfig,
  lookupBearer,
  parseGatewayConfig,
  withDiscovers,
} from '../gateway/endpoints/gateway-config.ts';
import { Reloads, readTableText, watchTable } from '../gateway/endpoints/reload.ts';
import { UpstreamCalls } from '../gateway/proxy/upstream-call.ts';
import { Upstreams, upstreamMetrics } from '../gateway/proxy/upstreams.ts';
import { baseUrlOf } from '../lib/ip-address.ts';
import type { Log } from '../lib/log.ts';
import { MemoizedRead } from '../lib/memoized-read.ts';
import { type Config, ConfigError } from '../platform/config/config.ts';
import type { Secrets } from '../platform/config/secrets.ts';
import { inUse, lockDataDir } from '../platform/embedded/data-dir-lock.ts';
import { readinessOf } from '../platform/health.ts';
import { outageLog } from '../platform/telemetry/process-log.ts';
import { adminServer } from './admin-server.ts';
import { startConsumers, startLookups } from './consumers.ts';
import { type Context, createContext, type Overrides } from './context.ts';
import { migrateByOwner } from './database-roles.ts';
import type { Demo } from './demo/demo.ts';
import { closeGracefully, listen } from './listen.ts';
import { metricsOf } from './metrics.ts';
import { openStatus, startReports, watchDatabaseAge } from './operations.ts';
import { publicServer } from './public-server.ts';
import { checkStart } from './start-checks.ts';
import { topicsOf } from './stores.ts';

const DRAIN_DEADLINE_MS = 8_000;
/** How long a status is answered again, and how long it may take. */
const STATUS_READ = { maxAgeMs: 5_000, deadlineMs: 12_000 };

/** A running Portcullis process. */
export type Service = Awaited<ReturnType<typeof startService>>;

/**
 * Starts a process: stores, schema, demo, consumers and listeners. Disposing of it completes the requests in flight and
 * then stops everything in reverse order.
 * @throws ConfigError if the configuration is wrong, StartError if its surroundings prevent the start.
 */
export async function startService({
  config,
  secrets,
  log: baseLog,
  overrides = {},
  variables = {},
}: {
  config: Config;
  secrets: Secrets;
  log: Log;
  overrides?: Overrides;
  /** The environment variables to which `gateway.yaml` may refer by name. */
  variables?: NodeJS.ProcessEnv;
}) {
  await using stack = new AsyncDisposableStack();
  const log = outageLog(keyedLog(baseLog));
  const { path, source } = await readTableText(config.gatewayConfigPath);
  const complete = (table: GatewayConfig) => withDiscovers(table, config.discoversUpstreamUrl);
  const gatewayConfig = complete(parseGatewayConfig(path, source));
  const isWorker = config.role !== 'gateway';
  const lookup = gatewayConfig.transactions_lookup;
  const faults: string[] = [];
  const bearer = isWorker ? lookupBearer(lookup, variables, faults) : undefined;
  if (faults.length > 0) throw new ConfigError(faults);
  // The operations of the console need no listing by the operator.
  const own =
    config.console && config.graphqlPersisted !== 'off' ? await readPersistedDocuments(CONSOLE_OPERATIONS) : undefined;
  const persisted = await openPersistedFile(config.graphqlPersistedFile, log, own);
  if (config.databaseUrl === undefined) await openDataDir(config, stack);
  const context = await createContext({ config, secrets, log, overrides, stack });
  await prepareStores(context);
  await watchDatabaseAge(context, stack);
  const demo =
    config.databaseUrl === undefined ? await (await import('./demo/ensure-demo.ts')).ensureDemo(context) : undefined;
  context.auditWriter.start();
  await context.health.start();
  // Even if the first health check has failed, tokens are issued by the clock of the database.
  context.clock.note(await context.clock.read());
  await context.denied.load();
  await context.changes.start();
  if (isWorker) await startConsumers(context, stack);
  const lookupMetrics = isWorker ? startLookups(context, { lookup, bearer }, stack) : [];
  const calls = new UpstreamCalls(context.telemetry.tracer);
  const upstreams = new Upstreams(gatewayConfig, { ...context, calls });
  stack.defer(() => upstreams.close());
  const reloads = new Reloads({ path, source, table: gatewayConfig, complete, log });
  const metrics = [
    ...metricsOf(context),
    ...lookupMetrics,
    ...(config.role === 'worker' ? [] : [calls.durations, ...upstreamMetrics(upstreams), reloads.inForce]),
  ];
  context.health.watch(() => ({
    ...Object.fromEntries(
      upstreams.all.map(({ name, circuit }) => [`service ${name}`, circuit.kind === 'closed' ? 'ok' : 'unreachable']),
    ),
    'gateway.yaml': reloads.isInForce ? 'ok' : 'rejected',
    webhook: context.rejectedWebhooks.state,
  }));
  let isDraining = false;
  const readiness = (excludesStores: boolean) =>
    readinessOf({
      role: config.role,
      checks: context.health.report().checks,
      hasSeenStores: context.health.hasSeenAll,
      isDraining,
      excludesStores,
    });
  const { database, bus, nowMs, health } = context;
  const onError = (error: unknown) => log.warn({ err: error }, 'could not read part of the status');
  const status = await openStatus({ config, db: database.db, bus }, { nowMs, ownParts: () => health.parts, onError });
  const looks = new MemoizedRead(() => status.read(), STATUS_READ);
  startReports(context, stack);
  const admin = adminServer(readiness, metrics, () => looks.get());
  const adminPort = await listen(admin, { host: config.host, port: config.adminPort, variable: 'ADMIN_PORT' });
  stack.defer(() => closeGracefully(admin, 0));
  const baseUrl =
    config.role === 'worker'
      ? undefined
      : await startPublic(context, { gatewayConfig, upstreams, reloads, persisted, demo }, stack);
  if (demo && baseUrl !== undefined) {
    const { writeDemo } = await import('./demo/demo.ts');
    writeDemo(config.dataDir, demo, { baseUrl: context.publicUrl.value, webhook: context.secrets.webhook });
  }
  if (database.isEmbedded) {
    const { shareDatabase } = await import('../platform/database/instance-link.ts');
    await shareDatabase({ ...database, ...config, log }, stack);
  }
  const running = stack.move();
  return {
    context,
    /** The URL of the public listener; undefined for a worker. */
    baseUrl,
    adminUrl: baseUrlOf(config.host, adminPort),
    /** The demo of an embedded run; undefined with a database server. */
    demo,
    /**
     * Reads `gateway.yaml` and the persisted operations again and puts them in force. Resolves when this is done, or
     * when an issue has been logged and nothing has changed.
     */
    async reload(): Promise<void> {
      await Promise.all([reloads.reload(), persisted.reload()]);
    },
    [Symbol.asyncDispose](): Promise<void> {
      isDraining = true;
      return running.disposeAsync();
    },
  };
}

async function openDataDir(config: Config, stack: AsyncDisposableStack): Promise<void> {
  const lock = lockDataDir(config.dataDir);
  if (!lock) throw inUse(config.dataDir, 'stop it, or set a different DATA_DIR for this one');
  stack.use(lock);
  const { prepareDataDir } = await import('./demo/demo-data-dir.ts');
  await prepareDataDir(config.dataDir);
}

/**
 * Brings the schema and the topics up to date, except in production, and checks what else a start needs.
 * @throws ConfigError if something is missing that a start cannot do without.
 */
async function prepareStores({ config, database, bus, cache, nowMs, log }: Context): Promise<void> {
  if (!config.production) {
    await migrateByOwner({ config, database, onWait: (message) => log.warn({}, `schema migration ${message}`) });
    await bus.ensureTopics(topicsOf(config));
  }
  const stores = database.isEmbedded ? undefined : { database, bus, cache };
  const findings = await checkStart({ config, nowMs, stores });
  const refusals = findings.filter(({ level }) => level === 'fatal');
  if (refusals.length > 0) throw new ConfigError(refusals.map(({ message }) => message));
  for (const { level, message } of findings) log[level === 'warn' ? 'warn' : 'error']({}, message);
}

async function startPublic(
  context: Context,
  {
    gatewayConfig,
    upstreams,
    reloads,
    persisted,
    demo,
  }: {
    gatewayConfig: GatewayConfig;
    upstreams: Upstreams;
    reloads: Reloads;
    persisted: PersistedFile;
    demo: Demo | undefined;
  },
  stack: AsyncDisposableStack,
): Promise<string> {
  const { config, publicUrl } = context;
  const { server, use, giveUp, stopGraphql } = publicServer(context, gatewayConfig, { upstreams, persisted, demo });
  const { host, port: publicPort, reusePort } = config;
  const port = await listen(server, { host, port: publicPort, variable: 'PORT', reusePort });
  const baseUrl = baseUrlOf(config.host, port);
  publicUrl.value = config.publicUrl ?? baseUrl;
  stack.defer(async () => {
    const closed = closeGracefully(server, DRAIN_DEADLINE_MS, giveUp);
    upstreams.stopStreams();
    await stopGraphql();
    await closed;
  });
  startReloads(config, { reloads, use }, stack);
  return baseUrl;
}

/** Starts applying `gateway.yaml` when a reload is requested; in an embedded run also whenever the file changes. */
function startReloads(
  { databaseUrl, gatewayConfigPath }: Config,
  { reloads, use }: { reloads: Reloads; use: (table: GatewayConfig) => void },
  stack: AsyncDisposableStack,
): void {
  reloads.start(use);
  stack.defer(() => reloads.stop());
  if (databaseUrl !== undefined) return;
  stack.use(watchTable(gatewayConfigPath, () => void reloads.fileChanged()));
  // The file may have changed while the process was starting.
  void reloads.fileChanged();
}
