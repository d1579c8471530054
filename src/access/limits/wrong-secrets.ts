import type { Metric } from 'prom-client';
import { gauge } from '../../lib/meters.ts';

/** How far apart two wrong secrets of a client may be, in ms, to count as one run. */
const GAP_MS = 5 * 60_000;

/** A run of wrong secrets of one client; `isWrong` says that its last secret was wrong. */
interface Run {
  sinceMs: number;
  lastMs: number;
  isWrong: boolean;
}

/** Notes since when clients show wrong secrets, as after a rotation that one of their servers has missed. */
export class WrongSecrets {
  readonly #runs = new Map<string, Run>();
  readonly #nowMs: () => number;
  readonly longest: Metric = gauge(
    'portcullis_client_secrets_wrong_seconds',
    'Longest time over which one client has sent wrong secrets, at most five minutes apart; 0 if its last one was right.',
    () => this.#longestSeconds(),
  );

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Notes a secret of a client that exists. A right one interrupts a run, which the next wrong one continues. */
  note(clientId: string, isWrong: boolean): void {
    const run = this.#runs.get(clientId);
    if (!run && !isWrong) return;
    const nowMs = this.#nowMs();
    const { sinceMs, lastMs } = run && nowMs - run.lastMs <= GAP_MS ? run : { sinceMs: nowMs, lastMs: nowMs };
    this.#runs.set(clientId, { sinceMs, lastMs: isWrong ? nowMs : lastMs, isWrong });
  }

  #longestSeconds(): number {
    const nowMs = this.#nowMs();
    for (const [clientId, { lastMs }] of this.#runs) if (nowMs - lastMs > GAP_MS) this.#runs.delete(clientId);
    const wrong = this.#runs.values().filter(({ isWrong }) => isWrong);
    return Math.max(0, ...wrong.map(({ sinceMs, lastMs }) => (lastMs - sinceMs) / 1_000));
  }
}
