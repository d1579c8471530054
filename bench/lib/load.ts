import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { atRate } from './at-rate.ts';
import { type Callers, callerTokens, tokenSigner } from './callers.ts';

/** What a load generator sends: the same request again and again, over keep-alive connections. */
export interface Load {
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  connections: number;
  requests: number;
  /** At this even rate, over so many connections that have had a request; otherwise one request after another on each. */
  perSecond?: number;
  /** Where no two requests may have the same bearer token: the secret that each is signed with. */
  tokenSecret?: string;
  /** With `tokenSecret`: requests are of so many clients in turn, each with one token. */
  callers?: Callers;
}

/**
 * Run as a process of its own, with a `Load` as JSON: prints the milliseconds from each request, or from when it was due,
 * to the end of its answer as a JSON array, and fails at the first answer that is not a 200.
 */
async function load(asked: Load): Promise<void> {
  const { url, method, headers, body = '', connections, requests, perSecond, tokenSecret, callers } = asked;
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, { connections, pipelining: 1 });
  const request = { method, path: `${pathname}${search}`, headers, body: method === 'GET' ? null : body };
  const next =
    tokenSecret === undefined
      ? () => request
      : callers === undefined
        ? withNewTokens(request, tokenSecret)
        : inTurn(request, callerTokens(request.headers.authorization ?? '', tokenSecret, callers));
  const latencies: number[] = [];
  const ask = async (dueAt?: number) => {
    const sent = next();
    const from = dueAt ?? performance.now();
    const answer = await pool.request(sent);
    if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}: ${await answer.body.text()}`);
    await answer.body.dump();
    latencies.push(performance.now() - from);
  };
  if (perSecond === undefined) {
    let left = requests;
    const lane = async () => {
      while (left-- > 0) await ask();
    };
    await Promise.all(Array.from({ length: connections }, lane));
  } else {
    await Promise.all(Array.from({ length: connections }, () => ask()));
    latencies.length = 0;
    await atRate(perSecond, requests, (_, dueAt) => ask(dueAt));
  }
  await pool.close();
  process.stdout.write(JSON.stringify(latencies));
}

interface Sent {
  headers: Record<string, string>;
}

/** The same request with another token each time: the claims it has, and a `jti` of its own. */
function withNewTokens<Asked extends Sent>(request: Asked, secret: string): () => Asked {
  const sign = tokenSigner(request.headers.authorization ?? '', secret);
  return () => withToken(request, sign({ jti: randomUUID() }));
}

/** The same request with each of the tokens in turn. */
function inTurn<Asked extends Sent>(request: Asked, tokens: readonly string[]): () => Asked {
  const requests = tokens.map((token) => withToken(request, token));
  let sent = 0;
  return () => requests[sent++ % requests.length] ?? request;
}

function withToken<Asked extends Sent>(request: Asked, token: string): Asked {
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } };
}

const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: load JSON');
await load(JSON.parse(given));
