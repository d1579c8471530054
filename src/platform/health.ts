import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { causes } from '../lib/causes.ts';
import { every } from '../lib/shared-ticks.ts';
import { withTimeout } from '../lib/with-timeout.ts';

const PROBE_EVERY_MS = 1_000;
const PROBE_TIMEOUT_MS = 2_000;

const STORES = ['database', 'cache', 'bus'] as const;
export type Store = (typeof STORES)[number];
type StoreState = 'ok' | 'down';

/** The body of the health routes' response. */
export interface HealthReport {
  status: 'ok' | 'degraded' | 'down';
  version: string;
  /** Whole seconds since the process started. */
  uptime: number;
  checks: Record<Store, StoreState> & { audit: 'ok' | 'full' };
}

/** The states of parts by their names; `ok` needs no person. */
type States = Readonly<Record<string, string>>;

/** The version of Portcullis, from `package.json`. */
export const VERSION: string = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
).version;

/** A background probe of the stores, once a second, so that a health request never waits for a store. */
export class Health {
  readonly #probes;
  readonly #isAuditFull: () => boolean;
  #others: () => States = () => ({});
  /** The state of each part, noted once a second, with since when this process has seen it in that state. */
  readonly parts: Record<string, { state: string; since: string; code?: string | undefined }> = {};
  /** The code of the last error of each store. */
  readonly #codes: Record<string, string | undefined> = {};
  /** The state of each store. */
  readonly stores: Record<Store, StoreState> = { database: 'ok', cache: 'ok', bus: 'ok' };
  readonly #seen = new Set<string>();
  readonly #startedTick = performance.now();
  /** The stores that have not answered yet. */
  readonly #probing = new Set<Store>();
  #stopProbing: (() => void) | undefined;

  constructor(probes: Record<Store, () => Promise<void>>, isAuditFull: () => boolean) {
    this.#probes = probes;
    this.#isAuditFull = isAuditFull;
  }

  /** Probes every store once, and then continues in the background. */
  async start(): Promise<void> {
    await this.#look();
    this.#stopProbing = every(PROBE_EVERY_MS, () => void this.#look());
  }

  /** Notes the states of other parts too, which the health routes do not report. */
  watch(others: () => States): void {
    this.#others = others;
  }

  report(): HealthReport {
    const audit = this.#isAuditFull() ? 'full' : 'ok';
    const { database, cache, bus } = this.stores;
    const degraded = cache === 'down' || bus === 'down' ? 'degraded' : 'ok';
    return {
      status: database === 'down' || audit === 'full' ? 'down' : degraded,
      version: VERSION,
      uptime: Math.floor((performance.now() - this.#startedTick) / 1000),
      checks: { ...this.stores, audit },
    };
  }

  /** Whether every store has responded at least once since the start. */
  get hasSeenAll(): boolean {
    return this.#seen.size === Object.keys(this.#probes).length;
  }

  stop(): void {
    this.#stopProbing?.();
  }

  #note(): void {
    const states: States = { ...this.report().checks, ...this.#others() };
    for (const part of Object.keys(this.parts)) if (!(part in states)) delete this.parts[part];
    for (const [part, state] of Object.entries(states))
      if (this.parts[part]?.state !== state)
        this.parts[part] = { state, since: new Date().toISOString(), code: this.#codes[part] };
  }

  async #look(): Promise<void> {
    await Promise.all(STORES.map((store) => this.#probe(store)));
    this.#note();
  }

  async #probe(store: Store): Promise<void> {
    if (this.#probing.has(store)) return;
    this.#probing.add(store);
    const code = await failureOf(this.#probes[store]);
    this.#probing.delete(store);
    const state = code === undefined ? 'ok' : 'down';
    this.stores[store] = state;
    this.#codes[store] = code;
    if (state === 'ok') this.#seen.add(store);
  }
}

/** Returns why a probe failed: the code of its error, or the first word of a reply of Redis; undefined if it did not. */
async function failureOf(probe: () => Promise<void>): Promise<string | undefined> {
  try {
    await withTimeout(probe(), PROBE_TIMEOUT_MS);
    return undefined;
  } catch (error) {
    for (const link of causes(error)) {
      if ('code' in link && typeof link.code === 'string') return link.code;
      const [reply] = /^[A-Z]{2,}\b/.exec(link.message) ?? [];
      if (reply !== undefined) return reply;
    }
    return 'no response';
  }
}

/** The facts on which the readiness of a process depends. */
export interface ReadinessFacts {
  role: 'all' | 'gateway' | 'worker';
  checks: HealthReport['checks'];
  /** Whether every store has responded to this process at least once. */
  hasSeenStores: boolean;
  /** Whether the process is stopping: it finishes the work it has and accepts no new work. */
  isDraining: boolean;
  /** Whether stores that are down leave the process ready, since they are down for all processes. */
  excludesStores: boolean;
}

/** The body of the response of `/readyz`. */
export interface Readiness {
  status: 'ok' | 'degraded' | 'starting' | 'down' | 'draining';
  checks: HealthReport['checks'];
}

/** The stores without which a role can do none of its work; any other store that is down prevents only part of it. */
const NEEDS = {
  all: ['database'],
  gateway: ['database'],
  worker: ['database', 'bus'],
} as const satisfies Record<ReadinessFacts['role'], readonly Store[]>;

/**
 * Returns the readiness of a process: `down` if it can do none of its role's work, `degraded` if it can do part of it.
 * A store that is down is down for all processes: if that made them unready, a load balancer would stop sending
 * requests to any of them. A full audit spool is only this process's own: its gateway refuses every request. A store that has never responded to this process may be misconfigured only in it: the
 * status is then `starting`, which is not ready.
 */
export function readinessOf(facts: ReadinessFacts): Readiness {
  const { role, checks, hasSeenStores, isDraining, excludesStores } = facts;
  const isWhole = Object.values(checks).every((state) => state === 'ok');
  const isStuck = !excludesStores && NEEDS[role].some((part) => checks[part] === 'down');
  const isDown = isStuck || (checks.audit === 'full' && role !== 'worker');
  const partly = hasSeenStores || excludesStores ? 'degraded' : 'starting';
  return { status: isDraining ? 'draining' : isDown ? 'down' : isWhole ? 'ok' : partly, checks };
}

/** Checks whether a load balancer should send requests to the process. */
export function isReady({ status }: Readiness): boolean {
  return status === 'ok' || status === 'degraded';
}
