import type { EventBus } from '../../events/bus/event-bus.ts';
import type { Replay } from '../../events/bus/replay.ts';
import { CONSUMED, REPLAYABLE } from '../../events/bus/topics.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { DbAndClock } from '../../platform/database/database.ts';
import { type Finding, findingsOf, type StatusFacts } from './status.rules.ts';
import { readBacklog, readStored } from './status.store.ts';

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
      parts: worstOf([...(stored?.reported ?? []), ownParts(), Object.fromEntries(asked)]),
      processes: stored?.processes ?? null,
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
    if (isSame) worst[part] = { ...known, ...status, since: since.at(status.state === 'ok' ? -1 : 0) ?? null };
    else if (!known || known.state === 'ok') worst[part] = status;
  }
  return worst;
}
