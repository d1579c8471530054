import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { type Cluster, startCluster } from '../support/faults/cluster.ts';
import { listening } from '../support/faults/faults.ts';
import { type RedisLeave, redisReplaced } from '../support/faults/redis-replica.ts';
import { faultTable } from '../support/faults/table.ts';
import { describeReal } from '../support/services/real.ts';

const PARTITIONS = 4;
const PACE = { restMs: 100 };
const LIMIT_MS = 120_000;
const MONTHLY = 1_000;
const USED = 7;
/** The request for the token, and the one that looks. */
const OTHERS = 2;
/** A process learns within a second what has ended, and saves what quotas have used every two. */
const HEARD_MS = 1_000;
const SAVED_MS = 2_500;

const expectNothingAmissAfter = faultTable();

describeReal(['postgres', 'redis', 'kafka'], 'Redis is replaced by its replica', () => {
  let cluster: Cluster;
  beforeEach(async () => {
    cluster = await startCluster(['gateway', 'worker'], { partitions: PARTITIONS });
  });
  afterEach(() => cluster?.[Symbol.asyncDispose]());

  it.each<RedisLeave>(['killed', 'frozen', 'a replica itself'])(
    'D6-10 D6-16 D6-18: the former server is %s: nothing is lost, and logins work again without a restart',
    async (leave) => {
      const replaced = () => vi.waitFor(async () => void (await login(cluster)), { timeout: 10_000, interval: 100 });
      await expectNothingAmissAfter(cluster, redisReplaced(leave, { replaced }), PACE);
    },
    LIMIT_MS,
  );

  it(
    'D3-07: a session revoked just before the failover stays revoked; others remain valid, and a quota keeps saved counts',
    async () => {
      const [kept, ended] = [await login(cluster), await login(cluster)];
      const client = await clientWithQuota(cluster);
      const statuses: Record<string, number> = {};
      const fault = redisReplaced('killed', {
        before: async () => {
          expect([await status(cluster, kept.access_token), await status(cluster, ended.access_token)]).toEqual([
            200, 200,
          ]);
        },
        behind: async () => {
          await post(cluster, '/v2/oauth/revoke', { ...cluster.demo.client, token: ended.refresh_token });
          expect(await status(cluster, ended.access_token)).toBe(401);
          for (let used = 0; used < USED; used += 1) expect(await status(cluster, client)).toBe(200);
          await delay(SAVED_MS);
        },
        replaced: async () => {
          await vi.waitFor(async () => expect(await status(cluster, kept.access_token)).toBe(200), { timeout: 10_000 });
          await delay(HEARD_MS);
          for (let look = 0; look < 10; look += 1) {
            const answer = await status(cluster, ended.access_token);
            statuses[answer] = (statuses[answer] ?? 0) + 1;
            await delay(100);
          }
        },
      });
      await fault.run(cluster);
      expect(statuses).toEqual({ 401: 10 });
      const answer = await fetch(accountsOf(cluster), { headers: { authorization: `Bearer ${client}` } });
      expect(answer.headers.get('x-monthlylimit-remaining')).toBe(`${MONTHLY - USED - OTHERS}`);
    },
    LIMIT_MS,
  );
});

interface Tokens {
  access_token: string;
  refresh_token: string;
}

async function login(cluster: Cluster): Promise<Tokens> {
  return post(cluster, '/v2/oauth/token', {
    grant_type: 'password',
    ...cluster.demo.client,
    ...cluster.demo.supervisor,
  });
}

/** The token of a new client with a quota. */
async function clientWithQuota(cluster: Cluster): Promise<string> {
  const { code, out, err } = await portcullis(
    [
      ...['client', 'create', '--node', cluster.demo.node_id, '--name', randomUUID(), '--grants', 'client_credentials'],
      ...['--scopes', 'accounts:read', '--monthly-limit', `${MONTHLY}`, '--json'],
    ],
    cluster.env,
  );
  if (code !== 0) throw new Error(err);
  const { client_id, client_secret } = JSON.parse(out);
  const grant = { grant_type: 'client_credentials', client_id, client_secret };
  return (await post<Tokens>(cluster, '/v2/oauth/token', grant)).access_token;
}

async function post<Answer = Tokens>(cluster: Cluster, path: string, body: object): Promise<Answer> {
  const response = await fetch(`${listening(cluster)[0]?.baseUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} ${response.status} ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as Answer;
}

async function status(cluster: Cluster, token: string): Promise<number> {
  const response = await fetch(accountsOf(cluster), { headers: { authorization: `Bearer ${token}` } });
  await response.text();
  return response.status;
}

function accountsOf(cluster: Cluster): string {
  return `${listening(cluster)[0]?.baseUrl}/v1/accounts`;
}
