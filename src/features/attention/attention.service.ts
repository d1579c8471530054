import type { Expression, ExpressionBuilder, SqlBool } from 'kysely';
import { type LoginLocks, WINDOW_MS } from '../../access/credentials/login-locks.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { monthAtOf, monthText, NEAR_SHARE } from '../../platform/cache/counts.rules.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Scoped } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';
import { STATUS } from '../../tables/transaction-content.ts';

/** The kinds of what needs a person's decision, with the permission that shows each. */
export const ATTENTION_NEEDS = {
  failed: 'transactions:read',
  stuck: 'transactions:read',
  conflict: 'transactions:read',
  locked: 'clients:manage',
  quota: 'clients:manage',
  migration: 'users:read',
} as const;

/** Things of one kind that need a decision for one reason. */
export interface Attention {
  kind: keyof typeof ATTENTION_NEEDS;
  /** What they have in common: the error of failed transactions, the status code of stuck ones; null if the kind says it. */
  reason: string | null;
  count: number;
  /** When the first of them became so, in ISO 8601. */
  since: string;
  /** The ids of the first of them. */
  ids: string[];
}

type Found = Omit<Attention, 'kind'>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How many transactions of a kind are looked at, the last registered. */
const COUNTED = 1_000;
const NAMED = 10;

interface AttentionDependencies {
  db: Db;
  locks: Pick<LoginLocks, 'lockedUntil'>;
  nowMs(): number;
}

/** Finds what needs a person's decision in a tenant. */
export class AttentionFinder {
  readonly #deps: AttentionDependencies;

  constructor(deps: AttentionDependencies) {
    this.#deps = deps;
  }

  /** Returns what needs a decision, of the kinds that the permissions show. */
  async find(nodeId: string, permissions: ReadonlySet<string>): Promise<Attention[]> {
    const now = this.#deps.nowMs();
    const before = (ms: number) => `${Math.floor((now - ms) / 1_000)}`;
    const finders: Record<Attention['kind'], () => Promise<Found[]>> = {
      failed: () =>
        this.#transactions(nodeId, 'error', (eb) => [
          eb('status', '=', STATUS.Error),
          eb('updated_seconds', '>=', before(DAY_MS)),
        ]),
      stuck: () =>
        this.#transactions(nodeId, 'status', (eb) => [
          eb('status', 'in', [STATUS.Started, STATUS.InProgress, STATUS.PendingReceipt]),
          eb('updated_seconds', '<', before(HOUR_MS)),
        ]),
      conflict: () => this.#transactions(nodeId, 'done_seen', (eb) => [eb.ref('done_seen'), eb.ref('error_seen')]),
      locked: () => this.#locked(nodeId),
      quota: () => this.#quotas(nodeId, now),
      migration: () => this.#migrations(nodeId, now),
    };
    const groups = (Object.entries(finders) as [Attention['kind'], () => Promise<Found[]>][])
      .filter(([kind]) => permissions.has(ATTENTION_NEEDS[kind]))
      .map(async ([kind, find]) => (await find()).map((group) => ({ kind, ...group })));
    return (await Promise.all(groups)).flat();
  }

  /** Groups the transactions that meet conditions by a column, the largest group first. */
  async #transactions(
    nodeId: string,
    reason: 'error' | 'status' | 'done_seen',
    where: (eb: ExpressionBuilder<Scoped<Tables>, 'transactions'>) => Expression<SqlBool>[],
  ): Promise<Found[]> {
    const rows = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .selectFrom(
          k
            .selectFrom('transactions')
            .select(['id', 'updated_seconds', `${reason} as reason`])
            .where((eb) => eb.and(where(eb)))
            .orderBy('registered_at', 'desc')
            .limit(COUNTED)
            .as('found'),
        )
        .select((eb) => [
          'reason',
          eb.fn.countAll<string>().as('count'),
          eb.fn.min<string>('updated_seconds').as('since'),
          eb.fn.agg<string[]>('array_agg', ['id']).as('ids'),
        ])
        .groupBy('reason')
        .orderBy('count', 'desc'),
    );
    return rows.map(({ reason, count, since, ids }) => ({
      reason: reason === null || typeof reason === 'boolean' ? null : `${reason}`,
      count: Number(count),
      since: new Date(Number(since) * 1_000).toISOString(),
      ids: ids.slice(0, NAMED),
    }));
  }

  /** The supervisors who are locked after wrong passwords. */
  async #locked(nodeId: string): Promise<Found[]> {
    const { db, locks } = this.#deps;
    const supervisors = await db
      .forNode(nodeId)
      .run((k) => k.selectFrom('supervisors').select(['id', 'username']).where('status', '=', 'active').limit(COUNTED));
    const locked = await locks.lockedUntil(
      nodeId,
      supervisors.map(({ username }) => username),
    );
    return supervisors.flatMap(({ id, username }) => {
      const untilMs = locked.get(username);
      return untilMs === undefined
        ? []
        : [{ reason: username, count: 1, since: new Date(untilMs - WINDOW_MS).toISOString(), ids: [id] }];
    });
  }

  /** The clients that have used nearly all requests of the month. */
  async #quotas(nodeId: string, nowMs: number): Promise<Found[]> {
    const rows = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .selectFrom('client_quotas')
        .innerJoin('clients', 'clients.id', 'client_quotas.client_id')
        .select(['clients.id', 'clients.name', 'used', 'monthly_limit', 'last_used_at'])
        .where('month', '=', monthText(monthAtOf(nowMs)))
        .where('clients.status', '=', 'active'),
    );
    return rows
      .filter(({ used, monthly_limit: limit }) => limit !== null && Number(used) >= NEAR_SHARE * limit)
      .map(({ id, used, monthly_limit: limit, last_used_at: at }) => ({
        reason: `${used} of ${limit}`,
        count: 1,
        since: at === null ? new Date(nowMs).toISOString() : isoFromPg(at),
        ids: [id],
      }));
  }

  /** The migrations of the last seven days that failed, or of which rows did. */
  async #migrations(nodeId: string, nowMs: number): Promise<Found[]> {
    const rows = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .selectFrom('migrations')
        .select(['id', 'failed', 'status', 'created_at'])
        .where('created_at', '>', new Date(nowMs - 7 * DAY_MS).toISOString())
        .where('dry_run', '=', false)
        .where((eb) => eb.or([eb('failed', '>', 0), eb('status', '=', 'failed')]))
        .orderBy('created_at', 'desc')
        .limit(NAMED),
    );
    return rows.map(({ id, failed, status, created_at: at }) => ({
      reason: status,
      count: failed,
      since: isoFromPg(at),
      ids: [id],
    }));
  }
}
