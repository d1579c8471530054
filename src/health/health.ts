import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inTime } from '../lib/patience.ts';

const PROBE_EVERY_MS = 1_000;
const PROBE_TIMEOUT_MS = 2_000;

type PartState = 'ok' | 'down';

/** The answer of the health routes (decisions: other routes). */
export interface HealthReport {
  status: 'ok' | 'degraded' | 'down';
  version: string;
  /** Seconds since the start. */
  uptime: number;
  checks: { database: PartState; cache: PartState; bus: PartState };
}

export type HealthProbes = Record<keyof HealthReport['checks'], () => Promise<void>>;

/** Of this product. */
export const VERSION: string = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
).version;

/** Probes the parts in the background, once a second: a call of the health route costs nothing and waits for nobody. */
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

  /** Probes every part once and goes on in the background. */
  async start(): Promise<void> {
    await Promise.all((['database', 'cache', 'bus'] as const).map((part) => this.#probe(part)));
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

  /** Whether each part has answered since the start. */
  get hasSeenAll(): boolean {
    return this.#seen.size === Object.keys(this.#probes).length;
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  async #probe(part: keyof HealthReport['checks']): Promise<void> {
    const state = await answersInTime(this.#probes[part]);
    this.#checks[part] = state;
    if (state === 'ok') this.#seen.add(part);
    if (this.#stopped) return;
    const timer = setTimeout(() => void this.#probe(part), PROBE_EVERY_MS);
    timer.unref();
    this.#timers.set(part, timer);
  }
}

async function answersInTime(probe: () => Promise<void>): Promise<PartState> {
  try {
    await inTime(probe(), PROBE_TIMEOUT_MS);
    return 'ok';
  } catch {
    return 'down';
  }
}
