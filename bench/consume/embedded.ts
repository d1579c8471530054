import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { STEPS, stepsOf, transactionId } from '../lib/notifications.ts';
import { clientToken, readDemoFile, type Server, startProduct } from '../lib/product.ts';
import { runScript } from '../lib/run-script.ts';
import type { World } from '../lib/world.ts';
import { type Consumed, type Effort, filled, strideOf } from './measure.ts';
import type { Times } from './times.ts';

const POLL_MS = 500;

/** The same on the embedded stores: the times are those of the log, the CPU is what the process has noted by then. */
export async function consumeEmbedded(world: World, effort: Effort): Promise<Consumed> {
  const path = join(world.dataDir, 'cpu');
  const options = {
    ...(await filled(world, effort)),
    main: join(import.meta.dirname, 'sampled.ts'),
    env: { CPU_FILE: path },
  };
  const product = await startProduct(options);
  try {
    const isDone = await lastOnes(product, world, effort);
    while (!(await isDone())) await delay(POLL_MS);
  } finally {
    await product.stop();
  }
  const asked = { dataDir: world.dataDir, number: effort.notifications * effort.warmUp };
  const { fromMs, toMs, count } = (await runScript(join(import.meta.dirname, 'times.ts'), asked)) as Times;
  const cpuAt = samples(path);
  return {
    perSecond: (count * 1000) / (toMs - fromMs),
    productUs: ((cpuAt(toMs) - cpuAt(fromMs)) * 1000) / count,
    postgresUs: undefined,
  };
}

/** The CPU that had been taken at a time: the last that was noted before it. */
function samples(path: string): (atMs: number) => number {
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  const noted = lines.map((line) => line.split(' ').map(Number));
  return (atMs) => noted.findLast(([at = 0]) => at <= atMs)?.[1] ?? 0;
}

/** Each topic is one partition, worked off in order: its last transaction tells whether all is done. */
async function lastOnes({ url }: Server, { dataDir }: World, effort: Effort): Promise<() => Promise<boolean>> {
  const authorization = `Bearer ${await clientToken(url, readDemoFile(dataDir))}`;
  const [transactions, stride] = [effort.notifications / STEPS, strideOf(effort)];
  const [one, other] = [1, 2].map((fromEnd) => transactionId(1 + (transactions - fromEnd) * stride));
  const query = `{ one: transaction(id: "${one}") { gasUsed } other: transaction(id: "${other}") { gasUsed } }`;
  return async () => {
    const { body } = await request(`${url}/graphql`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query }),
    });
    const { data } = (await body.json()) as { data: Record<'one' | 'other', { gasUsed: string }> };
    return [data.one, data.other].every(({ gasUsed }) => stepsOf(Number(gasUsed)) === STEPS);
  };
}
