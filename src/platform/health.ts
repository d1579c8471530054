import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withTimeout } from '../lib/with-timeout.ts';

const PROBE_EVERY_MS = 1_000;
const PROBE_TIMEOUT_MS = 2_000;

type StoreState = 'ok' | 'down';

/** The body of the health routes. */
export interface HealthReport {
  status: 'ok' | 'degraded' | 'down';
  version: string;
  /** Seconds since the start. */
  uptime: number;
  checks: { database: StoreState; cache: StoreState; bus: StoreState };
}

type HealthProbes = Record<keyof HealthReport['checks'], () => Promise<void>>;

/** The version of this product. */
export const VERSION: string = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
).version;

/** Probes the stores in the background, once a second: a call of the health route costs nothing and waits for no store. */
export class Health {
  readonly #probes: HealthProbes;
  readonly #checks: HealthReport['checks'] = { database: 'ok', cache: 'ok', bus: 'ok' };
  readonly #seen = new Set<string>();
  readonly #startedTick = performance.now();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #stopped = false;

  constructor(probes: HealthProbes) {
    this.#probes = probes;
  }

  /** Probes every store once and goes on in the background. */
  async start(): Promise<void> {
    await Promise.all((['database', 'cache', 'bus'] as const).map((store) => this.#probe(store)));
  }

  report(): HealthReport {
    const { database, cache, bus } = this.#checks;
    const degraded = cache === 'down' || bus === 'down' ? 'degraded' : 'ok';
    return {
      status: database === 'down' ? 'down' : degraded,
      version: VERSION,
      uptime: Math.floor((performance.now() - this.#startedTick) / 1000),
      checks: { ...this.#checks },
    };
  }

  /** Whether each store has answered since the start. */
  get hasSeenAll(): boolean {
    return this.#seen.size === Object.keys(this.#probes).length;
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  async #probe(store: keyof HealthReport['checks']): Promise<void> {
    const state = await stateOf(this.#probes[store]);
    this.#checks[store] = state;
    if (state === 'ok') this.#seen.add(store);
    if (this.#stopped) return;
    const timer = setTimeout(() => void this.#probe(store), PROBE_EVERY_MS);
    timer.unref();
    this.#timers.set(store, timer);
  }
}

async function stateOf(probe: () => Promise<void>): Promise<StoreState> {
  try {
    await withTimeout(probe(), PROBE_TIMEOUT_MS);
    return 'ok';
  } catch {
    return 'down';
  }
}

/** What readiness depends on. */
export interface ReadinessFacts {
  role: 'all' | 'gateway' | 'worker';
  checks: HealthReport['checks'];
  /** Each store has answered this process once. */
  hasSeenStores: boolean;
  /** Whether the process stops: it finishes what it has and takes nothing new. */
  isDraining: boolean;
  /** Whether no audit record can be stored: requests are refused. */
  isAuditFull: boolean;
  /** Whether only the process itself counts: a store that is down is down for all processes. */
  excludesStores: boolean;
}

/** The body of `/readyz`. */
export interface Readiness {
  status: 'ok' | 'degraded' | 'starting' | 'down' | 'draining';
  checks: HealthReport['checks'] & { audit: 'ok' | 'full' };
}

/** The stores without which a role can do nothing. Any other that is down costs it a part of its work. */
const NEEDS = {
  all: ['database'],
  gateway: ['database'],
  worker: ['database', 'bus'],
} as const satisfies Record<ReadinessFacts['role'], readonly (keyof HealthReport['checks'])[]>;

/**
 * Returns whether a process can do the work of its role: `down` where it can do none of it, `degraded` where it can do a
 * part. A store that is down is down for all processes: if a load balancer took them out for it, none would serve the rest.
 * A store that a process has never reached may be its own fault, a wrong address: then it is `starting`.
 */
export function readinessOf(facts: ReadinessFacts): Readiness {
  const { role, checks, hasSeenStores, isDraining, isAuditFull, excludesStores } = facts;
  const audit = isAuditFull ? 'full' : 'ok';
  const isWhole = Object.values(checks).every((state) => state === 'ok');
  const isStuck = !excludesStores && NEEDS[role].some((part) => checks[part] === 'down');
  const isDown = isStuck || (isAuditFull && role !== 'worker');
  const partly = hasSeenStores || excludesStores ? 'degraded' : 'starting';
  const status = isDraining ? 'draining' : isDown ? 'down' : isWhole ? 'ok' : partly;
  return { status, checks: { ...checks, audit } };
}

/** Returns whether a load balancer should send requests to the process. */
export function isReady({ status }: Readiness): boolean {
  return status === 'ok' || status === 'degraded';
}
