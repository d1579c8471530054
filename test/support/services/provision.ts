import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findChromium } from './chromium.ts';
import { temporaryFolder } from './folders.ts';
import { startKafka } from './kafka.ts';
import { startPostgres } from './postgres.ts';
import { findPrometheus } from './prometheus.ts';
import { findPython } from './python.ts';
import { startRedis } from './redis.ts';

/** What suites need of the machine, servers and programs, and the variable that names another one. */
export const VARIABLES = {
  postgres: 'DATABASE_URL',
  redis: 'REDIS_URL',
  kafka: 'KAFKA_BROKERS',
  chromium: 'CHROMIUM',
  prometheus: 'PROMETHEUS',
  python: 'MCP_PYTHON',
} as const;

export type ServiceName = keyof typeof VARIABLES;
/** The URLs of servers, Kafka's brokers separated by commas, and the paths of programs. */
export type Addresses = Partial<Record<ServiceName, string>>;

export interface MissingService {
  name: ServiceName;
  reason: string;
}

export interface ProvisionedServices {
  addresses: Addresses;
  /** The servers that run here, rather than named by the environment. */
  started: ServiceName[];
  missing: MissingService[];
  /** Stops the started servers and removes their data. */
  stop(): Promise<void>;
}

/** A server that runs here, or a program, which each suite starts for itself. */
interface Service {
  address: string;
  stop?(): Promise<void>;
}

const SOURCES: Record<ServiceName, (dataDir: string) => Service | Promise<Service>> = {
  postgres: async (dataDir) => {
    const { url, stop } = await startPostgres({ dataDir, takesPasswords: true });
    return { address: url, stop };
  },
  redis: async (dataDir) => {
    const { url, stop } = await startRedis({ dataDir });
    return { address: url, stop };
  },
  kafka: async (dataDir) => {
    const { brokers, stop } = await startKafka({ dataDir });
    return { address: brokers, stop };
  },
  chromium: () => ({ address: findChromium() }),
  prometheus: () => ({ address: findPrometheus() }),
  python: async () => ({ address: await findPython() }),
};
const SERVERS: readonly ServiceName[] = ['postgres', 'redis', 'kafka'];
/** The servers, and the programs for browser tests, alerts and the Python client of MCP. */
export const EVERYTHING: readonly ServiceName[] = [...SERVERS, 'chromium', 'prometheus', 'python'];

/**
 * Returns the named services: those that the environment names, the other servers started here, and the other programs
 * of the PATH. TEST_SERVICES, a comma-separated list of names, restricts what is started. A service that cannot be had
 * throws with `CI=true`, and is reported in `missing` elsewhere.
 */
export async function provision(
  environment: NodeJS.ProcessEnv = process.env,
  names = SERVERS,
): Promise<ProvisionedServices> {
  const root = await temporaryFolder();
  const wanted = environment.TEST_SERVICES?.split(',').map((name) => name.trim());
  const running = new Map<ServiceName, () => Promise<void>>();
  const reasons = new Map<ServiceName, string>();
  const addresses: Addresses = {};
  const obtain = async (name: ServiceName) => {
    const given = environment[VARIABLES[name]];
    if (given !== undefined && given !== '') {
      addresses[name] = given;
      return;
    }
    try {
      if (wanted && !wanted.includes(name)) throw new Error('left out by TEST_SERVICES');
      const { address, stop } = await SOURCES[name](join(root, name));
      addresses[name] = address;
      if (stop) running.set(name, stop);
    } catch (error) {
      reasons.set(name, error instanceof Error ? error.message : String(error));
    }
  };
  await Promise.all(names.map(obtain));
  const stop = async () => {
    await Promise.all([...running.values()].map((end) => end()));
    await rm(root, { recursive: true, force: true });
  };
  const missing = names.flatMap((name) => ({ name, reason: reasons.get(name) ?? '' })).filter(({ reason }) => reason);
  if (environment.CI === 'true' && missing.length > 0) {
    await stop();
    throw new Error(`CI=true, and services of the tests cannot be had:\n${describeMissing(missing)}`);
  }
  return { addresses, started: [...running.keys()], missing, stop };
}

/** Returns a line for each missing service: its name, the variable that would name another, and the reason. */
export function describeMissing(missing: readonly MissingService[]): string {
  return missing.map(({ name, reason }) => `- ${name} (${VARIABLES[name]}): ${reason}`).join('\n');
}
