import { silentLog } from '../../lib/log.ts';
import { readConfig } from '../../platform/config/config.ts';
import { type CommandBody, Progress, printable } from '../kit/command.ts';
import { openForCommand } from '../kit/open-services.ts';

/** `portcullis migrate`: migrates the schema of the database and creates missing topics. */
export const migrateCommand: CommandBody = {
  description: [
    'Migrates the database schema under a lock, and creates missing topics with 12 partitions, replication 3 (or the',
    'number of brokers) and 7 days of retention. With MIGRATE_DATABASE_URL it connects as the owner of the tables, and',
    'grants the role of DATABASE_URL the privileges of a service. Existing topics are not changed. The previous release also runs on',
    'the new schema. It waits at most 200 ms for the lock of a table, so that requests do not queue behind it, and tries again',
    'until it gets it: standard error says which session holds the lock, and since when.',
  ].join('\n'),
  examples: ['portcullis migrate', 'DATABASE_URL=postgres://… KAFKA_BROKERS=… portcullis migrate --json'],
  async run({ env, stack, printError, answer }) {
    const { config } = readConfig(env);
    const [{ openBus, topicsOf }, { migrateByOwner }] = await Promise.all([
      import('../../app/stores.ts'),
      import('../../app/database-roles.ts'),
    ]);
    const database = await openForCommand(config, stack, { makes: true });
    const progress = new Progress(process.stderr);
    stack.defer(() => progress.end());
    const { migrations, service } = await migrateByOwner({
      config,
      database,
      onMigration: ({ name, ...step }) => progress.show({ ...step, text: name }),
      onWait: (message) => printError(`${printable(message)}\n`),
    });
    progress.end();
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
