import { join } from 'node:path';
import { readDemoFile, type Server } from '../lib/product.ts';
import { runScript } from '../lib/run-script.ts';
import type { Flood, Flooded } from './flood.ts';
import { probeHealth, type Waits } from './probe.ts';

const FLOOD = join(import.meta.dirname, 'flood.ts');
const RETRY_MS = 100;
const ALLOWED = ['200', '401', '503'];

export interface Storm {
  health: Waits;
  /** Logins a second: those that succeeded, and those that were refused for their password. */
  right: number;
  wrong: number;
  /** How many were told 503, since the queue was full. */
  refused: number;
}

/** How long GET /health takes while nobody else asks. */
export async function calm(server: Server, durationMs: number): Promise<Waits> {
  const until = performance.now() + durationMs;
  return probeHealth(server.url, () => performance.now() > until);
}

/** The same while callers log in, from a process of its own, on `connections` connections. */
export async function storm(
  server: Server,
  dataDir: string,
  options: { connections: number; durationMs: number },
): Promise<Storm> {
  const { client, supervisor } = readDemoFile(dataDir);
  const flood: Flood = { url: server.url, client, supervisor, retryMs: RETRY_MS, ...options };
  let isOver = false;
  const flooding = runScript(FLOOD, flood).finally(() => {
    isOver = true;
  });
  const [flooded, health] = await Promise.all([flooding, probeHealth(server.url, () => isOver)]);
  const { answers, elapsedMs } = flooded as Flooded;
  const strange = Object.keys(answers).filter((status) => !ALLOWED.includes(status));
  if (strange.length > 0) throw new Error(`logins were answered ${strange.join(', ')}`);
  const perSecond = (status: string) => (answers[status] ?? 0) / (elapsedMs / 1000);
  return { health, right: perSecond('200'), wrong: perSecond('401'), refused: answers['503'] ?? 0 };
}
