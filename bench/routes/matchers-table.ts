import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { gatewayConfig } from '../gateway/contenders.ts';
import { type Table, tell } from '../lib/report.ts';
import { runScript } from '../lib/run-script.ts';
import { median } from '../lib/statistics.ts';
import { emptyFolder } from '../lib/world.ts';
import { type Kind, manyEndpoints } from './endpoints.ts';
import type { MatcherName } from './matchers.ts';
import type { Matching, MatchingOptions } from './matching.ts';

const TITLES: Record<MatcherName, string> = {
  table: 'PathTable',
  'find-my-way': 'find-my-way (Fastify)',
  'path-to-regexp': 'path-to-regexp, one by one (Express)',
};
const NAMES = ['table', 'find-my-way', 'path-to-regexp'] as const satisfies MatcherName[];
const KINDS = ['literal', 'parameters', 'miss', 'deep'] as const satisfies Kind[];

/** Matching and compiling, beside peers, by the number of endpoints: each a process of its own, in turn. */
export async function measureMatchers(counts: readonly number[], rounds: number): Promise<Table> {
  const measured = new Map<string, Matching[]>();
  for (let round = 1; round <= rounds; round++) {
    tell(`matching, round ${round} of ${rounds} …`);
    for (const matcher of NAMES) {
      for (const endpoints of counts) {
        const options: MatchingOptions = { matcher, endpoints };
        const result = (await runScript(join(import.meta.dirname, 'matching.ts'), options)) as Matching;
        measured.set(keyOf(options), [...(measured.get(keyOf(options)) ?? []), result]);
      }
    }
  }
  return {
    head: ['CPU of a match, ns', 'endpoints', 'literal', 'parameters', 'miss', 'deep', 'to compile them, ms'],
    rows: NAMES.flatMap((matcher) =>
      counts.map((endpoints) => {
        const results = measured.get(keyOf({ matcher, endpoints })) ?? [];
        const ns = KINDS.map((kind) => Math.round(median(results.map((result) => result.ns[kind]))));
        const compileMs = median(results.map((result) => result.compileMs));
        return [TITLES[matcher], grouped(endpoints), ...ns.map(grouped), compileMs.toFixed(1)];
      }),
    ),
  };
}

/** What reading and checking a `gateway.yaml` takes at the start, by the number of its endpoints. */
export async function measureReading(counts: readonly number[], rounds: number): Promise<Table> {
  await using folder = await emptyFolder();
  const rows: string[][] = [];
  for (const count of counts) {
    const path = join(folder.path, `${count}.yaml`);
    writeFileSync(path, stringify(gatewayConfig({}, () => manyEndpoints(count))));
    const times: number[] = [];
    for (let round = 0; round < rounds; round++)
      times.push((await runScript(join(import.meta.dirname, 'reading.ts'), path)) as number);
    rows.push([grouped(count), median(times).toFixed(0)]);
  }
  return { head: ['endpoints in gateway.yaml', 'CPU to read and check it, ms'], rows };
}

/** A whole number with its thousands apart. */
export function grouped(value: number): string {
  return value.toLocaleString('en-US');
}

function keyOf({ matcher, endpoints }: MatchingOptions): string {
  return `${matcher} ${endpoints}`;
}
