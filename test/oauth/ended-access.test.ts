import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import {
  SetSupervisorPasswordDocument,
  SetSupervisorRoleDocument,
  SetSupervisorStatusDocument,
} from '../graphql/generated/graphql.ts';
import { server } from '../support/faults/lab.ts';
import { REDIS_STATES, type RedisState, type TroubledRedis } from '../support/faults/redis-states.ts';
import { grantStatus, login, operate, PASSWORD, tokenStatus } from '../support/graphql/administration.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { type Portcullis, startPortcullis, startReplica } from '../support/harness.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';
import { faultProxy } from '../support/services/fault-proxy.ts';
import { describeReal } from '../support/services/real.ts';
import { startRedis } from '../support/services/redis.ts';

type Login = Awaited<ReturnType<typeof login>>;

interface Person extends Login {
  id: string;
  username: string;
}

type End = (p: Portcullis, token: string, person: Person) => Promise<unknown>;

const ENDS: readonly (readonly [name: string, end: End])[] = [
  [
    'a supervisor is disabled',
    (p, token, { id }) => operate(p, token, SetSupervisorStatusDocument, { id, status: 'DISABLED' }),
  ],
  [
    'a login is revoked',
    (p, _token, { refresh_token }) =>
      p.call('POST', '/v2/oauth/revoke', { json: { ...p.demo.client, token: refresh_token } }),
  ],
  [
    'a password is changed',
    (p, token, { id }) => operate(p, token, SetSupervisorPasswordDocument, { id, password: `${PASSWORD}!` }),
  ],
  ['a role is changed', (p, token, { id }) => operate(p, token, SetSupervisorRoleDocument, { id, role: 'operator' })],
];

type Cell = [end: string, state: string, End, RedisState];

const CELLS = ENDS.flatMap(([name, end]) => REDIS_STATES.map((state): Cell => [name, state.name, end, state]));

describeReal(['postgres', 'redis'], 'access that ends while Redis', () => {
  const stack = new AsyncDisposableStack();
  let at: TroubledRedis;
  let p: Portcullis;
  let replica: Portcullis;
  let token: string;

  beforeAll(async () => {
    const root = await mkdtemp(join(tmpdir(), 'portcullis-redis-'));
    stack.defer(() => rm(root, { recursive: true, force: true }));
    const proxy = stack.use(await faultProxy());
    const redis = await server(stack, join(root, 'redis'), proxy, (port, dataDir) => startRedis({ port, dataDir }));
    at = { redis, folder: (name) => join(root, name), defer: (end) => stack.defer(async () => void (await end())) };
    p = stack.use(await startPortcullis({ env: { REDIS_URL: proxy.urlOf(redis.address()) } }));
    replica = stack.use(await startReplica(p));
    token = await p.clientToken();
  });
  afterAll(() => stack.disposeAsync());

  async function person(): Promise<Person> {
    const supervisor = await addSupervisor(p, PASSWORD);
    // Redis may have just left another state.
    const tokens = await vi.waitFor(() => login(p, supervisor.username));
    await expect.poll(() => statuses(tokens)).toEqual([200, 200]);
    return { ...supervisor, ...tokens };
  }

  const statuses = ({ access_token }: Login) =>
    Promise.all([p, replica].map((process) => tokenStatus(process, access_token)));

  it.each(inTurn(CELLS, 18, 0))(
    'D3-36: %s while Redis %s: it is refused here at once and by the other process, and stays so',
    async (...cell) => {
      const [, , end, state] = cell;
      const [leaving, staying] = [await person(), await person()];
      await state.begin(at);
      try {
        await end(p, token, leaving);
        expect(await tokenStatus(p, leaving.access_token)).toBe(401);
        await state.goOn?.(at);
        await expect.poll(() => statuses(leaving), { interval: 50 }).toEqual([401, 401]);
        if (state.reads !== undefined) {
          await expect.poll(() => statuses(staying), { interval: 50 }).toEqual([state.reads, state.reads]);
        }
        if (state.isRefused) {
          const health = async () => (await replica.call('GET', '/health')).json;
          await expect.poll(health, { interval: 50 }).toMatchObject({ status: 'degraded', checks: { cache: 'down' } });
        }
        if (state.logins !== undefined) {
          const grant = { grant_type: 'password', ...p.demo.client, username: staying.username, password: PASSWORD };
          await expect.poll(() => grantStatus(p, grant), { interval: 50 }).toBe(state.logins);
        }
        // Longer than it takes a process to read again what has ended.
        for (let look = 0; look < 4; look += 1) {
          await delay(200);
          expect(await statuses(leaving)).toEqual([401, 401]);
        }
      } finally {
        await state.end(at);
      }
      await expect.poll(() => statuses(staying)).toEqual([200, 200]);
      expect(await statuses(leaving)).toEqual([401, 401]);
      const refresh = { grant_type: 'refresh_token', ...p.demo.client, refresh_token: leaving.refresh_token };
      expect([await grantStatus(p, refresh), await grantStatus(replica, refresh)]).toEqual([401, 401]);
    },
  );
});
