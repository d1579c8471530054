import { setTimeout } from 'node:timers/promises';
import { BusUnavailableError } from '../../events/bus/event-bus.ts';
import type { Status } from '../../features/status/status.service.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { silentLog } from '../../lib/log.ts';
import { readConfig } from '../../platform/config/config.ts';
import {
  type CommandBody,
  CommandError,
  counted,
  EXIT_FAILED,
  EXIT_OK,
  Interruption,
  printable,
  UsageError,
} from '../kit/command.ts';
import { instantMs } from '../kit/flags.ts';
import { openAdministration, openForCommand, openMigrated } from '../kit/open-services.ts';

/** `portcullis migrate`: migrates the schema of the database and creates missing topics. */
export const migrateCommand: CommandBody = {
  description: [
    'Migrates the database schema under a lock, and creates missing topics with 12 partitions, replication 3 (or the',
    'number of brokers) and 7 days of retention. With MIGRATE_DATABASE_URL it connects as the owner of the tables, and',
    'grants the role of DATABASE_URL the privileges of a service. Existing topics are not changed. The previous release also runs on',
    'the new schema. It waits at most 200 ms for the lock of a table, so that requests do not queue behind it, and tries again',
    'until it gets it: standard error says which session holds the lock, and since when.',
  ].join(' '),
  examples: ['portcullis migrate', 'DATABASE_URL=postgres://… KAFKA_BROKERS=… portcullis migrate --json'],
  async run({ env, stack, progress, printError, answer }) {
    const { config } = readConfig(env);
    const [{ openBus, topicsOf }, { migrateByOwner }] = await Promise.all([
      import('../../app/stores.ts'),
      import('../../app/database-roles.ts'),
    ]);
    const database = await openForCommand(config, stack, { makes: true });
    const { migrations, service } = await migrateByOwner({
      config,
      database,
      onMigration: ({ name, ...step }) => progress.show({ ...step, text: name }),
      onWait: (message) => printError(`${printable(message)}\n`),
    });
    const bus = await openBus(config, database.db, silentLog, stack);
    const needed = topicsOf(config);
    const topics = (await bus.missingTopics(needed)).map((topic) => config.topicPrefix + topic);
    await bus.ensureTopics(needed);
    const role = service
      ? `The role ${service.name} can add and read audit records and versions of wallet rules, but cannot change them.\n`
      : '';
    const text = line('migrations', migrations) + line('topics', topics) + role;
    return answer({ migrations, topics, service_role: service ?? null }, text);
  },
};

function line(label: string, names: readonly string[]): string {
  return names.length === 0 ? `No new ${label}.\n` : `New ${label}: ${names.join(', ')}\n`;
}

/** What was published so long before the restored state may have been applied after it. */
const MARGIN_MS = 60_000;
const ALONE = 'stop it first, because it must not apply events meanwhile';

/** `portcullis recover`: brings everything else in line with a restored database. */
export const recover: CommandBody = {
  description: [
    'Run this after restoring a backup or promoting a lagging replica. TIME is the point the database was restored to, or',
    'any earlier time. Consumers re-read events from one minute before TIME; events that were applied already have no',
    "effect. Subscribers' cursors stay valid. All tokens are revoked, because the database may lack recent revocations:",
    'callers log in again. The gap in the audit records is reported, not filled. First stop every process that applies',
    'events; after a restore, stop every process. You can run this command again.',
  ].join(' '),
  flags: {
    since: { help: 'time the database was restored to (ISO 8601)', required: 'TIME' },
    'keep-tokens': {
      help: 'do not revoke sessions and tokens; only if no revocation can be missing',
      isSwitch: true,
    },
  },
  examples: [
    'portcullis recover --since 2026-11-21T10:29:50Z',
    'portcullis recover --since 2026-11-21T10:29:50Z --keep-tokens --json',
  ],
  async run(input) {
    const { flags, env, stack, answer } = input;
    const sinceMs = instantMs(flags, 'since') ?? 0;
    if (sinceMs > Date.now()) throw new UsageError('--since must be before now');
    const { db, clientAdministration } = await openAdministration(input, { alone: ALONE });
    const { openBus } = await import('../../app/stores.ts');
    const bus = await openBus(readConfig(env).config, db, silentLog, stack);
    const rewound = await bus.rewind?.(sinceMs - MARGIN_MS).catch((error) => {
      if (!(error instanceof BusUnavailableError)) throw error;
      throw new CommandError(
        `${error.message}: nothing was changed. Stop every worker, wait ten seconds and run this again`,
      );
    });
    const groups = rewound ?? [];
    const everyNode = db.unscoped('the whole database was restored');
    const [audit] = await everyNode.raw((sql) => sql<{ at: string | null }>`select max(at) as at from audit_records`);
    // As on another timeline of the server (`appendEvents`): past what may have been given and lost, also by a tenant
    // that had no event yet.
    const counters = await everyNode.raw(
      (sql) => sql`
        insert into node_event_seq as counter (node_id, seq) select id, 4294967296 from nodes
        on conflict (node_id) do update set seq = (counter.seq / 4294967296 + 1) * 4294967296
        returning node_id`,
    );
    const clients = flags['keep-tokens'] === true ? 0 : await clientAdministration.revokeAll();
    // From the newest record that the database has.
    const audit_gap = { from: audit?.at ? isoFromPg(audit.at) : null, to: new Date().toISOString() };
    const lines = [
      ...groups.map(({ groupId, topic, messages }) => `${groupId} re-reads ${counted(messages)} messages of ${topic}.`),
      `New events of ${counted(counters.length)} tenants have higher sequence numbers than all cursors.`,
      `Revoked the tokens of ${counted(clients)} clients.`,
      `Audit records from ${audit_gap.from ?? 'the first one'} to ${audit_gap.to} are lost, except records in spools, which are written when their processes start.`,
    ];
    return answer({ groups, nodes: counters.length, clients, audit_gap }, lines.map((line) => `${line}\n`).join(''));
  },
};

/** How long apart two looks at the rows of a migration are, and how often `--watch` looks, in ms. */
const RATE_MS = 1_000;
const WATCH_MS = 2_000;

/** `portcullis status`: prints what a person must act on, and how everything is. */
export const statusCommand: CommandBody = {
  description: [
    'Says what is wrong: since when, who is hit, which page to read and what to type. Then it lists the parts as the running',
    'processes see them, what waits (messages of topics, dead letters, parked notifications, events of the outbox), the audit,',
    'migrations under way, clients near their monthly limit, and each process that has reported within the last minute.',
    'The exit code is 1 where a person must act, otherwise 0. Exit 1 also means that something cannot be read.',
  ].join(' '),
  flags: { watch: { help: `repeat every ${WATCH_MS / 1_000} seconds, until interrupted`, isSwitch: true } },
  examples: ['portcullis status', 'portcullis status --json', 'portcullis status --watch'],
  async run({ flags, env, json, stack, print, printError }) {
    const { config } = readConfig(env);
    const database = await openMigrated(config, stack, { mayBeDown: true });
    const [{ openBus }, { openStatus }, { startFailure }] = await Promise.all([
      import('../../app/stores.ts'),
      import('../../app/operations.ts'),
      import('../../app/run.ts'),
    ]);
    const bus = await openBus(config, database.db, silentLog, stack);
    const reader = await openStatus(
      { config, db: database.db, bus },
      {
        nowMs: Date.now,
        ownParts: () => ({}),
        onError: (error) => printError(`not read: ${startFailure(error, config) ?? String(error)}\n`),
      },
    );
    const { signal } = stack.use(new Interruption());
    for (let isFirst = true; ; isFirst = false) {
      let status = await reader.read();
      if (isFirst && status.migrations?.running.length) {
        await setTimeout(RATE_MS);
        status = await reader.read();
      }
      print(json ? `${JSON.stringify(status)}\n` : `${statusText(status)}\n`);
      const isOver = flags.watch !== true || (await setTimeout(WATCH_MS, signal.aborted, { signal }).catch(() => true));
      if (isOver) return status.findings.length > 0 ? EXIT_FAILED : EXIT_OK;
    }
  },
};

/** Returns the status as text: what a person must act on, then a line for each thing that is known. */
function statusText(status: Status): string {
  const { at, findings, parts, lag, dead_letters, parked, outbox, audit, migrations, quotas, processes } = status;
  const actions = findings.map(({ what, since, hits, page, type }) => {
    return `! ${what}${since === null ? '' : `, since ${since}`}\n    hits  ${hits}\n    read  ${page}\n    type  ${type}\n`;
  });
  const facts: (readonly (string | null)[])[] = [
    ...Object.entries(parts).map(([part, { state, since }]) => [part, `${state}${since ? `, since ${since}` : ''}`]),
    ...(lag ?? []).map(({ topic, group, ...one }) => ['lag', `${topic}: ${amount(one)}, of ${group}`]),
    ...(dead_letters ?? [])
      .filter(({ messages }) => messages > 0)
      .map(({ topic, ...one }) => ['dead letters', `${topic}: ${amount(one)}`]),
    ['parked', parked && `${amount(parked)}${parked.ids.length > 0 ? `, of ${parked.ids.join(', ')}` : ''}`],
    ['outbox', outbox && amount(outbox)],
    ['checkpoint', audit && (audit.checkpoint_at ?? 'none')],
    ['verified', audit && (audit.verified ? `${audit.verified.at}, to seal ${audit.verified.seal}` : 'never')],
    ...(migrations?.running ?? []).map(({ id, rows, total, rate, remaining_seconds: left }) => [
      'migration',
      `${id}: ${counted(rows)} of ${total ?? '?'} rows, ${rate ?? '?'} a second, ${left === null ? '?' : age(left)} left`,
    ]),
    ...(quotas ?? []).map(({ client_id: id, used, limit }) => [
      'quota',
      `${id}: ${counted(used)} of ${counted(limit)}`,
    ]),
    ...(processes ?? []).map(({ id, role, version, host, since, spool, accounts_near: near }) => [
      'process',
      `${role} ${version} on ${host} since ${since}, spool ${counted(spool.records)} records, ${near} accounts near their limit, ${id}`,
    ]),
  ];
  const lines = facts.map(([name, text]) => `${name?.padEnd(14)} ${printable(text ?? 'unknown')}\n`);
  return [
    `${at}  ${findings.length === 0 ? 'nothing needs a person' : `act on ${findings.length}`}\n`,
    ...actions,
    '\n',
    ...lines,
  ].join('');
}

function amount({ messages, oldest_seconds: oldest }: { messages: number; oldest_seconds: number }): string {
  return messages === 0 ? '0' : `${counted(messages)}, oldest ${age(oldest)}`;
}

const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
] as const;

function age(seconds: number): string {
  const [size, unit] = UNITS.find(([least]) => seconds >= 2 * least) ?? [1, 's'];
  return `${Math.round(seconds / size)} ${unit}`;
}
