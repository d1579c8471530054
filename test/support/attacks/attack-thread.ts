import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Tenant } from './attack.ts';
import { type Answers, Attacker, type Target } from './attacker.ts';
import { ANONYMOUS, ROWS } from './rows.ts';

/** One way of a row, or of callers without a token, and the tenant that tries it. */
export interface Attempt {
  what: string;
  way: string;
  tenant: Tenant;
}

/** What a thread is started with. */
interface Job {
  target: Target;
  attempts: readonly Attempt[];
  minMs: number;
}

/**
 * Attacks in these ways at once, each for at least so long, and resolves with their answers. It has a thread of its own,
 * since the way of the gateways to their servers is through this one.
 */
export async function attackApart(job: Job): Promise<Record<string, Answers>> {
  const worker = new Worker(import.meta.filename, { workerData: job, execArgv: [] });
  const [answers] = await once(worker, 'message');
  await worker.terminate();
  return answers;
}

async function attack({ target, attempts, minMs }: Job): Promise<void> {
  const answers = await Promise.all(
    attempts.map(async ({ what, way, tenant }): Promise<[string, Answers]> => {
      const run = ROWS[what]?.ways[way] ?? ANONYMOUS[way];
      if (!run) throw new Error(`there is no attack ${what}: ${way}`);
      using attacker = new Attacker(target, tenant);
      await Promise.all([run(attacker), delay(minMs)]);
      return [`${what}: ${way}`, attacker.answers];
    }),
  );
  parentPort?.postMessage(Object.fromEntries(answers));
}

if (!isMainThread && parentPort && workerData?.attempts) await attack(workerData);
