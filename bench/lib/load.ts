import { Pool } from 'undici';

/** What a load generator sends: the same request again and again, one after another on each keep-alive connection. */
export interface Load {
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  connections: number;
  requests: number;
}

/**
 * Run as a process of its own, with a `Load` as JSON: prints the milliseconds from each request to the end of its answer
 * as a JSON array, and fails at the first answer that is not a 200.
 */
async function load({ url, method, headers, body = '', connections, requests }: Load): Promise<void> {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, { connections, pipelining: 1 });
  const request = { method, path: `${pathname}${search}`, headers, body: method === 'GET' ? null : body };
  const latencies: number[] = [];
  let left = requests;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const from = performance.now();
      const answer = await pool.request(request);
      if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}: ${await answer.body.text()}`);
      await answer.body.dump();
      latencies.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: connections }, lane));
  await pool.close();
  process.stdout.write(JSON.stringify(latencies));
}

const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: load JSON');
await load(JSON.parse(given));
