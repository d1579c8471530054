import { randomUUID } from 'node:crypto';
import { MigrationFiles } from '../../../src/features/user-migrations/migration-files.service.ts';
import { type IterationOutcome, MigrationJobs } from '../../../src/features/user-migrations/migration-jobs.service.ts';
import { UserMigrations } from '../../../src/features/user-migrations/user-migrations.service.ts';
import { type Log, silentLog } from '../../../src/lib/log.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import { steppedDb } from './stepped-db.ts';

/** A signal that does not come. */
export const never = new AbortController().signal;

/** Files and jobs as one process has them. */
export function filesOn(db: Db, { log = silentLog, nowMs = Date.now }: { log?: Log; nowMs?: () => number } = {}) {
  const shared = { db, log, nowMs, notify: () => undefined };
  return {
    files: new MigrationFiles(shared),
    jobs: new MigrationJobs({ ...shared, userMigrations: new UserMigrations(shared) }),
  };
}

/** Works at a job for one batch. */
export async function oneBatch(db: Db, nowMs: () => number = Date.now): Promise<IterationOutcome> {
  const stop = new AbortController();
  return filesOn(
    onCommit(db, () => stop.abort()),
    { nowMs },
  ).jobs.iterate(stop.signal);
}

/** A database that does something before each commit. */
export function onCommit(db: Db, act: () => void): Db {
  return steppedDb(db, (what) => {
    if (what === 'commit') act();
  });
}

/** Takes turns until there is nothing to do for this process. */
export async function work(jobs: MigrationJobs): Promise<IterationOutcome> {
  let end: IterationOutcome = 'more';
  while (end === 'more') end = await jobs.iterate(never);
  return end;
}

/** A file in parts of a size. */
export async function* fileOf(content: string | Buffer, size = 1_000): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(content);
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

/** A caller for a new node. */
export async function newNode(db: Db) {
  const nodeId = randomUUID();
  await db.unscoped('test').run((k) => k.insertInto('nodes').values({ id: nodeId, name: 'Node' }));
  return { nodeId, subject: 'somebody', correlationId: `c-${nodeId}` };
}

/** All that there is of a node's migrations. */
export async function stateOf(db: Db, nodeId: string) {
  const door = db.forNode(nodeId);
  const events = await db
    .unscoped('test')
    .run((k) => k.selectFrom('outbox').select(['key', 'payload', 'correlation_id']));
  return {
    migrations: await door.run((k) => k.selectFrom('migrations').selectAll().orderBy('created_at')),
    rows: await door.run((k) => k.selectFrom('migration_rows').selectAll().orderBy('index')),
    users: await door.run((k) => k.selectFrom('users').selectAll().orderBy('created_at')),
    chunks: await door.run((k) => k.selectFrom('migration_files').select(['migration_id', 'seq'])),
    jobs: await door.run((k) => k.selectFrom('migration_jobs').selectAll()),
    events: events.filter(({ payload }) => JSON.parse(payload).node_id === nodeId),
  };
}

/** A file of so many users, the ones at these indexes (from 1) as given. */
export function csvOf(count: number, special: Readonly<Record<number, string>> = {}): string {
  const rows = Array.from({ length: count }, (_, at) => special[at + 1] ?? `0x${at + 1},user-${at + 1}@x.y,Name,`);
  return ['wallet_address,email,name,kyc_sent', ...rows, ''].join('\n');
}
