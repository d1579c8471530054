import { Pool } from 'undici';

const CONNECTIONS = 8;

/**
 * Run as a process of its own: `load URL REQUESTS [TOKEN]` sends GETs over eight keep-alive connections, one after
 * another on each, and fails at the first answer that is not a 200.
 */
async function load(target: string, requests: number, token: string | undefined): Promise<void> {
  const { origin, pathname, search } = new URL(target);
  const pool = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 });
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  let left = requests;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const { statusCode, body } = await pool.request({ method: 'GET', path: `${pathname}${search}`, headers });
      if (statusCode !== 200) throw new Error(`answered ${statusCode}: ${await body.text()}`);
      await body.dump();
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, lane));
  await pool.close();
}

const [, , target = '', requests, token] = process.argv;
await load(target, Number(requests), token);
