import { createHash } from 'node:crypto';
import type { Expression, ExpressionBuilder, Selectable, SqlBool } from 'kysely';
import { type LoginLocks, WINDOW_MS } from '../../access/credentials/login-locks.ts';
import type { Principal } from '../../access/identity/callers.ts';
import type { Permission } from '../../access/identity/permissions.rules.ts';
import { cutTo } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { monthAtOf, monthText, NEAR_SHARE } from '../../platform/cache/counts.rules.ts';
import type { Db, ScopedTables } from '../../platform/database/database.ts';
import { Refusal } from '../../platform/errors.ts';
import type { Tables } from '../../tables/tables.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import { STATUS } from '../../tables/transaction-content.ts';

/** The kinds of what needs a person's decision, with the permission that shows each, and the one to mark it as seen. */
export const ATTENTION_NEEDS = {
  failed: ['transactions:read', 'transactions:write'],
  stuck: ['transactions:read', 'transactions:write'],
  conflict: ['transactions:read', 'transactions:write'],
  locked: ['clients:manage', 'clients:manage'],
  quota: ['clients:manage', 'clients:manage'],
  migration: ['users:read', 'users:migrate'],
} as const satisfies Record<string, readonly [shows: Permission, marks: Permission]>;

/** A group that somebody has seen; times are PostgreSQL's text in UTC, to the microsecond. */
export type SeenRow = Selectable<Tables['seen_attention']>;

/** Things of one kind that need a decision for one reason. */
export interface Attention {
  /** Tells the group from others, and from itself with other things in it. */
  id: string;
  kind: keyof typeof ATTENTION_NEEDS;
  /** What they have in common: the error of failed transactions, the status code of stuck ones; null if the kind says it. */
  reason: string | null;
  count: number;
  /** When the first of them became so, in ISO 8601. */
  since: string;
  /** The ids of the first of them. */
  ids: string[];
  /** Null if nobody has seen it, or something has joined it since. */
  seen: SeenRow | null;
}

/** A group as it is found: `key` tells it from others of its kind where the reason does not; `members` are what is in it, where that is more than the ids. */
type Found = Pick<Attention, 'reason' | 'count' | 'since' | 'ids'> & { key?: string; members?: string[] };
type Group = Attention & Pick<SeenRow, 'key' | 'members'>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How many transactions of a kind, or of a status of the stuck ones, are looked at: the last registered. */
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
  async find({ nodeId, permissions }: Pick<Principal, 'nodeId' | 'permissions'>): Promise<Group[]> {
    const [groups, seen] = await Promise.all([
      this.#groups(nodeId, permissions),
      this.#deps.db
        .forNode(nodeId)
        .run((k) => k.selectFrom('seen_attention').selectAll().where('seen_at', '>', this.#keptSince())),
    ]);
    return groups.map((group) => ({
      ...group,
      seen:
        seen.find(
          ({ kind, key, members }) =>
            kind === group.kind && key === group.key && new Set(members).isSupersetOf(new Set(group.members)),
        ) ?? null,
    }));
  }

  /**
   * Marks a group as seen for all people of the tenant, with a note, or as not seen. It stays so for 30 days while nothing
   * joins it.
   * @throws Refusal `precondition_failed` unless one group is meant: one with this id may have changed since it was read;
   * `forbidden` without the permission to mark its kind.
   */
  async mark(
    caller: Pick<Principal, 'nodeId' | 'permissions' | 'subject'>,
    meant: { kind: Attention['kind']; reason?: string | null | undefined; id?: string | null | undefined },
    isSeen: boolean,
    note: string | null,
  ): Promise<Attention> {
    const [group, other] = (await this.find(caller)).filter(
      (one) =>
        one.kind === meant.kind && one.reason === (meant.reason ?? one.reason) && one.id === (meant.id ?? one.id),
    );
    if (!group || other)
      throw new Refusal('precondition_failed', {
        message: other
          ? 'several groups are of this kind and reason: give the id of one'
          : 'there is no such group, or something has joined or left it meanwhile: look at it again',
      });
    const { kind, key, members } = group;
    const [, permission] = ATTENTION_NEEDS[kind];
    if (!caller.permissions.has(permission)) throw new Refusal('forbidden', { permission });
    const { run } = this.#deps.db.forNode(caller.nodeId);
    const own = isSeen ? [] : [{ kind, key }];
    await run((k) =>
      k
        .deleteFrom('seen_attention')
        .where((eb) => eb.or([eb('seen_at', '<=', this.#keptSince()), ...own.map((group) => eb.and(group))])),
    );
    if (!isSeen) return { ...group, seen: null };
    const nowMs = this.#deps.nowMs();
    const mark = {
      ...{ members, note, seen_at: new Date(nowMs).toISOString() },
      seen_by: cutTo(caller.subject, MAX_LENGTHS.seen_attention.seen_by),
    };
    // Of two people who mark it at once, both have; the last one's note stays.
    const [seen = null] = await run((k) =>
      k
        .insertInto('seen_attention')
        .values({ id: uuidV7(nowMs), kind, key, ...mark })
        .onConflict((conflict) => conflict.constraint('seen_attention_group').doUpdateSet(mark))
        .returningAll(),
    );
    return { ...group, seen };
  }

  #keptSince(): string {
    return new Date(this.#deps.nowMs() - 30 * DAY_MS).toISOString();
  }

  /** Returns the groups of the kinds that the permissions show; none is seen. */
  async #groups(nodeId: string, permissions: ReadonlySet<string>): Promise<Group[]> {
    const now = this.#deps.nowMs();
    const before = (ms: number) => `${Math.floor((now - ms) / 1_000)}`;
    const finders: Record<Attention['kind'], () => Promise<Found[]>> = {
      failed: () =>
        this.#transactions(nodeId, 'error', (eb) => [
          eb('status', '=', STATUS.Error),
          eb('updated_seconds', '>=', before(DAY_MS)),
        ]),
      // One statement for each status: the index has its last ones in order, and those of several would all be read.
      stuck: async () =>
        (
          await Promise.all(
            [STATUS.Started, STATUS.InProgress, STATUS.PendingReceipt].map((status) =>
              this.#transactions(nodeId, 'status', (eb) => [
                eb('status', '=', status),
                eb('updated_seconds', '<', before(HOUR_MS)),
              ]),
            ),
          )
        ).flat(),
      conflict: () => this.#transactions(nodeId, 'done_seen', (eb) => [eb.ref('done_seen'), eb.ref('error_seen')]),
      locked: () => this.#locked(nodeId),
      quota: () => this.#quotas(nodeId, now),
      migration: () => this.#migrations(nodeId, now),
    };
    const found = (Object.entries(finders) as [Attention['kind'], () => Promise<Found[]>][])
      .filter(([kind]) => permissions.has(ATTENTION_NEEDS[kind][0]))
      .map(async ([kind, find]) => (await find()).map((group) => groupOf(kind, group)));
    return (await Promise.all(found)).flat();
  }

  /** Groups the transactions that meet conditions by a column, the largest group first. */
  async #transactions(
    nodeId: string,
    reason: 'error' | 'status' | 'done_seen',
    where: (eb: ExpressionBuilder<ScopedTables, 'transactions'>) => Expression<SqlBool>[],
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
      ids,
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
        : [
            {
              reason: username,
              count: 1,
              since: new Date(untilMs - WINDOW_MS).toISOString(),
              ids: [id],
              key: id,
              members: [`${id} ${untilMs}`],
            },
          ];
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
        key: id,
        members: [`${id} ${monthText(monthAtOf(nowMs))} ${Number(used) >= Number(limit)}`],
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
      key: id,
      members: [`${id} ${status} ${failed}`],
    }));
  }
}

/** A group as the database compares it: the error that its things have in common may be of any length. */
function groupOf(kind: Attention['kind'], { key, members, ids, ...found }: Found): Group {
  const group = { kind, key: hashOf(key ?? found.reason), members: members ?? ids };
  return {
    ...found,
    ...group,
    id: hashOf({ ...group, members: group.members.toSorted() }),
    ids: ids.slice(0, NAMED),
    seen: null,
  };
}

const hashOf = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('base64url');
