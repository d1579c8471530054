import { userInfo } from 'node:os';
import { SECRETS } from '../../audit/masked-names.ts';
import {
  BusUnavailableError,
  deadLetterTopicOf,
  type IncomingMessage,
  letterId,
  letterPlace,
  originOf,
} from '../../events/bus/event-bus.ts';
import { isCompactedTopic, REPLAYABLE } from '../../events/bus/topics.ts';
import { type CommandBody, CommandError, type CommandInput, UsageError } from '../kit/command.ts';
import { list, text, wholeNumber } from '../kit/flags.ts';
import { Interruption } from '../kit/interruption.ts';
import { openReplay } from '../kit/open-replay.ts';
import { printRows } from '../kit/print-rows.ts';
import { counted, printable } from '../kit/progress.ts';

const EXAMPLE = 'transactions.admin.dlq-3-17';
const DEFAULT_LIMIT = 100;
const MAX_REASON = 1_000;
const MAX_VALUE_BYTES = 1024 * 1024;

/** `portcullis dead-letters list`: prints the dead letters that wait for a decision. */
export const deadLettersList: CommandBody = {
  description: [
    'Lists the dead letters that wait: they were neither replayed nor discarded. The columns are id, time, key and error.',
    'An id is the topic of the dead letter, its partition and its offset.',
  ].join('\n'),
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
    return printRows(input, { name: 'dead_letters', rows, view: (row) => row, line });
  },
};

function rowOf({ timestampMs, key, headers: { error = '' }, ...place }: IncomingMessage) {
  return { id: letterId(place), at: new Date(timestampMs).toISOString(), key, error: SECRETS.maskText(error) };
}

function line({ id, at, key, error }: ReturnType<typeof rowOf>): string {
  return `${id}  ${at}  ${printable(key) || '-'}  ${printable(error)}\n`;
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
  ].join('\n'),
  positionals: ['ID'],
  examples: [`portcullis dead-letters show ${EXAMPLE}`, `portcullis dead-letters show ${EXAMPLE} --json`],
  async run(input) {
    const { letter, plan, decided } = await openLetter(input);
    const [{ maskHeaders }, { maskBody }] = await Promise.all([
      import('../../audit/mask-headers.ts'),
      import('../../audit/mask.ts'),
    ]);
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
  if (!isDone) await replay.run(plan, { signal, onReplayed }).catch(orBusFailure);
  if (!isDone) throw new CommandError(`interrupted: ${id} was not replayed`);
  await positions.decide(letter, { decision, reason, by: userInfo().username });
  await replay.deadLetters(plan.topic, { settles: true });
  if (deadAgain.size > 0) throw new CommandError(`${id} was applied, but dead-lettered again: fix the cause first`);
  return input.answer({ id, decision }, `${id} is ${decision}.\n`);
}

function orBusFailure(error: unknown): never {
  throw error instanceof BusUnavailableError ? new CommandError(`the bus failed (${error.message}): try again`) : error;
}

/** `portcullis dead-letters replay`: replays one dead letter. */
export const deadLettersReplay: CommandBody = {
  description: [
    'Replays one dead letter, as transactions replay --dlq replays all that wait. If it fails again, it becomes a new dead',
    'letter. The audit has a record of it.',
  ].join('\n'),
  positionals: ['ID'],
  examples: [`portcullis dead-letters replay ${EXAMPLE}`],
  run: (input) => decide(input, 'replayed', null),
};

/** `portcullis dead-letters discard`: decides that a dead letter is never replayed. */
export const deadLettersDiscard: CommandBody = {
  description: [
    'Discards a dead letter: lists no longer show it, and no replay takes it. Its topic keeps the message for its 30 days. The',
    'decision cannot be taken back. The audit has a record of it, with the reason.',
  ].join('\n'),
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
