import { readConfig } from '../config/config.ts';
import { Replay } from '../events/replay.ts';
import { ReplayPositions } from '../events/replay-positions.ts';
import { silentLog } from '../lib/log.ts';
import { openBus, openLogReader } from '../stores.ts';
import { CommandError } from './command.ts';
import { openMigrated } from './database.ts';

const ADVICE = 'stop it first; what is replayed is applied when it starts again';

/**
 * Opens database and bus for a replay of topics, until `stack` is disposed of.
 * @throws StartError while an embedded server runs on `DATA_DIR`, CommandError where schema or topics are missing.
 */
export async function openReplay(
  env: NodeJS.ProcessEnv,
  topics: readonly string[],
  stack: AsyncDisposableStack,
): Promise<Replay> {
  const { config } = readConfig(env);
  const database = await openMigrated(config, ADVICE, stack);
  const { db } = database;
  const bus = await openBus(config, db, silentLog, stack);
  const missing = await bus.missingTopics(topics);
  if (missing.length > 0) throw new CommandError(`Kafka lacks ${missing.join(', ')}: run portcullis migrate first`);
  const reader = await openLogReader(config, db, silentLog);
  return new Replay({ bus, reader, positions: new ReplayPositions(db, config.topicPrefix) });
}
