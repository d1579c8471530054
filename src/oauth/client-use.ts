import { monthText } from '../cache/request-counts.rules.ts';
import type { ClientRecord } from '../clients/client-record.ts';
import type { LastUseRow, QuotaRow } from './client-usage.ts';

/** A client's use of one month as this process knows it. */
interface MonthUse {
  readonly monthAt: number;
  /** Whether the cache or the database has told anything yet. */
  isKnown: boolean;
  /** The largest count that the cache or the database has told. */
  seen: number;
  /** Counted here without the cache: on its way to the database, and not yet. */
  saving: number;
  own: number;
  /** What the database has. */
  saved: number;
}

/** What this process knows of a client's use, and what of it the database does not have yet. */
export class ClientUse {
  readonly clientId: string;
  readonly nodeId: string;
  /** The cache's generation in which it was last told what the database has. */
  generation: number | undefined;
  /** What the database has, while it is being asked. */
  seeding: { monthAt: number; count: Promise<number> } | undefined;
  /** A count that the cache may not have. */
  #seed: number | undefined;
  #lastUsedAtMs = 0;
  #savedLastUsedAtMs = 0;
  #month: MonthUse | undefined;
  /** Months that have ended and are not saved. */
  #earlier: MonthUse[] = [];

  constructor({ clientId, nodeId }: ClientRecord) {
    this.clientId = clientId;
    this.nodeId = nodeId;
  }

  /** A request was counted, or there was nothing to count. */
  used(atMs: number): void {
    if (atMs > this.#lastUsedAtMs) this.#lastUsedAtMs = atMs;
  }

  /** The cache or the database has told a count. */
  saw(monthAt: number, count: number): void {
    const month = this.#of(monthAt);
    if (!month) return;
    month.isKnown = true;
    // An older one: the cache has lost what it told before.
    if (count < month.seen) this.#seed = month.seen;
    else month.seen = count;
  }

  /** This process has counted a request by itself. */
  countedAlone(monthAt: number): void {
    const month = this.#of(monthAt);
    if (month) month.own += 1;
  }

  /** All that is known to be used of a month; undefined where nothing is. */
  known(monthAt: number): number | undefined {
    const month = this.#month;
    return month?.isKnown && month.monthAt === monthAt ? month.seen + month.saving + month.own : undefined;
  }

  /** The count that the cache is to be told with the next request, once; undefined where there is none. */
  takeSeed(monthAt: number): number | undefined {
    if (this.#seed === undefined || this.#month?.monthAt !== monthAt) return undefined;
    const seed = this.#seed;
    this.#seed = undefined;
    return seed;
  }

  /** All that is known to be used of a month, for the cache: what was counted here is part of what it tells from now on. */
  handOver(monthAt: number): number {
    const month = this.#month;
    if (month?.monthAt !== monthAt) return 0;
    month.seen += month.own;
    month.own = 0;
    return month.seen + month.saving;
  }

  get isSaved(): boolean {
    const month = this.#month;
    return this.#lastUsedAtMs <= this.#savedLastUsedAtMs && this.#earlier.length === 0 && !(month && isUnsaved(month));
  }

  /** What to save. Call `done` or `failed` of the result before the next call. */
  takeUnsaved(monthAt?: number): Unsaved {
    if (monthAt !== undefined) this.#of(monthAt);
    const months = [...this.#earlier, ...(this.#month ? [this.#month] : [])].filter(
      (month) => isUnsaved(month) || month.monthAt === monthAt,
    );
    const quotas = months.map((month) => {
      month.saving = month.own;
      month.own = 0;
      return this.#row(month);
    });
    const lastUsedAtMs = this.#lastUsedAtMs;
    return {
      quotas,
      lastUses:
        lastUsedAtMs > this.#savedLastUsedAtMs ? [{ clientId: this.clientId, nodeId: this.nodeId, lastUsedAtMs }] : [],
      done: (used) => {
        this.#savedLastUsedAtMs = lastUsedAtMs;
        for (const [at, month] of months.entries()) this.#isSaved(month, quotas[at]?.seen ?? 0, used[at]);
        this.#earlier = this.#earlier.filter(isUnsaved);
      },
      failed: () => {
        for (const month of months) {
          month.own += month.saving;
          month.saving = 0;
        }
      },
    };
  }

  #isSaved(month: MonthUse, told: number, used: number | undefined): void {
    month.saving = 0;
    month.isKnown = true;
    // A client that is gone is not saved again.
    month.saved = used ?? Number.POSITIVE_INFINITY;
    if (used === undefined) return;
    month.seen = Math.max(month.seen, used);
    if (used > told && month === this.#month) this.#seed = Math.max(this.#seed ?? 0, used);
  }

  #of(monthAt: number): MonthUse | undefined {
    const month = this.#month;
    if (month && month.monthAt >= monthAt) return month.monthAt === monthAt ? month : undefined;
    if (month && isUnsaved(month)) this.#earlier.push(month);
    this.#seed = undefined;
    this.#month = { monthAt, isKnown: false, seen: 0, saving: 0, own: 0, saved: 0 };
    return this.#month;
  }

  #row({ monthAt, seen, saving }: MonthUse): QuotaRow {
    return { clientId: this.clientId, nodeId: this.nodeId, month: monthText(monthAt), seen, own: saving };
  }
}

/** What a client's use adds to the database. */
export interface Unsaved {
  quotas: QuotaRow[];
  lastUses: LastUseRow[];
  /** The counts that the database has now, in the order of `quotas`. */
  done(used: readonly (number | undefined)[]): void;
  failed(): void;
}

function isUnsaved({ seen, own, saving, saved }: MonthUse): boolean {
  return own > 0 || saving > 0 || seen > saved;
}
