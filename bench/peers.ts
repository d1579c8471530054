import { parseArgs } from 'node:util';
import { commitNow, machine } from './lib/machine.ts';
import { runEach } from './lib/pairs.ts';
import { watchOthers } from './lib/process-stats.ts';
import { markdown, print, tell, writeSection } from './lib/report.ts';
import { QUESTIONS, type Size } from './peers/questions.ts';
import { type Answered, tableOf } from './peers/rows.ts';

const SIZE: Size = { pairs: 5 };

/** What is asked, by the name of its section; a question that fails is named, and the others are measured. */
export type Answers = Map<keyof typeof QUESTIONS, Answered[]>;

/** Measures the product beside its peers and the shortest programs that keep as much; the questions that are named, or all. */
export async function measurePeers(names: readonly string[] = [], size: Size = SIZE): Promise<Answers> {
  const unknown = names.filter((name) => !Object.hasOwn(QUESTIONS, name));
  if (unknown.length > 0)
    throw new Error(`no question ${unknown.join(', ')}: one of ${Object.keys(QUESTIONS).join(', ')}`);
  const answers: Answers = new Map();
  const asked = (Object.keys(QUESTIONS) as (keyof typeof QUESTIONS)[]).filter(
    (name) => names.length === 0 || names.includes(name),
  );
  await runEach(
    asked.map((title) => ({ title })),
    async ({ title }) => {
      tell(`${title} …`);
      const busy = watchOthers();
      const questions = await QUESTIONS[title](size);
      const share = busy();
      answers.set(
        title,
        questions.map((question) => ({ ...question, busy: share })),
      );
    },
  );
  return answers;
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
  const requests = values.requests === undefined ? {} : { requests: Number(values.requests) };
  const [commit, startedAt, busy] = [commitNow(), performance.now(), watchOthers()];
  const answers = await measurePeers(positionals, { pairs: Number(values.pairs), ...requests });
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(0);
  const measuredOn = `${machine(commit, busy())}\n- ${minutes} minutes in all`;
  process.stdout.write(`${measuredOn}\n\n`);
  print(tableOf([...answers.values()].flat()));
  const asked = positionals.length > 0 ? positionals : Object.keys(QUESTIONS);
  if (answers.size < asked.length) process.exitCode = 1;
  if (values.write && answers.size < Object.keys(QUESTIONS).length)
    throw new Error('docs/measured.md is not written: it has all questions of one run');
  if (values.write) {
    writeSection('machine', measuredOn);
    for (const [name, answered] of answers) writeSection(name, markdown(tableOf(answered)));
  }
}
