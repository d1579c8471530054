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

beforeAll(async () => {
  token = await p.loginToken();
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

it.each([
  ['a REST response', 'GET', '/v1/accounts', undefined],
  ['a GraphQL response', 'POST', '/graphql', JSON.stringify(QUERY)],
  ['a batch', 'POST', '/graphql', JSON.stringify([QUERY, QUERY])],
  ['a refusal', 'GET', '/v1/nothing', undefined],
])('an open connection keeps nothing of %s in memory once it is sent', async (_what, method, path, body) => {
  const { refs, end } = captured();
  const status = await sent(method, path, body);
  end();
  expect([status < 500, refs.length > 0]).toEqual([true, true]);
  setFlagsFromString('--expose-gc');
  for (let tries = 0; tries < 20 && refs.some((ref) => ref.deref()); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    await nextTick();
    runInNewContext('gc')();
  }
  expect(Object.values(agent.freeSockets).flat()).toHaveLength(1);
  expect(refs.filter((ref) => ref.deref())).toEqual([]);
});
