import { constants, existsSync } from 'node:fs';
import { access, open, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type EventBus, isDeadLetterTopic } from '../events/bus/event-bus.ts';
import { PARTITIONS } from '../events/bus/kafka-admin.ts';
import type { Cache } from '../platform/cache/cache.ts';
import type { Config } from '../platform/config/config.ts';
import { type Database, knowsLetterCase, readTime } from '../platform/database/open-database.ts';
import { pendingSchemaMigrations } from '../platform/database/schema-migrations.ts';
import { lackingPrivileges, mayChangeAudit } from './database-roles.ts';
import { topicsOf } from './stores.ts';

/** What is checked: the configuration, this machine, and the stores unless they are embedded. */
interface Checked {
  config: Config;
  nowMs(): number;
  stores?: { database: Database; bus: Pick<EventBus, 'missingTopics'>; cache: Pick<Cache, 'checkHealth'> } | undefined;
}

/** Something wrong, with what to type. `fatal` refuses the start; `warn` needs nobody at once. */
export interface Finding {
  level: 'fatal' | 'error' | 'warn';
  message: string;
}

/** A finding that is there only if the first is true. */
type Found = readonly [isFound: boolean, level: Finding['level'], message: string];

/** How far the clocks of this machine and of PostgreSQL may differ, in milliseconds: NTP keeps them within a few. */
const MAX_CLOCK_MS = 2_000;
const MIB = 1024 * 1024;
/** The free space that a spool may need while the database is down, and that without which it is as good as full. */
const SPOOL_MIB = { most: 1024, least: 64 };

const STORE_CHECKS: readonly ((
  stores: NonNullable<Checked['stores']>,
  checked: Checked,
) => Promise<readonly Found[]>)[] = [
  async ({ database }) => {
    const { role, isReadOnly, lacking } = await lackingPrivileges(database.db);
    const migrate = 'run portcullis migrate with the owner of the tables in MIGRATE_DATABASE_URL, which grants them';
    const subject = `the role ${role} of DATABASE_URL`;
    return [
      [isReadOnly, 'fatal', `${subject} is read-only: alter role ${role} set default_transaction_read_only = off`],
      [
        lacking.length > 0,
        'fatal',
        `${subject} lacks ${lacking.join('; ')}: ${migrate} (docs/operations/database-roles.md)`,
      ],
    ];
  },
  async ({ database }) => {
    const pending = await pendingSchemaMigrations(database);
    return [[pending.length > 0, 'fatal', `the database lacks ${pending.join(', ')}: run portcullis migrate`]];
  },
  async ({ bus }, { config }) => {
    const topics = topicsOf(config);
    const missing = await bus.missingTopics(topics);
    const consumed = topics.filter((topic) => !missing.includes(topic) && !isDeadLetterTopic(topic));
    const small = await bus.missingTopics(consumed, PARTITIONS);
    return [
      [missing.length > 0, 'fatal', `Kafka lacks the topics ${missing.join(', ')}: run portcullis migrate`],
      [
        small.length > 0,
        'warn',
        `fewer than ${PARTITIONS} partitions, so that as many workers at most consume: ${small.join(', ')} (docs/operations/kafka.md#partitions)`,
      ],
    ];
  },
  async ({ database }, { nowMs }) => {
    const earliestMs = nowMs();
    const databaseMs = await readTime(database.db);
    const offMs = Math.max(earliestMs - databaseMs, databaseMs - nowMs());
    const by = `${(offMs / 1_000).toFixed(1)} s ${earliestMs > databaseMs ? 'ahead of' : 'behind'}`;
    const fix = 'run timedatectl on both, and turn NTP on (docs/operations/processes.md#clocks)';
    return [[offMs > MAX_CLOCK_MS, 'error', `this machine's clock is ${by} PostgreSQL's: ${fix}`]];
  },
  async ({ cache }) => {
    const error = await cache.checkHealth().catch((reason: unknown) => reason);
    const what = error instanceof Error ? error.message : String(error);
    const fix = 'docs/operations/redis.md#redis-is-down-or-rejects-commands';
    return [[error !== undefined, 'error', `Redis does not respond or rejects commands (${what}): see ${fix}`]];
  },
  async ({ database: { db } }, { config }) => [
    [
      config.production && (await mayChangeAudit(db)),
      'warn',
      'the role of DATABASE_URL can change audit records; see docs/operations/database-roles.md',
    ],
    [
      !(await knowsLetterCase(db)),
      'warn',
      'the database locale does not fold case beyond ASCII; searches for names with other letters are case-sensitive',
    ],
  ],
];

async function checkSpool({ auditSpoolDir: dir }: Config): Promise<readonly Found[]> {
  let folder = dir;
  while (!existsSync(folder)) folder = dirname(folder);
  // The dot, so that a file is not taken for a folder.
  await access(`${folder}/.`, constants.W_OK);
  const { bavail, bsize } = await statfs(folder);
  const free = Math.floor((bavail * bsize) / MIB);
  const level = free < SPOOL_MIB.least ? 'error' : 'warn';
  const need = `the audit spool may need ${SPOOL_MIB.most} MiB while the database is down, and every request is rejected once it is full`;
  const fix = 'free disk space, or set AUDIT_SPOOL_DIR to another disk';
  return [[free < SPOOL_MIB.most, level, `the disk of ${folder} has ${free} MiB free; ${need}: ${fix}`]];
}

async function checkCheckpoints({ auditCheckpoints: place }: Config): Promise<readonly Found[]> {
  if (!place || !('file' in place)) return [];
  const { file } = place;
  // It is not created: it would belong to whoever runs the check.
  const tried = existsSync(file) ? open(file, 'a') : access(`${dirname(file)}/.`, constants.W_OK);
  const error = await tried.then((opened) => opened?.close()).catch((reason: unknown) => reason);
  const fix = 'create its folder, and let the user that runs Portcullis write to it';
  return [[error !== undefined, 'error', `AUDIT_CHECKPOINTS: cannot write to ${file} (${error}): ${fix}`]];
}

/**
 * Makes all checks at once, for a start and for `config check --connect`. `explain` makes the message of a check that
 * fails. @throws the first error of a check, without `explain`.
 */
export async function checkStart(checked: Checked, explain?: (error: unknown) => string): Promise<Finding[]> {
  const { config, stores } = checked;
  const checks = [
    ...(stores ? STORE_CHECKS.map((check) => check(stores, checked)) : []),
    checkSpool(config),
    checkCheckpoints(config),
  ];
  const failed = (error: unknown): Found[] => {
    if (!explain) throw error;
    return [[true, 'fatal', explain(error)]];
  };
  const outcomes = (await Promise.all(checks.map((check) => check.catch(failed)))).flat();
  const findings = outcomes.flatMap(([isFound, level, message]) => (isFound ? [{ level, message }] : []));
  // Of a store that is down, each of its checks says the same.
  return [...new Map(findings.map((finding) => [finding.message, finding])).values()];
}
