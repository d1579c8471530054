import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** A request that others make while an attack lasts. */
export interface ProbeRequest {
  name: string;
  url: string;
  headers: Record<string, string>;
  /** The body of a POST, in which each request has a new UUID in the place of `UUID`. */
  body?: string;
}

/** What others met: by the name of the request how long it took, in ms, and the answers that were refusals. */
export interface Figures {
  requests: number;
  p50: number;
  p99: number;
  slowest: number;
  refused: string[];
}

const REST_MS = 20;
const TIMEOUT_MS = 60_000;

/** Makes the requests again and again in a thread of its own, which an attack on its own thread does not hold up. */
export function startProbe(requests: readonly ProbeRequest[]): () => Promise<Record<string, Figures>> {
  const worker = new Worker(import.meta.filename, { workerData: requests, execArgv: [] });
  const ended = once(worker, 'message');
  return async () => {
    worker.postMessage('stop');
    const [figures] = await ended;
    await worker.terminate();
    return figures;
  };
}

async function probe(): Promise<void> {
  let isOver = false;
  parentPort?.once('message', () => {
    isOver = true;
  });
  const seen: Record<string, { took: number[]; refused: string[] }> = {};
  const ask = async ({ name, url, headers, body }: ProbeRequest) => {
    const startedAt = performance.now();
    let refusal: string | undefined;
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const sent = body && { method: 'POST', body: body.replace('UUID', randomUUID()) };
      const answer = await fetch(url, { headers, signal, ...sent });
      const text = await answer.text();
      if (answer.status !== 200 || text.includes('"errors"')) refusal = `${answer.status} ${text.slice(0, 200)}`;
    } catch (error) {
      refusal = String(error);
    }
    const figures = seen[name] ?? { took: [], refused: [] };
    seen[name] = figures;
    figures.took.push(performance.now() - startedAt);
    if (refusal) figures.refused.push(refusal);
  };
  await Promise.all(
    (workerData as ProbeRequest[]).map(async (request) => {
      while (!isOver) {
        await ask(request);
        await delay(REST_MS);
      }
    }),
  );
  parentPort?.postMessage(Object.fromEntries(Object.entries(seen).map(([name, one]) => [name, figuresOf(one)])));
}

function figuresOf({ took, refused }: { took: number[]; refused: string[] }): Figures {
  took.sort((one, other) => one - other);
  const at = (share: number) => Math.round(took[Math.floor((took.length - 1) * share)] ?? 0);
  return { requests: took.length, p50: at(0.5), p99: at(0.99), slowest: at(1), refused };
}

if (!isMainThread && parentPort && Array.isArray(workerData)) await probe();
