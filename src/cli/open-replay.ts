import { readConfig } from '../config/config.ts';
import type { EventBus } from '../events/event-bus.ts';
import { Replay } from '../events/replay.ts';
import { ReplayPositions } from '../events/replay-positions.ts';
import { isCompactedTopic } from '../events/topics.ts';
import { silentLog } from '../lib/log.ts';
import { lateReferenceHandler } from '../reference/reference-consumers.ts';
import { openBus, openLogReader } from '../stores.ts';
import { CommandError } from './command.ts';
import { openMigrated } from './database.ts';
import { referenceFor } from './open-reference.ts';

const ADVICE = 'stop it first; what is replayed is applied when it starts again';

/** What a replay is run with, and what it has come upon meanwhile. */
export interface OpenReplay {
  replay: Replay;
  /** How many dead letters of each topic are dead again, of those that are applied at once. */
  deadAgain: Map<string, number>;
  /** Rows of reference data that had waited for one that came to life now, and cannot be applied. */
  dropped: string[];
}

/**
 * Opens database and bus for a replay, which needs `topics`, until `stack` is disposed of.
 * @throws StartError while an embedded server runs on `DATA_DIR`, CommandError where schema or topics are missing.
 */
export async function openReplay(
  env: NodeJS.ProcessEnv,
  topics: readonly string[],
  stack: AsyncDisposableStack,
): Promise<OpenReplay> {
  const { config } = readConfig(env);
  const database = await openMigrated(config, { advice: ADVICE }, stack);
  const { db } = database;
  const bus = await openBus(config, db, silentLog, stack);
  const missing = await bus.missingTopics(topics);
  if (missing.length > 0) throw new CommandError(`Kafka lacks ${missing.join(', ')}: run portcullis migrate first`);
  const reader = await openLogReader(config, db, silentLog);
  const dropped: string[] = [];
  const reference = referenceFor(db, dropped);
  const deadAgain = new Map<string, number>();
  const applying = (topic: string) => {
    if (!isCompactedTopic(topic)) return undefined;
    const publish: EventBus['publish'] = async (messages, options) => {
      await bus.publish(messages, options);
      deadAgain.set(topic, (deadAgain.get(topic) ?? 0) + messages.length);
    };
    return lateReferenceHandler({ bus: { publish }, reference });
  };
  const replay = new Replay({ bus, reader, positions: new ReplayPositions(db, config.topicPrefix), applying });
  return { replay, deadAgain, dropped };
}
