import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setImmediate as nextTick } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Capture } from '../../src/gateway/exchange/capture.ts';
import { usePortcullis } from '../support/harness.ts';

const p = usePortcullis();
let token: string;
const agent = new Agent({ keepAlive: true });
/** What the product kept of each request while it was sent, by what it was. */
const kept: Record<string, { status: number; refs: WeakRef<object>[] }> = {};

beforeAll(async () => {
  token = await p.loginToken();
  for (const [what, method, path, body] of REQUESTS) {
    const { refs, end } = captured();
    kept[what] = { status: await sent(method, path, body), refs };
    end();
  }
  // Once for all of them: a collection of a heap that many files have shared takes long.
  setFlagsFromString('--expose-gc');
  const isLeft = () => Object.values(kept).some(({ refs }) => refs.some((ref) => ref.deref()));
  for (let tries = 0; tries < 20 && isLeft(); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    await nextTick();
    runInNewContext('gc')();
  }
});
afterAll(async () => {
  agent.destroy();
});

/** What the product keeps of each request from now on, until it lets go of it. */
function captured(): { refs: WeakRef<object>[]; end(): void } {
  const refs: WeakRef<object>[] = [];
  const { install } = Capture.prototype;
  Capture.prototype.install = function noted(this: Capture, ...given) {
    refs.push(new WeakRef(this));
    install.apply(this, given);
  };
  const end = () => {
    Capture.prototype.install = install;
  };
  return { refs, end };
}

async function sent(method: string, path: string, body?: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const asked = request(`${p.url}${path}`, { agent, method, headers }).end(body);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  await once(response.resume(), 'end');
  return response.statusCode ?? 0;
}

const QUERY = { query: `{ ${Array.from({ length: 3_000 }, (_, at) => `n${at}: __typename`).join(' ')} }` };

const REQUESTS: readonly [what: string, method: string, path: string, body: string | undefined][] = [
  ['a REST response', 'GET', '/v1/accounts', undefined],
  ['a GraphQL response', 'POST', '/graphql', JSON.stringify(QUERY)],
  ['a batch', 'POST', '/graphql', JSON.stringify([QUERY, QUERY])],
  ['a refusal', 'GET', '/v1/nothing', undefined],
];

it.each(REQUESTS)('an open connection keeps nothing of %s in memory once it is sent', (what) => {
  const { status, refs } = kept[what] ?? expect.fail('it was not sent');
  expect([status < 500, refs.length > 0]).toEqual([true, true]);
  expect(Object.values(agent.freeSockets).flat()).toHaveLength(1);
  expect(refs.filter((ref) => ref.deref())).toEqual([]);
});
