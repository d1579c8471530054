import { createHmac, randomUUID } from 'node:crypto';
import { Pool } from 'undici';

/** What a load generator sends: the same request again and again, one after another on each keep-alive connection. */
export interface Load {
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  connections: number;
  requests: number;
  /** Where no two requests may have the same bearer token: the secret that each is signed with. */
  tokenSecret?: string;
}

/**
 * Run as a process of its own, with a `Load` as JSON: prints the milliseconds from each request to the end of its answer
 * as a JSON array, and fails at the first answer that is not a 200.
 */
async function load({ url, method, headers, body = '', connections, requests, tokenSecret }: Load): Promise<void> {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, { connections, pipelining: 1 });
  const request = { method, path: `${pathname}${search}`, headers, body: method === 'GET' ? null : body };
  const next = tokenSecret === undefined ? () => request : withNewTokens(request, tokenSecret);
  const latencies: number[] = [];
  let left = requests;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const asked = next();
      const from = performance.now();
      const answer = await pool.request(asked);
      if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}: ${await answer.body.text()}`);
      await answer.body.dump();
      latencies.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: connections }, lane));
  await pool.close();
  process.stdout.write(JSON.stringify(latencies));
}

/** The same request with another token each time: the claims it has, and a `jti` of its own. */
function withNewTokens<Asked extends { headers: Record<string, string> }>(request: Asked, secret: string): () => Asked {
  const [head, claims = ''] = (request.headers.authorization ?? '').replace(/^Bearer /, '').split('.');
  const read = JSON.parse(Buffer.from(claims, 'base64url').toString());
  return () => {
    const written = Buffer.from(JSON.stringify({ ...read, jti: randomUUID() })).toString('base64url');
    const signature = createHmac('sha256', secret).update(`${head}.${written}`).digest('base64url');
    return { ...request, headers: { ...request.headers, authorization: `Bearer ${head}.${written}.${signature}` } };
  };
}

const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: load JSON');
await load(JSON.parse(given));
