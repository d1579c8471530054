import { BusUnavailableError, deadLetterTopicOf } from '../../events/bus/event-bus.ts';
import type { Replay, ReplayPlan } from '../../events/bus/replay.ts';
import { isCompactedTopic, REPLAYABLE, REPUBLISHED } from '../../events/bus/topics.ts';
import { type CommandBody, CommandError, UsageError } from '../kit/command.ts';
import { type Flags, instantMs, list } from '../kit/flags.ts';
import { Interruption } from '../kit/interruption.ts';
import { openReplay } from '../kit/open-replay.ts';
import { counted, Progress, printable } from '../kit/progress.ts';

/** `portcullis transactions replay`: replays dead letters or a period. */
export const transactionsReplay: CommandBody = {
  description: [
    `Republishes messages of ${REPUBLISHED.join(', ')}, each with the`,
    'header replayed-from: with --dlq the dead letters that were not replayed yet, with --from the messages published',
    'from then until --to or now. Messages that fail again become dead letters for the next run. Replaying is safe:',
    'duplicates have no effect. You can interrupt the command and run it again. Dead letters of reference.* are applied',
    'directly, because their topics keep the last message of each id. A higher version or a later deletion wins; a',
    'dead-lettered deletion is not replayed.',
  ].join('\n'),
  flags: {
    dlq: { help: 'replay dead letters', isSwitch: true },
    from: { help: 'replay messages published at or after this time (ISO 8601)' },
    to: { help: 'replay messages published before this time (ISO 8601)' },
    topic: {
      help: `only these topics, comma-separated: ${REPUBLISHED.join(',')}; with --dlq also reference.assets etc.`,
    },
  },
  examples: [
    'portcullis transactions replay --dlq',
    'portcullis transactions replay --dlq --topic transactions.admin --json',
    'portcullis transactions replay --dlq --topic reference.accounts,reference.assets',
    'portcullis transactions replay --from 2026-11-21T10:00:00Z --to 2026-11-21T11:00:00Z',
  ],
  async run(input) {
    const { flags, json, stack, printError, answer } = input;
    const span = spanOf(flags);
    const choice = span ? REPUBLISHED : REPLAYABLE;
    const topics = list(flags, 'topic', choice) ?? choice;
    if (topics.length === 0) throw new UsageError('--topic is empty');
    const needed = [
      ...topics.filter((topic) => !isCompactedTopic(topic)),
      ...(span ? [] : topics.map(deadLetterTopicOf)),
    ];
    const { signal } = stack.use(new Interruption());
    const { replay, record, deadAgain, dropped } = await openReplay(input, needed);
    const plans: ReplayPlan[] = [];
    for (const topic of new Set(topics)) {
      plans.push(await (span ? replay.between(topic, span.fromMs, span.toMs) : replay.deadLetters(topic)));
    }
    await record({ topics, ...(span && { from: flags.from, to: new Date(span.toMs).toISOString() }) });
    // A second run must use the same end, or it would also replay what this run has published.
    const again = span ? `run it again, with --to ${new Date(span.toMs).toISOString()}` : 'run it again';
    const counts = await runAll(replay, plans, { signal, again });
    const results = plans.map((plan, index) => resultOf(plan, counts[index] ?? 0, deadAgain));
    if (!json) printError(dropped.map((what) => `dropped ${printable(what)}\n`).join(''));
    const replayed = counts.reduce((sum, count) => sum + count, 0);
    return answer({ replayed, topics: results, dropped }, summary(results));
  },
};

/** Returns the period to replay, in ms since the epoch; undefined if dead letters are to be replayed. */
function spanOf(flags: Flags): { fromMs: number; toMs: number } | undefined {
  const [fromMs, toMs] = [instantMs(flags, 'from'), instantMs(flags, 'to')];
  if ((flags.dlq === true) === (fromMs !== undefined)) throw new UsageError('give either --dlq or --from TIME');
  if (fromMs === undefined) {
    if (toMs !== undefined) throw new UsageError('--to needs --from');
    return undefined;
  }
  const span = { fromMs, toMs: toMs ?? Date.now() };
  if (span.fromMs >= span.toMs) throw new UsageError('--from must be before --to, and before now');
  return span;
}

/** Runs the plans one after the other, and returns the number of messages that each has published. */
async function runAll(
  replay: Replay,
  plans: readonly ReplayPlan[],
  { signal, again }: { signal: AbortSignal; again: string },
): Promise<number[]> {
  const total = plans.reduce((sum, { count }) => sum + count, 0);
  const progress = new Progress(process.stderr);
  const counts = plans.map(() => 0);
  let replayedCount = 0;
  const progressText = () => `${counted(replayedCount)} of ${counted(total)} messages`;
  try {
    for (const [index, plan] of plans.entries()) {
      const onReplayed = (messages: number) => {
        counts[index] = (counts[index] ?? 0) + messages;
        replayedCount += messages;
        progress.show({ done: replayedCount, total, text: progressText() });
      };
      if (!signal.aborted) await replay.run(plan, { signal, onReplayed });
    }
  } catch (error) {
    if (!(error instanceof BusUnavailableError)) throw error;
    throw new CommandError(`the bus failed after ${progressText()} (${error.message}): ${again}`);
  } finally {
    progress.end();
  }
  if (signal.aborted) throw new CommandError(`interrupted after ${progressText()}: ${again}`);
  return counts;
}

/** The result of a plan; `dead_again` is known only for the topics whose messages this command applies itself. */
interface Result {
  from: string;
  topic: string;
  replayed: number;
  dead_again?: number;
}

function resultOf({ source, topic }: ReplayPlan, replayed: number, deadAgain: ReadonlyMap<string, number>): Result {
  const result = { from: source, topic, replayed };
  return isCompactedTopic(topic) ? { ...result, dead_again: deadAgain.get(topic) ?? 0 } : result;
}

function summary(results: readonly Result[]): string {
  const lines = results.map(({ from, topic, replayed, dead_again: dead }) => {
    const messages = `${counted(replayed)} messages of ${from}`;
    if (dead === undefined) return `${messages} published to ${topic}.\n`;
    return dead === 0 ? `${messages} applied.\n` : `${messages} applied, but ${counted(dead)} dead-lettered again.\n`;
  });
  return lines.join('');
}
