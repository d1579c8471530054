import { setTimeout } from 'node:timers/promises';
import type { Status } from '../../features/status/status.service.ts';
import { silentLog } from '../../lib/log.ts';
import { readConfig } from '../../platform/config/config.ts';
import { type CommandBody, counted, EXIT_FAILED, EXIT_OK, Interruption, printable } from '../kit/command.ts';
import { openMigrated } from '../kit/open-services.ts';

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
  ].join('\n'),
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
      print(json ? `${JSON.stringify(status)}\n` : `${textOf(status)}\n`);
      const isOver = flags.watch !== true || (await setTimeout(WATCH_MS, signal.aborted, { signal }).catch(() => true));
      if (isOver) return status.findings.length > 0 ? EXIT_FAILED : EXIT_OK;
    }
  },
};

/** Returns the status as text: what a person must act on, then a line for each thing that is known. */
function textOf(status: Status): string {
  const { at, findings, parts, lag, dead_letters, parked, outbox, audit, migrations, quotas, processes } = status;
  const actions = findings.map(({ what, since, hits, page, type }) => {
    return `! ${what}${since === null ? '' : `, since ${since}`}\n    hits  ${hits}\n    read  ${page}\n    type  ${type}\n`;
  });
  const facts: (readonly (string | null)[])[] = [
    ...Object.entries(parts).map(([part, { state, since }]) => [part, `${state}${since ? `, since ${since}` : ''}`]),
    ...(lag ?? []).map(({ topic, group, ...one }) => ['lag', `${topic}: ${amount(one)}, of ${group}`]),
    ...(dead_letters ?? []).filter(waits).map(({ topic, ...one }) => ['dead letters', `${topic}: ${amount(one)}`]),
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

function waits({ messages }: { messages: number }): boolean {
  return messages > 0;
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
