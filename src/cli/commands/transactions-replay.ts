import { BusUnavailableError } from '../../events/event-bus.ts';
import type { Replay, ReplayPlan } from '../../events/replay.ts';
import { deadLetterTopicOf, isCompactedTopic, REFERENCE_TOPICS, TOPICS } from '../../events/topics.ts';
import { parseInstant } from '../../lib/iso-instant.ts';
import { type Command, CommandError, EXIT_OK, UsageError } from '../command.ts';
import { listOf, text } from '../flags.ts';
import { Interruption } from '../interruption.ts';
import { type OpenReplay, openReplay } from '../open-replay.ts';
import { printable } from '../printable.ts';
import { Progress } from '../progress.ts';

/** What is published again. */
const REPUBLISHED: readonly string[] = [TOPICS.admin, TOPICS.user, TOPICS.registered];
/** What dead letters are taken of: those of reference data are applied, for their topics are compacted. */
const REPLAYABLE: readonly string[] = [...REPUBLISHED, ...REFERENCE_TOPICS];

/** `portcullis transactions replay`: dead letters, or a time, published once more. */
export const transactionsReplay: Command = {
  name: 'transactions replay',
  summary: 'publish dead letters, or what came in a time, to their topics again',
  description: [
    `Publishes messages of ${REPUBLISHED.join(', ')} once more, each with the`,
    'header replayed-from. With --dlq the dead letters that have not been replayed yet, with --from what was published',
    'since, up to --to or now. It takes what is there when it begins: what fails again is a new dead letter, for the next run.',
    'Consumers bear repeats: the same message twice changes nothing. It can be ended at any time and run again.',
    'Dead letters of reference.* are applied here and now: their topics keep the last message of each id, which is to stay.',
    'A higher version wins, and so does a deletion that came later; a dead deletion stays dead.',
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
    topic: `of these topics alone, between commas: ${REPUBLISHED.join(',')}; with --dlq reference.assets and so on, too`,
  },
  lists: { topic: REPLAYABLE },
  examples: [
    'portcullis transactions replay --dlq',
    'portcullis transactions replay --dlq --topic transactions.admin --json',
    'portcullis transactions replay --dlq --topic reference.accounts,reference.assets',
    'portcullis transactions replay --from 2026-11-21T10:00:00Z --to 2026-11-21T11:00:00Z',
  ],
  async run({ flags, env, json, print, complain }) {
    const span = spanOf(flags);
    const choice = span ? REPUBLISHED : REPLAYABLE;
    const topics = listOf(flags, 'topic', choice) ?? choice;
    if (topics.length === 0) throw new UsageError('--topic names none');
    const needed = [
      ...topics.filter((topic) => !isCompactedTopic(topic)),
      ...(span ? [] : topics.map(deadLetterTopicOf)),
    ];
    await using stack = new AsyncDisposableStack();
    const { signal } = stack.use(new Interruption());
    const { replay, ...report } = await openReplay(env, needed, stack);
    const plans: ReplayPlan[] = [];
    for (const topic of new Set(topics)) {
      plans.push(await (span ? replay.between(topic, span.fromMs, span.toMs) : replay.deadLetters(topic)));
    }
    // What this run has published is after that time: another one is not to take it for what came.
    const again = span ? `run it again, with --to ${new Date(span.toMs).toISOString()}` : 'run it again';
    const counts = await runAll(replay, plans, { signal, again });
    const results = plans.map((plan, index) => resultOf(plan, counts[index] ?? 0, report));
    if (json) print(`${JSON.stringify(view(results, report))}\n`);
    else {
      complain(report.dropped.map((what) => `dropped ${printable(what)}\n`).join(''));
      print(summary(results));
    }
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
async function runAll(
  replay: Replay,
  plans: readonly ReplayPlan[],
  { signal, again }: { signal: AbortSignal; again: string },
): Promise<number[]> {
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
    throw new CommandError(`the bus failed after ${soFar()} (${error.message}): ${again}`);
  } finally {
    progress.end();
  }
  if (signal.aborted) throw new CommandError(`interrupted after ${soFar()}: ${again}`);
  return counts;
}

type Report = Omit<OpenReplay, 'replay'>;

/** What came of a plan; how many died again is known only of what is applied here. */
interface Result {
  from: string;
  topic: string;
  replayed: number;
  dead_again?: number;
}

function resultOf({ source, topic }: ReplayPlan, replayed: number, { deadAgain }: Report): Result {
  const result = { from: source, topic, replayed };
  return isCompactedTopic(topic) ? { ...result, dead_again: deadAgain.get(topic) ?? 0 } : result;
}

function view(topics: readonly Result[], { dropped }: Report) {
  return { replayed: topics.reduce((sum, { replayed }) => sum + replayed, 0), topics, dropped };
}

function summary(results: readonly Result[]): string {
  const lines = results.map(({ from, topic, replayed, dead_again: dead }) => {
    const messages = `${counted(replayed)} messages of ${from}`;
    if (dead === undefined) return `${messages} published to ${topic}.\n`;
    return dead === 0 ? `${messages} applied.\n` : `${messages} applied, but ${counted(dead)} dead again.\n`;
  });
  return lines.join('');
}

function counted(number: number): string {
  return number.toLocaleString('en');
}
