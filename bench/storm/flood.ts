import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';

/** A storm of logins: password grants of one client, one after another on each of the connections. */
export interface Flood {
  url: string;
  client: { client_id: string; client_secret: string };
  supervisor: { username: string; password: string };
  connections: number;
  durationMs: number;
  /** How long a caller that was told 503 waits before it tries again. */
  retryMs: number;
}

/** How many answers had each status, and how long they took together. */
export interface Flooded {
  answers: Record<string, number>;
  elapsedMs: number;
}

/**
 * Run as a process of its own, with a `Flood` as JSON: prints what came of it. Every other connection sends the
 * right password, the others a wrong one for a username of its own each time, so that no lock ends the work.
 */
async function flood({ url, client, supervisor, connections, durationMs, retryMs }: Flood): Promise<void> {
  const pool = new Pool(url, { connections, pipelining: 1 });
  const begun = performance.now();
  const answers: Flooded['answers'] = {};
  const headers = { 'content-type': 'application/json' };
  let strangers = 0;

  async function login(isRight: boolean): Promise<number> {
    const stranger = { username: `stranger-${strangers++}`, password: 'a guess' };
    const body = JSON.stringify({ grant_type: 'password', ...client, ...(isRight ? supervisor : stranger) });
    const answer = await pool.request({ method: 'POST', path: '/v2/oauth/token', headers, body });
    await answer.body.dump();
    return answer.statusCode;
  }

  async function lane(index: number): Promise<void> {
    while (performance.now() < begun + durationMs) {
      const status = await login(index % 2 === 0);
      answers[status] = (answers[status] ?? 0) + 1;
      if (status === 503) await delay(retryMs);
    }
  }

  await Promise.all(Array.from({ length: connections }, (_, index) => lane(index)));
  const flooded: Flooded = { answers, elapsedMs: performance.now() - begun };
  await pool.close();
  process.stdout.write(JSON.stringify(flooded));
}

const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: flood JSON');
await flood(JSON.parse(given));
