import type { EventBus } from '../../events/bus/event-bus.ts';
import { isCompactedTopic } from '../../events/bus/topics.ts';
import { lateReferenceHandler } from '../../features/reference/reference.consumers.ts';
import { silentLog } from '../../lib/log.ts';
import { CommandError, type CommandInput } from './command.ts';
import { openFeatures } from './open-services.ts';

/**
 * Opens the database and the bus for a replay that needs `topics`, until `stack` is disposed of.
 * @throws CommandError when the schema is outdated or a topic is missing.
 */
export async function openReplay(input: Pick<CommandInput, 'command' | 'env' | 'stack'>, topics: readonly string[]) {
  const { config, database, record, reference, dropped } = await openFeatures(input);
  const [{ openBus }, { openDeadLetters }] = await Promise.all([
    import('../../app/stores.ts'),
    import('../../app/operations.ts'),
  ]);
  const { db } = database;
  const bus = await openBus(config, db, silentLog, input.stack);
  const missing = await bus.missingTopics(topics);
  if (missing.length > 0) throw new CommandError(`Kafka lacks ${missing.join(', ')}: run portcullis migrate first`);
  // How many messages became dead letters again, by topic, of those that this command applies itself.
  const deadAgain = new Map<string, number>();
  const applying = (topic: string) => {
    if (!isCompactedTopic(topic)) return undefined;
    const publish: EventBus['publish'] = async (messages, options) => {
      await bus.publish(messages, options);
      deadAgain.set(topic, (deadAgain.get(topic) ?? 0) + messages.length);
    };
    return lateReferenceHandler({ bus: { publish }, reference });
  };
  return { ...(await openDeadLetters({ config, db, bus }, applying)), deadAgain, dropped, record };
}
