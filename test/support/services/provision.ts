import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findChromium } from './chromium.ts';
import { temporaryFolder } from './folders.ts';
import { startKafka } from './kafka.ts';
import { startPostgres } from './postgres.ts';
import { findPrometheus } from './prometheus.ts';
import { findPython } from './python.ts';
import { startRedis } from './redis.ts';

export type ServerName = 'postgres' | 'redis' | 'kafka';
/** What suites need of the machine: servers, and programs, which each suite starts for itself. */
export type ServiceName = ServerName | ProgramName;

type ProgramName = 'chromium' | 'prometheus' | 'python';

export interface MissingService {
  name: ServiceName;
  reason: string;
}

export interface ProvisionedServices {
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  kafkaBrokers: string | undefined;
  /** The program's path; undefined where the caller did not ask for it. */
  chromium: string | undefined;
  /** The path of a Prometheus that has its promtool beside it; undefined where the caller did not ask for it. */
  prometheus: string | undefined;
  /** The path of a Python that has the MCP client; undefined where the caller did not ask for it. */
  python: string | undefined;
  /** Those that run here, rather than named by the environment. */
  started: ServerName[];
  missing: MissingService[];
  /** Ends what was started and removes its data; services that were named by the environment are left alone. */
  stop(): Promise<void>;
}

interface Service {
  address: string;
  stop(): Promise<void>;
}

interface Source {
  variable: string;
  start(dataDir: string): Promise<Service>;
}

const SERVERS: Record<ServerName, Source> = {
  postgres: {
    variable: 'DATABASE_URL',
    start: async (dataDir) => {
      const { url, stop } = await startPostgres({ dataDir });
      return { address: url, stop };
    },
  },
  redis: {
    variable: 'REDIS_URL',
    start: async (dataDir) => {
      const { url, stop } = await startRedis({ dataDir });
      return { address: url, stop };
    },
  },
  kafka: {
    variable: 'KAFKA_BROKERS',
    start: async (dataDir) => {
      const { brokers, stop } = await startKafka({ dataDir });
      return { address: brokers, stop };
    },
  },
};

const PROGRAMS: Record<ProgramName, { variable: string; find(): string | Promise<string> }> = {
  chromium: { variable: 'CHROMIUM', find: findChromium },
  prometheus: { variable: 'PROMETHEUS', find: findPrometheus },
  python: { variable: 'MCP_PYTHON', find: findPython },
};

/**
 * The three servers that the suites need: those named by DATABASE_URL, REDIS_URL and KAFKA_BROKERS, the others started
 * here; for one who will open pages, the browser of CHROMIUM or of the PATH; for one who will run the alerts, the Prometheus
 * of PROMETHEUS or of the PATH; for one who will run the Python client of MCP, the Python of MCP_PYTHON or of the PATH.
 * TEST_SERVICES, a comma-separated list of names, restricts what is started. A service that cannot be had throws with `CI=true`, and is reported in `missing`
 * elsewhere.
 */
export async function provision(
  environment: NodeJS.ProcessEnv = process.env,
  { browser = false, prometheus: monitor = false, python = false } = {},
): Promise<ProvisionedServices> {
  const root = await temporaryFolder();
  const started = new Map<ServerName, Service>();
  const missing: MissingService[] = [];
  const obtain = async (name: ServiceName): Promise<string | undefined> => {
    const given = environment[variableOf(name)];
    if (given !== undefined && given !== '') return given;
    try {
      if (!isWanted(name, environment)) throw new Error('left out by TEST_SERVICES');
      if (isProgram(name)) return await PROGRAMS[name].find();
      const service = await SERVERS[name].start(join(root, name));
      started.set(name, service);
      return service.address;
    } catch (error) {
      missing.push({ name, reason: error instanceof Error ? error.message : String(error) });
      return undefined;
    }
  };
  const stop = async () => {
    await Promise.all(Array.from(started.values(), (service) => service.stop()));
    await rm(root, { recursive: true, force: true });
  };
  const names = ['postgres', 'redis', 'kafka', 'chromium', 'prometheus', 'python'] as const;
  const [databaseUrl, redisUrl, kafkaBrokers, chromium, prometheus, pythonPath] = await Promise.all([
    obtain('postgres'),
    obtain('redis'),
    obtain('kafka'),
    browser ? obtain('chromium') : undefined,
    monitor ? obtain('prometheus') : undefined,
    python ? obtain('python') : undefined,
  ]);
  missing.sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
  if (environment.CI === 'true' && missing.length > 0) {
    await stop();
    throw new Error(`CI=true, and services of the tests cannot be had:\n${describeMissing(missing)}`);
  }
  const programs = { chromium, prometheus, python: pythonPath };
  return { databaseUrl, redisUrl, kafkaBrokers, ...programs, started: [...started.keys()], missing, stop };
}

function isWanted(name: ServiceName, environment: NodeJS.ProcessEnv): boolean {
  const list = environment.TEST_SERVICES;
  return list === undefined || list.split(',').some((entry) => entry.trim() === name);
}

/** One line for each missing service: its name, the variable that would name another, and the reason. */
export function describeMissing(missing: MissingService[]): string {
  return missing.map(({ name, reason }) => `- ${name} (${variableOf(name)}): ${reason}`).join('\n');
}

function variableOf(name: ServiceName): string {
  return (isProgram(name) ? PROGRAMS[name] : SERVERS[name]).variable;
}

function isProgram(name: ServiceName): name is ProgramName {
  return name in PROGRAMS;
}
