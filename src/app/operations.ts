import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { EventBus } from '../events/bus/event-bus.ts';
import { Replay, ReplayPositions } from '../events/bus/replay.ts';
import { forgetProcess, reportProcess, StatusReader } from '../features/status/status.service.ts';
import { silentLog } from '../lib/log.ts';
import { every } from '../lib/shared-ticks.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import { WorkLoop } from '../lib/work-loop.ts';
import type { Config } from '../platform/config/config.ts';
import { sharedDigests } from '../platform/config/secrets.ts';
import type { Db } from '../platform/database/database.ts';
import { VERSION } from '../platform/health.ts';
import { ACCOUNT_KINDS } from '../platform/held-memory.ts';
import type { Context } from './context.ts';
import { openLogReader } from './stores.ts';

const REPORT_EVERY_MS = 15_000;
const FORGET_MS = 1_000;

/** Reports the process in the database until it stops. An outage of the database is logged where it is noticed. */
export function startReports(
  { config, secrets, database: { db }, health, spool, memory }: Context,
  stack: AsyncDisposableStack,
): void {
  const startedAt = new Date().toISOString();
  const digests = sharedDigests(secrets);
  const reporting = { id: randomUUID(), role: config.role, version: VERSION, host: hostname(), startedAt };
  const report = async () => {
    const [bytes, records, bytesLeft] = [spool.bytesOnDisk, spool.pendingLines, await spool.bytesUntilFull()];
    const share = bytesLeft === 0 ? 1 : bytes / (bytes + bytesLeft);
    const accounts_near = ACCOUNT_KINDS.reduce((sum, kind) => sum + memory.summaryOf(kind).near, 0);
    await reportProcess(db, reporting, {
      ...{ parts: health.parts, spool: { records, bytes, share }, accounts_near },
      secrets: digests,
    });
    return false;
  };
  const loop = new WorkLoop({ iterate: report, pollMs: REPORT_EVERY_MS });
  loop.start();
  stack.defer(async () => {
    // A database that does not respond must not hold up the stop; the row then counts for a minute.
    const forgotten = loop.stop().then(() => forgetProcess(db, reporting.id));
    await withTimeout(forgotten, FORGET_MS).catch(() => undefined);
  });
}

/** What reads dead letters and the status depends on. */
interface OperationDependencies {
  config: Config;
  db: Db;
  bus: EventBus;
}

/** Opens the dead letters of an installation, and the decisions about them. */
export async function openDeadLetters(
  { config, db, bus }: OperationDependencies,
  applying?: ConstructorParameters<typeof Replay>[0]['applying'],
) {
  const reader = await openLogReader(config, db, silentLog);
  const positions = new ReplayPositions(db, config.topicPrefix);
  return { positions, replay: new Replay({ bus, reader, positions, applying }) };
}

/** Opens the status of an installation, with the parts as this process sees them. */
export async function openStatus(
  { config, db, bus }: OperationDependencies,
  how: Pick<ConstructorParameters<typeof StatusReader>[0], 'nowMs' | 'ownParts' | 'onError'>,
): Promise<StatusReader> {
  const { replay } = await openDeadLetters({ config, db, bus });
  return new StatusReader({ ...how, db, bus, replay });
}

/** How often the position of the database is noted in Redis, in milliseconds. */
const NOTE_EVERY_MS = 5_000;

/**
 * Warns if the database is older than Redis remembers, as after a restore, and notes its position in Redis from then on.
 * Without Redis, or while it is empty or unavailable, nothing is known.
 */
export async function watchDatabaseAge(
  { config, database, cache, log }: Pick<Context, 'config' | 'database' | 'cache' | 'log'>,
  stack: AsyncDisposableStack,
): Promise<void> {
  if (config.redisUrl === undefined) return;
  // Redis is read first: what another process notes in between is then in the database, too.
  const note = async () => {
    const remembered = await cache.raisePosition('');
    const position = await positionOf(database.db);
    await cache.raisePosition(position);
    return remembered > position;
  };
  // The cache and the database log their own outages.
  const isOlder = () => note().catch(() => false);
  if (await isOlder()) {
    log.warn(
      { page: 'docs/operations/restore.md' },
      'the database is older than the last one that Redis knows; stop every process and run portcullis recover',
    );
  }
  stack.defer(every(NOTE_EVERY_MS, () => void isOlder()));
}

/**
 * Returns how far the database has come, as a text that sorts: its timeline, which `recover` and a promotion move
 * forward, and the number of its last audit record.
 */
async function positionOf(db: Db): Promise<string> {
  const [row] = await db.unscoped('the whole database').raw(
    (sql) => sql<{ position: string }>`
      select lpad((coalesce(max(seq), 0) / 4294967296)::text, 10, '0') || '/' ||
        lpad(coalesce(pg_sequence_last_value('audit_positions'), 0)::text, 20, '0') as position
      from node_event_seq`,
  );
  return row?.position ?? '';
}
