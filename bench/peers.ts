import { parseArgs } from 'node:util';
import { commitNow, machine } from './lib/machine.ts';
import { runEach } from './lib/pairs.ts';
import { watchOthers } from './lib/process-stats.ts';
import { markdown, print, type Table, tell, writeSection } from './lib/report.ts';
import { AT_A_SHARE, QUESTIONS, type Size, withLatency } from './peers/questions.ts';
import { type Answered, latencyTableOf, tableOf } from './peers/rows.ts';

const SIZE: Size = { pairs: 5 };

type Name = keyof typeof QUESTIONS;

/** Of the name of a question, or `latency`: latencies of the questions that have them. */
type Section = Name | 'latency';

const SECTIONS = [...(Object.keys(QUESTIONS) as Name[]), 'latency'] as const;

/** What is asked, by the name of its section. */
export type Answers = Map<Section, Answered[]>;

/**
 * Measures the product beside its peers and the shortest programs that keep as much; what is named, or all. Latencies are
 * those of the questions beside them, or of all that have some. A question that fails is named, and the others are measured.
 */
export async function measurePeers(names: readonly string[] = [], size: Size = SIZE): Promise<Answers> {
  const unknown = names.filter((name) => !SECTIONS.some((section) => section === name));
  if (unknown.length > 0) throw new Error(`no question ${unknown.join(', ')}: one of ${SECTIONS.join(', ')}`);
  const isAsked = (section: Section) => names.length === 0 || names.includes(section);
  const answers: Answers = new Map();
  const add = (section: Section, answered: readonly Answered[]) =>
    answers.set(section, [...(answers.get(section) ?? []), ...answered]);
  const onlyLatency = isAsked('latency') && !AT_A_SHARE.some(isAsked);
  const questions = SECTIONS.filter((name) => name !== 'latency').flatMap((title) => {
    const hasLatency = isAsked('latency') && AT_A_SHARE.some((name) => name === title);
    if (!isAsked(title) && !(onlyLatency && hasLatency)) return [];
    return [{ title, hasLatency, size: hasLatency ? withLatency(size, onlyLatency) : size }];
  });
  const left = await runEach(questions, async ({ title, hasLatency, size: asked }) => {
    tell(`${title} …`);
    const busy = watchOthers();
    const measured = await QUESTIONS[title](asked);
    const share = busy();
    const answered = measured.map((question) => ({ ...question, busy: share }));
    if (!asked.onlyLatency) add(title, answered);
    if (hasLatency) add('latency', answered);
  });
  if (left.length < questions.length) process.exitCode = 1;
  return answers;
}

/** The answers as tables: one of all questions, and one of latencies. */
export function tablesOf(answers: Answers): Table[] {
  const { latency = [], ...questions } = Object.fromEntries(answers);
  const all = Object.values(questions).flat();
  return [...(all.length > 0 ? [tableOf(all)] : []), ...(latency.length > 0 ? [latencyTableOf(latency)] : [])];
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      pairs: { type: 'string', default: `${SIZE.pairs}` },
      requests: { type: 'string' },
      write: { type: 'boolean', default: false },
    },
  });
  const requests = values.requests === undefined ? undefined : Number(values.requests);
  const [commit, startedAt, busy] = [commitNow(), performance.now(), watchOthers()];
  const answers = await measurePeers(positionals, { pairs: Number(values.pairs), requests });
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(0);
  const measuredOn = `${machine(commit, busy())}\n- ${minutes} minutes in all`;
  process.stdout.write(`${measuredOn}\n\n`);
  tablesOf(answers).forEach(print);
  if (values.write && answers.size < SECTIONS.length)
    throw new Error('docs/measured.md is not written: it has all questions of one run');
  if (values.write) {
    writeSection('machine', measuredOn);
    for (const [name, answered] of answers)
      writeSection(name, markdown(name === 'latency' ? latencyTableOf(answered) : tableOf(answered)));
  }
}
