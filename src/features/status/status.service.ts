import type { EventBus } from '../../events/bus/event-bus.ts';
import type { Replay } from '../../events/bus/replay.ts';
import { CONSUMED, REPLAYABLE } from '../../events/bus/topics.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { NEAR_SHARE } from '../../platform/cache/counts.rules.ts';
import type { Db, DbAndClock } from '../../platform/database/database.ts';
import type { ProcessState } from '../../tables/operations.entity.ts';
import { type Finding, findingsOf, type StatusFacts } from './status.rules.ts';

/** The status of an installation: what a person must act on, and all that is known. */
export interface Status extends StatusFacts {
  at: string;
  findings: readonly Finding[];
}

/** How long each source may take, in ms. */
const DEADLINE_MS = 10_000;

/** Reads the status of an installation. What cannot be read now is null. */
export class StatusReader {
  readonly #deps;
  /** When it last looked, and how many rows of each migration had an outcome then. */
  #last: { atMs: number; rows: ReadonlyMap<string, number> } = { atMs: 0, rows: new Map() };

  constructor(
    deps: DbAndClock & {
      bus: Pick<EventBus, 'lag'>;
      replay: Pick<Replay, 'waiting'>;
      /** Returns how the process itself sees its parts. */
      ownParts(): StatusFacts['parts'];
      /** Called with the error of each source that cannot be read. */
      onError(error: unknown): void;
    },
  ) {
    this.#deps = deps;
  }

  async read(): Promise<Status> {
    const { db, nowMs, bus, replay, ownParts, onError } = this.#deps;
    const orNull = <Answer>(read: Promise<Answer>): Promise<Answer | null> =>
      withTimeout(read, DEADLINE_MS).catch((error: unknown) => {
        onError(error);
        return null;
      });
    const deadLetters = REPLAYABLE.map(async (topic) => ({ topic, ...seconds(await replay.waiting(topic)) }));
    const [stored, backlog, lag, dead] = await Promise.all([
      orNull(readStored(db)),
      orNull(readBacklog({ db, nowMs })),
      orNull(Promise.resolve(bus.lag?.(CONSUMED) ?? [])),
      orNull(Promise.all(deadLetters)),
    ]);
    const answers = { database: stored ?? backlog, bus: lag };
    const asked = Object.entries(answers).map(([part, answer]) => [
      part,
      { state: answer ? 'ok' : 'down', since: null },
    ]);
    const atMs = nowMs();
    const facts: StatusFacts = {
      parts: worstOf([
        ownParts(),
        ...(stored?.reported ?? []),
        Object.fromEntries(asked),
        stored?.is_read_only ? { database: { state: 'down', since: null, code: '25006' } } : {},
      ]),
      // Nobody can report to a database that takes no writes.
      processes: stored?.is_read_only ? null : (stored?.processes ?? null),
      lag: lag?.map(({ groupId: group, topic, ...one }) => ({ group, topic, ...seconds(one) })) ?? null,
      dead_letters: dead,
      outbox: backlog && seconds({ messages: backlog.outbox, oldestSeconds: backlog.outbox_oldest }),
      parked: backlog && {
        ...seconds({ messages: backlog.parked, oldestSeconds: backlog.parked_oldest }),
        ...{ transactions: backlog.unregistered, ids: stored?.parked_ids ?? [] },
      },
      audit: stored?.audit ?? null,
      migrations: stored && {
        ...stored.migrations,
        running: stored.migrations.running.map((migration) => ({ ...migration, ...this.#pace(migration, atMs) })),
      },
      quotas: stored?.quotas ?? null,
      differing_secrets: stored?.differing_secrets ?? null,
    };
    this.#last = { atMs, rows: new Map(facts.migrations?.running.map(({ id, rows }) => [id, rows])) };
    return { at: new Date(atMs).toISOString(), findings: findingsOf(facts, atMs), ...facts };
  }

  #pace({ id, rows, total }: { id: string; rows: number; total: number | null }, atMs: number) {
    const before = this.#last.rows.get(id);
    const rate = before === undefined ? null : Math.round(((rows - before) * 10_000) / (atMs - this.#last.atMs)) / 10;
    return { rate, remaining_seconds: rate && total !== null ? Math.ceil((total - rows) / rate) : null };
  }
}

function seconds({ messages, oldestSeconds }: { messages: number; oldestSeconds: number }) {
  return { messages, oldest_seconds: Math.round(oldestSeconds) };
}

/** Returns the worst state of each part that anyone sees, with the longest time that all agree on. */
function worstOf(seen: readonly StatusFacts['parts'][]): StatusFacts['parts'] {
  const worst: Record<string, StatusFacts['parts'][string]> = {};
  for (const [part, status] of seen.flatMap((parts) => Object.entries(parts))) {
    const known = worst[part];
    const isSame = known?.state === status.state;
    const since = [known?.since, status.since].filter((time) => typeof time === 'string').sort();
    if (isSame) worst[part] = { ...status, ...known, since: since.at(status.state === 'ok' ? -1 : 0) ?? null };
    else if (!known || known.state === 'ok') worst[part] = status;
  }
  return worst;
}

/** The amounts of work that wait in the database, and since when the oldest does. */
export interface Backlog {
  outbox: number;
  outbox_oldest: number;
  parked: number;
  parked_oldest: number;
  unregistered: number;
  running: number;
  waiting: number;
  /** Active clients that use up their monthly limit before the month ends, at their rate so far. */
  quotas: number;
}

/** The number at which the counting of rows stops: more are just as alarming, but cost more to count. */
const MAX_COUNTED = 100_000;

/** Returns the work of all nodes that waits in the database; ages are in seconds. One statement reads all of it. */
export async function readBacklog({ db, nowMs }: DbAndClock): Promise<Backlog> {
  const now = new Date(nowMs()).toISOString();
  const [row] = await db.unscoped('backlogs are counted over all nodes').raw(
    (sql) => sql<Backlog>`
      select
        (select count(*) from (select 1 from outbox limit ${MAX_COUNTED}) o)::integer as outbox,
        coalesce(greatest(0, extract(epoch from ${now}::timestamptz - (select created_at from outbox order by seq limit 1))), 0)::float8
          as outbox_oldest,
        (select count(*) from (select 1 from parked_notifications limit ${MAX_COUNTED}) p)::integer as parked,
        coalesce(greatest(0, extract(epoch from ${now}::timestamptz - (select min(parked_at) from (
          select parked_at from parked_notifications limit ${MAX_COUNTED}) p))), 0)::float8 as parked_oldest,
        (select count(*) from (select 1 from transaction_lookups limit ${MAX_COUNTED}) l)::integer as unregistered,
        (select count(*) from migration_jobs where lease_until > ${now}::timestamptz)::integer as running,
        (select count(*) from migration_jobs where lease_until <= ${now}::timestamptz)::integer as waiting,
        (select count(*) from (select ${now}::timestamptz as now, date_trunc('month', ${now}::timestamptz) as month) t
          join client_quotas q on q.month = to_char(t.month, 'YYYY-MM')
          join clients c on c.id = q.client_id and c.status = 'active' and c.monthly_limit > 0
          where q.used >= c.monthly_limit * greatest(0.25, extract(epoch from t.now - t.month)
            / extract(epoch from t.month + interval '1 month' - t.month)))::integer as quotas`,
  );
  if (!row) throw new Error('a count returns one row');
  return row;
}

/** What the database says of an installation, but for its backlog. */
type StoredFacts = Pick<StatusFacts, 'audit' | 'differing_secrets' | 'quotas' | 'processes'> & {
  is_read_only: boolean;
  parked_ids: string[];
  reported: readonly ProcessState['parts'][];
  migrations: {
    running: readonly { id: string; rows: number; total: number | null }[];
    failed: readonly { id: string; at: string }[];
    stuck_since: string | null;
  };
};

const MAX_LISTED = 20;
const ISO = 'YYYY-MM-DD"T"HH24:MI:SS"Z"';

/** Returns what the database says of an installation, with ids and counts alone. */
async function readStored(db: Db): Promise<StoredFacts> {
  const [row] = await db.unscoped('operators see all nodes').raw(
    (sql) => sql<{ facts: StoredFacts }>`
      with live as (select * from processes where seen_at > now() - interval '1 minute')
      select json_build_object(
        'is_read_only', current_setting('transaction_read_only') = 'on',
        'differing_secrets', (select coalesce(json_agg(distinct name order by name), '[]')
          from live a, live b, jsonb_object_keys(a.state->'secrets') name
          where a.role <> 'worker' and b.role <> 'worker' and not b.state->'secrets'->name @> (a.state->'secrets'->name->0)),
        'parked_ids', (select coalesce(json_agg(id), '[]') from (select id from transaction_lookups order by id limit 5) l),
        'reported', (select coalesce(json_agg(state->'parts'), '[]') from live),
        'processes', (select coalesce(json_agg(json_build_object(
            'id', id, 'host', host, 'role', role, 'version', version, 'since', to_char(started_at, ${ISO}),
            'seen_seconds', round(extract(epoch from now() - seen_at)), 'spool', state->'spool',
            'accounts_near', state->'accounts_near') order by role, started_at), '[]') from live),
        'audit', json_build_object(
          'checkpoint_at', (select body::json->>'at' from audit_seals where kind = 'checkpoint' order by position desc limit 1),
          'verified', (select json_build_object('at', to_char(at, ${ISO}), 'seal', seal, 'problems', problems)
            from audit_verifications order by at desc limit 1)),
        'migrations', json_build_object(
          'running', (select coalesce(json_agg(json_build_object(
              'id', j.migration_id, 'rows', j.next_index - 1, 'total', nullif(m.total, 0)) order by m.created_at), '[]')
            from migration_jobs j join migrations m on m.id = j.migration_id),
          'stuck_since', (select to_char(min(lease_until), ${ISO}) from migration_jobs
            having max(lease_until) < now() - interval '5 minutes'),
          'failed', (select coalesce(json_agg(json_build_object('id', id, 'at', to_char(finished_at, ${ISO}))), '[]')
            from (select id, finished_at from migrations where status = 'failed' and finished_at > now() - interval '1 day'
              order by finished_at limit ${MAX_LISTED}) f)),
        'quotas', (select coalesce(json_agg(json_build_object('client_id', client_id, 'used', used, 'limit', monthly_limit)), '[]')
          from (select client_id, used, monthly_limit from client_quotas q join clients c on c.id = q.client_id
            where month = to_char(now() at time zone 'UTC', 'YYYY-MM') and used >= ${NEAR_SHARE}::float8 * monthly_limit
            order by used::float8 / monthly_limit desc limit ${MAX_LISTED}) near)) as facts`,
  );
  if (!row) throw new Error('the facts are one row');
  return row.facts;
}

/** Stores what a process reports of itself, and deletes the rows of processes that were killed a day ago. */
export async function reportProcess(
  db: Db,
  {
    id,
    role,
    version,
    host,
    startedAt,
  }: {
    id: string;
    role: string;
    version: string;
    host: string;
    startedAt: string;
  },
  state: ProcessState,
): Promise<void> {
  await db.unscoped('processes serve all nodes').raw(
    (sql) => sql`
      with dead as (delete from processes where seen_at < now() - interval '1 day' and id <> ${id})
      insert into processes (id, role, version, host, started_at, state)
      values (${id}, ${role}, ${version}, ${host}, ${startedAt}, ${JSON.stringify(state)}::jsonb)
      on conflict (id) do update set state = excluded.state, seen_at = now()`,
  );
}

/** Deletes the row of a process that stops. */
export async function forgetProcess(db: Db, id: string): Promise<void> {
  await db.unscoped('processes serve all nodes').run((k) => k.deleteFrom('processes').where('id', '=', id));
}
