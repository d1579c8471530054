import { userInfo } from 'node:os';
import { SECRETS } from '../../audit/masked-names.ts';
import {
  BusUnavailableError,
  deadLetterTopicOf,
  type EventBus,
  type IncomingMessage,
  letterId,
  letterPlace,
  originOf,
} from '../../events/bus/event-bus.ts';
import type { Replay, ReplayPlan } from '../../events/bus/replay.ts';
import { isCompactedTopic, REPLAYABLE, REPUBLISHED } from '../../events/bus/topics.ts';
import { lateReferenceHandler } from '../../features/reference/reference.consumers.ts';
import { silentLog } from '../../lib/log.ts';
import {
  type CommandBody,
  CommandError,
  type CommandInput,
  counted,
  Interruption,
  type Progress,
  printable,
  printRows,
  UsageError,
} from '../kit/command.ts';
import { type Flags, instantMs, list, text, wholeNumber } from '../kit/flags.ts';
import { openFeatures } from '../kit/open-services.ts';

const EXAMPLE = 'transactions.admin.dlq-3-17';
const DEFAULT_LIMIT = 100;
const MAX_REASON = 1_000;
const MAX_VALUE_BYTES = 1024 * 1024;

/** `portcullis dead-letters list`: prints the dead letters that wait for a decision. */
export const deadLettersList: CommandBody = {
  description: [
    'Lists the dead letters that wait: they were neither replayed nor discarded. The columns are id, time, key and error.',
    'An id is the topic of the dead letter, its partition and its offset.',
  ].join(' '),
  flags: {
    topic: { help: `only these topics, comma-separated: ${REPLAYABLE.join(',')}` },
    limit: { help: `maximum number of dead letters (default ${DEFAULT_LIMIT})` },
  },
  examples: ['portcullis dead-letters list', 'portcullis dead-letters list --topic transactions.admin --json'],
  async run(input) {
    const topics = list(input.flags, 'topic', REPLAYABLE) ?? REPLAYABLE;
    const limit = wholeNumber(input.flags, 'limit', DEFAULT_LIMIT) ?? DEFAULT_LIMIT;
    const { replay } = await openReplay(input, topics.map(deadLetterTopicOf));
    const rows: ReturnType<typeof rowOf>[] = [];
    let total = 0;
    for (const topic of new Set(topics)) {
      const plan = await replay.deadLetters(topic);
      const enough = new AbortController();
      const collect = async (batch: IncomingMessage[]) => {
        rows.push(...batch.slice(0, limit - rows.length).map(rowOf));
        if (rows.length >= limit) enough.abort();
      };
      total += plan.count;
      if (rows.length < limit) await replay.read(plan, collect, enough.signal);
    }
    if (total > rows.length) input.printError(`Showing ${counted(rows.length)} of ${counted(total)} dead letters.\n`);
    return printRows(input, {
      name: 'dead_letters',
      rows,
      view: (row) => row,
      line: ({ id, at, key, error }) => `${id}  ${at}  ${printable(key) || '-'}  ${printable(error)}\n`,
    });
  },
};

function rowOf({ timestampMs, key, headers: { error = '' }, ...place }: IncomingMessage) {
  return { id: letterId(place), at: new Date(timestampMs).toISOString(), key, error: SECRETS.maskText(error) };
}

/**
 * Opens the replay of the dead letter that a command names, and reads it. `decided` says why it does not wait.
 * @throws UsageError for no id of a dead letter; CommandError if its topic does not keep it.
 */
async function openLetter(input: CommandInput) {
  const place = letterPlace(input.positionals[0] ?? '');
  const topic = originOf(place?.topic ?? '');
  if (!place || !REPLAYABLE.includes(topic))
    throw new UsageError(`ID must be one that portcullis dead-letters list shows, such as ${EXAMPLE}`);
  const opened = await openReplay(input, [place.topic, ...(isCompactedTopic(topic) ? [] : [topic])]);
  const { signal } = input.stack.use(new Interruption());
  const [id, plan] = [letterId(place), await opened.replay.letter(place)];
  const letters: IncomingMessage[] = [];
  if (plan) await opened.replay.read(plan, async (batch) => void letters.push(...batch), signal);
  const [letter] = letters;
  if (!plan || !letter) throw new CommandError(`there is no dead letter ${id}; topics keep dead letters for 30 days`);
  const { isWaiting, decision = { decision: 'replayed', reason: null, by: null } } = await opened.replay.stateOf(place);
  return { ...opened, signal, id, plan, letter, decided: isWaiting ? undefined : decision };
}

/** `portcullis dead-letters show`: prints one dead letter, masked. */
export const deadLettersShow: CommandBody = {
  description: [
    'Shows a dead letter with its headers and its value, in which secrets are *** as in the audit, and whether it waits, was',
    'replayed or was discarded. A value that is not JSON is not shown.',
  ].join(' '),
  positionals: ['ID'],
  examples: [`portcullis dead-letters show ${EXAMPLE}`, `portcullis dead-letters show ${EXAMPLE} --json`],
  async run(input) {
    const { letter, plan, decided } = await openLetter(input);
    const { maskBody, maskHeaders } = await import('../../audit/mask.ts');
    const { headers, value } = letter;
    const whole = { maxBytes: MAX_VALUE_BYTES, truncated: false };
    const shown = {
      ...{ ...rowOf(letter), topic: plan.topic, state: decided?.decision ?? 'waiting' },
      ...{ reason: decided?.reason ?? null, decided_by: decided?.by ?? null, headers: maskHeaders(headers) },
      ...{ bytes: value?.length ?? 0, value: value && maskBody('application/json', value, whole) },
    };
    const lines = Object.entries(shown).map(([name, member]) => {
      return `${name.padEnd(10)}  ${printable(typeof member === 'object' ? JSON.stringify(member) : String(member))}\n`;
    });
    return input.answer(shown, lines.join(''));
  },
};

/** Executes a decision about the dead letter that a command names, with a record in the audit before it. */
async function decide(input: CommandInput, decision: 'replayed' | 'discarded', reason: string | null) {
  const { replay, positions, record, deadAgain, signal, id, plan, letter, decided } = await openLetter(input);
  if (decided) throw new CommandError(`${id} was ${decided.decision}: portcullis dead-letters show ${id} says more`);
  await record({ id, ...(reason !== null && { reason }) });
  let isDone = decision === 'discarded';
  const onReplayed = () => {
    isDone = true;
  };
  if (!isDone)
    await replay.run(plan, { signal, onReplayed }).catch((error: unknown) => {
      throw error instanceof BusUnavailableError
        ? new CommandError(`the bus failed (${error.message}): try again`)
        : error;
    });
  if (!isDone) throw new CommandError(`interrupted: ${id} was not replayed`);
  await positions.decide(letter, { decision, reason, by: userInfo().username });
  await replay.deadLetters(plan.topic, { settles: true });
  if (deadAgain.size > 0) throw new CommandError(`${id} was applied, but dead-lettered again: fix the cause first`);
  return input.answer({ id, decision }, `${id} is ${decision}.\n`);
}

/** `portcullis dead-letters replay`: replays one dead letter. */
export const deadLettersReplay: CommandBody = {
  description: [
    'Replays one dead letter, as transactions replay --dlq replays all that wait. If it fails again, it becomes a new dead',
    'letter. The audit has a record of it.',
  ].join(' '),
  positionals: ['ID'],
  examples: [`portcullis dead-letters replay ${EXAMPLE}`],
  run: (input) => decide(input, 'replayed', null),
};

/** `portcullis dead-letters discard`: decides that a dead letter is never replayed. */
export const deadLettersDiscard: CommandBody = {
  description: [
    'Discards a dead letter: lists no longer show it, and no replay takes it. Its topic keeps the message for its 30 days. The',
    'decision cannot be taken back. The audit has a record of it, with the reason.',
  ].join(' '),
  positionals: ['ID'],
  flags: { reason: { help: 'why, for the audit record; do not quote the message', required: 'TEXT' } },
  examples: [`portcullis dead-letters discard ${EXAMPLE} --reason "sent by a test, INC-7"`],
  async run(input) {
    const reason = text(input.flags, 'reason')?.trim() ?? '';
    if (reason === '' || reason.length > MAX_REASON)
      throw new UsageError(`--reason must have 1 to ${MAX_REASON} characters`);
    return decide(input, 'discarded', reason);
  },
};

/** `portcullis transactions replay`: replays dead letters or a period. */
export const transactionsReplay: CommandBody = {
  description: [
    `Republishes messages of ${REPUBLISHED.join(', ')}, each with the`,
    'header replayed-from: with --dlq the dead letters that were not replayed yet, with --from the messages published',
    'from then until --to or now. Messages that fail again become dead letters for the next run. Replaying is safe:',
    'duplicates have no effect. You can interrupt the command and run it again. Dead letters of reference.* are applied',
    'directly, because their topics keep the last message of each id. A higher version or a later deletion wins; a',
    'dead-lettered deletion is not replayed.',
  ].join(' '),
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
    const { flags, json, stack, progress, printError, answer } = input;
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
    const counts = await runAll(replay, plans, { signal, again, progress });
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
  { signal, again, progress }: { signal: AbortSignal; again: string; progress: Progress },
): Promise<number[]> {
  const total = plans.reduce((sum, { count }) => sum + count, 0);
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

/**
 * Opens the database and the bus for a replay that needs `topics`, until `stack` is disposed of.
 * @throws CommandError when the schema is outdated or a topic is missing.
 */
async function openReplay(input: Pick<CommandInput, 'command' | 'env' | 'stack'>, topics: readonly string[]) {
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
