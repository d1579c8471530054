import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A running instance of a release, as its own code started it. The few parts of it that are needed here have these shapes in 0.1.0. */
export interface ReleaseInstance {
  url: string;
  demo: ReleaseDemo;
  webhook: string;
  context: {
    bus: Bus;
    auditWriter: Stoppable;
    outbox: Stoppable;
    migrationJobs: Stoppable;
    database: { db: { unscoped(reason: string): { raw<Row>(build: (sql: Sql) => unknown): Promise<Row[]> } } };
  };
  /** Takes no further message of the bus. */
  stopConsumers(): Promise<void>;
}

export interface ReleaseDemo {
  node_id: string;
  account_id: string;
  wallet_id: string;
  user_id: string;
  asset_id: string;
  network_id: string;
  second_network_id: string;
  network_currency_id: string;
  client: { client_id: string; client_secret: string };
  supervisor: { username: string; password: string };
  transactions: Record<string, string>;
}

interface Stoppable {
  stop(deadlineMs?: number): Promise<void>;
}

interface Bus {
  publish(
    messages: { topic: string; key: string; value: Buffer | null; headers: Record<string, string> }[],
  ): Promise<void>;
  subscribe(options: object): Promise<Stoppable>;
}

type Sql = (strings: TemplateStringsArray, ...values: unknown[]) => unknown;

/**
 * Starts the product of another source tree in this process, with that tree's own modules. What is returned is stopped by the end of the
 * process alone, as one that is killed.
 */
export async function startRelease(tree: string, variables: Record<string, string>): Promise<ReleaseInstance> {
  const load = (path: string) => import(join(tree, 'src', path));
  const [{ readConfig }, { readSecrets }, { startService }, { ensureDemo }, { pinoLog }] = await Promise.all(
    ['config/config.ts', 'config/secrets.ts', 'service.ts', 'demo/ensure-demo.ts', 'lib/pino-log.ts'].map(load),
  );
  const { config, env } = readConfig({ PORT: '0', ADMIN_PORT: '0', LOG_LEVEL: 'warn', ...variables });
  const secrets = readSecrets(config, env);
  const subscriptions: Stoppable[] = [];
  const watched = (bus: Bus): Bus =>
    new Proxy(bus, {
      get: (target, name) => {
        const member = Reflect.get(target, name);
        if (name === 'subscribe') {
          return async (options: object) => {
            const subscription = await target.subscribe(options);
            subscriptions.push(subscription);
            return subscription;
          };
        }
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  const log = await pinoLog(config.logLevel);
  const service = await startService({ config, secrets, log, overrides: { bus: watched }, variables });
  await ensureDemo(service.context);
  const { webhook, ...demo } = JSON.parse(readFileSync(join(config.dataDir, 'demo.json'), 'utf8'));
  return {
    url: service.baseUrl,
    demo,
    webhook: `Basic ${Buffer.from(`${webhook.username}:${webhook.password}`).toString('base64')}`,
    context: service.context,
    stopConsumers: async () => {
      await Promise.all(subscriptions.map((subscription) => subscription.stop()));
    },
  };
}
