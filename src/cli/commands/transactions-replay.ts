import { BusUnavailableError } from '../../events/event-bus.ts';
import type { Replay, ReplayPlan } from '../../events/replay.ts';
import { deadLetterTopicOf, TOPICS } from '../../events/topics.ts';
import { parseInstant } from '../../lib/iso-instant.ts';
import { type Command, CommandError, EXIT_OK, UsageError } from '../command.ts';
import { listOf, text } from '../flags.ts';
import { Interruption } from '../interruption.ts';
import { openReplay } from '../open-replay.ts';
import { Progress } from '../progress.ts';

const REPLAYABLE: readonly string[] = [TOPICS.admin, TOPICS.user, TOPICS.registered];

/** `portcullis transactions replay`: dead letters, or a time, published once more. */
export const transactionsReplay: Command = {
  name: 'transactions replay',
  summary: 'publish dead letters, or what came in a time, to their topics again',
  description: [
    `Publishes messages of ${REPLAYABLE.join(', ')} once more, each with the`,
    'header replayed-from. With --dlq the dead letters that have not been replayed yet, with --from what was published',
    'since, up to --to or now. It takes what is there when it begins: what fails again is a new dead letter, for the next run.',
    'Consumers bear repeats: the same message twice changes nothing. It can be ended at any time and run again.',
  ].join('\n'),
  positionals: [],
  flags: {
    dlq: { type: 'boolean' },
    from: { type: 'string' },
    to: { type: 'string' },
    topic: { type: 'string' },
  },
  flagHelp: {
    dlq: 'the dead letters',
    from: 'what was published at this time or later, in ISO 8601',
    to: 'what was published before this time',
    topic: `of these topics alone, between commas: ${REPLAYABLE.join(',')}`,
  },
  examples: [
    'portcullis transactions replay --dlq',
    'portcullis transactions replay --dlq --topic transactions.admin --json',
    'portcullis transactions replay --from 2026-11-21T10:00:00Z --to 2026-11-21T11:00:00Z',
  ],
  async run({ flags, env, json, print }) {
    const span = spanOf(flags);
    const topics = listOf(flags, 'topic', REPLAYABLE) ?? REPLAYABLE;
    if (topics.length === 0) throw new UsageError('--topic names none');
    const sources = span ? [] : topics.map(deadLetterTopicOf);
    await using stack = new AsyncDisposableStack();
    const { signal } = stack.use(new Interruption());
    const replay = await openReplay(env, [...topics, ...sources], stack);
    const plans: ReplayPlan[] = [];
    for (const topic of new Set(topics)) {
      plans.push(await (span ? replay.between(topic, span.fromMs, span.toMs) : replay.deadLetters(topic)));
    }
    const counts = await runAll(replay, plans, signal);
    print(json ? `${JSON.stringify(view(plans, counts))}\n` : summary(plans, counts));
    return EXIT_OK;
  },
};

type Flags = Parameters<Command['run']>[0]['flags'];

/** The time that is asked for; undefined for dead letters. */
function spanOf(flags: Flags): { fromMs: number; toMs: number } | undefined {
  const [fromMs, toMs] = [instantMs(flags, 'from'), instantMs(flags, 'to')];
  if ((flags.dlq === true) === (fromMs !== undefined)) throw new UsageError('give either --dlq or --from TIME');
  if (fromMs === undefined) {
    if (toMs !== undefined) throw new UsageError('--to goes with --from');
    return undefined;
  }
  const span = { fromMs, toMs: toMs ?? Date.now() };
  if (span.fromMs >= span.toMs) throw new UsageError('--from must be before --to, and before now');
  return span;
}

/** The first millisecond at the time or after it. */
function instantMs(flags: Flags, name: string): number | undefined {
  const value = text(flags, name);
  if (value === undefined) return undefined;
  const instant = parseInstant(value);
  if (!instant) throw new UsageError(`--${name} must be a time in ISO 8601, like 2026-11-21T10:30:00Z`);
  return Number(instant.seconds) * 1_000 + Math.ceil(instant.nanos / 1_000_000);
}

/** Runs plan after plan; gives how many messages of each were published. */
async function runAll(replay: Replay, plans: readonly ReplayPlan[], signal: AbortSignal): Promise<number[]> {
  const total = plans.reduce((sum, { count }) => sum + count, 0);
  const progress = new Progress(process.stderr);
  const counts = plans.map(() => 0);
  let done = 0;
  const soFar = () => `${counted(done)} of ${counted(total)} messages`;
  try {
    for (const [index, plan] of plans.entries()) {
      const onReplayed = (messages: number) => {
        counts[index] = (counts[index] ?? 0) + messages;
        done += messages;
        progress.show({ done, total, text: soFar() });
      };
      if (!signal.aborted) await replay.run(plan, { signal, onReplayed });
    }
  } catch (error) {
    if (!(error instanceof BusUnavailableError)) throw error;
    throw new CommandError(`the bus failed after ${soFar()} (${error.message}): run it again`);
  } finally {
    progress.end();
  }
  if (signal.aborted) throw new CommandError(`interrupted after ${soFar()}: run it again`);
  return counts;
}

function view(plans: readonly ReplayPlan[], counts: readonly number[]) {
  const topics = plans.map(({ source, topic }, index) => ({ from: source, topic, replayed: counts[index] ?? 0 }));
  return { replayed: counts.reduce((sum, count) => sum + count, 0), topics };
}

function summary(plans: readonly ReplayPlan[], counts: readonly number[]): string {
  return plans
    .map(({ source, topic }, index) => `${counted(counts[index] ?? 0)} messages of ${source} published to ${topic}.\n`)
    .join('');
}

function counted(number: number): string {
  return number.toLocaleString('en');
}
