import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, inject, it, vi } from 'vitest';
import { SetClientStatusDocument } from '../graphql/generated/graphql.ts';
import { createdClient, createdSupervisor, login, operate } from '../support/graphql/administration.ts';
import { type Portcullis, startOnRealServers, startReplica } from '../support/harness.ts';
import {
  countedWakeUps,
  hasGot,
  loggedSoon,
  notify,
  overSocket,
  overSse,
  registered,
  TRANSPORTS,
} from '../support/realtime/live.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { freeze } from '../support/services/freeze.ts';
import { describeReal } from '../support/services/real.ts';
import { type RedisServer, startRedis } from '../support/services/redis.ts';

/** Longer than the tests take: what comes live has been woken for. */
const NEVER_MS = 3_600_000;

describeReal(['postgres', 'redis', 'kafka'], 'with a Redis that goes away', () => {
  const wakeUps = countedWakeUps({ dropped: false });
  let dataDir: string;
  let redis: RedisServer;
  let p: Portcullis;
  let replica: Portcullis;
  let admin: string;

  beforeAll(async () => {
    dataDir = await temporaryFolder();
    redis = await startRedis({ dataDir });
    p = await startOnRealServers({
      env: { REDIS_URL: redis.url },
      overrides: { streams: (options) => ({ ...options, pollMs: NEVER_MS }) },
    });
    const streams = (options: Parameters<typeof wakeUps.streams>[0]) => ({
      ...wakeUps.streams(options),
      pollMs: NEVER_MS,
    });
    // It applies nothing, and so hears of nothing but by way of Redis.
    replica = await startReplica(p, { env: { PORTCULLIS_ROLE: 'gateway' }, overrides: { streams } });
    admin = await p.clientToken();
  });
  afterAll(async () => {
    await replica[Symbol.asyncDispose]();
    await p[Symbol.asyncDispose]();
    await redis.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  async function kill(): Promise<void> {
    process.kill(redis.pid, 'SIGKILL');
    await redis.stop();
  }

  async function back(): Promise<void> {
    redis = await startRedis({ dataDir, port: redis.port });
  }

  it('D6-10: `after` resumes on another replica without gap or duplicate while Redis restarts, and wake-ups work again', async () => {
    const [first = '', second = '', third = '', ...more] = await registered(p, 40);
    const before = await overSse(p, { token: admin, after: '0' });
    await notify(p, first, 2);
    await hasGot(before, ['1']);
    await kill();
    await notify(p, second, 2);
    await loggedSoon(p, 2);
    await before[Symbol.asyncDispose]();
    await using resumed = await overSse(replica, { token: admin, after: '1' });
    await using resumedOnSocket = await overSocket(replica, { token: admin, after: '1' });
    await hasGot(resumed, ['2']);
    await notify(replica, third, 2);
    const lost = await loggedSoon(p, 3);
    expect([lost, resumed.cursors]).toEqual([['1', '2', '3'], ['2']]);
    await back();
    const { arrived } = wakeUps.counted;
    // One that is sent before both ends are back is lost as well: what comes then brings it along.
    let written = lost.length;
    for (const id of more) {
      if (resumed.cursors.length > 1) break;
      await notify(p, id, 2);
      written += 1;
      await loggedSoon(p, written);
      await vi.waitFor(() => expect(resumed.cursors.length).toBe(written - 1), { timeout: 200 }).catch(() => undefined);
    }
    const cursors = await loggedSoon(p, written);
    await hasGot(resumed, cursors.slice(1));
    await hasGot(resumedOnSocket, cursors.slice(1));
    expect(wakeUps.counted.arrived).toBeGreaterThan(arrived);
  });

  const AWAY = [
    ['dead', kill, back],
    ['frozen', () => freeze(redis.pid), async () => void process.kill(redis.pid, 'SIGCONT')],
  ] as const;
  const ALL = AWAY.flatMap(([how, away, again]) =>
    TRANSPORTS.map(([transport, subscribe]) => ({ how, away, again, transport, subscribe })),
  );
  const CASES = inject('isThorough')
    ? ALL
    : ALL.filter(({ how, transport }) => (how === 'dead') === (transport === 'SSE'));
  let comeBack: () => Promise<void> = async () => undefined;
  afterEach(async () => {
    await comeBack();
    comeBack = async () => undefined;
    for (const { service } of [p, replica]) await vi.waitFor(() => service.context.cache.checkHealth());
  });

  it.each(CASES)(
    'D2-29 D6-12 D3-23: $transport on another replica is closed at revocation while Redis is $how',
    async (row) => {
      const { client, credentials } = await createdClient(p, admin, {
        grantTypes: ['PASSWORD', 'CLIENT_CREDENTIALS', 'REFRESH_TOKEN'],
        scopes: ['transactions:read'],
      });
      const { username } = await createdSupervisor(p, admin, { username: `user-${randomUUID()}` });
      const session = await login(p, username);
      await using loggedIn = await row.subscribe(replica, { token: session.access_token });
      await using ofClient = await row.subscribe(replica, { token: await p.clientToken(credentials) });
      await using stays = await row.subscribe(replica, { token: admin });
      comeBack = row.again;
      await row.away();
      // The session first: what its end takes out of the cache must keep nobody waiting.
      const json = { ...p.demo.client, token: session.refresh_token };
      const revoking = p.call('POST', '/v2/oauth/revoke', { json });
      const ended = row.transport === 'SSE' ? undefined : 4403;
      expect(await loggedIn.ended).toBe(ended);
      await operate(p, admin, SetClientStatusDocument, { id: client.id, status: 'DISABLED' });
      expect(await ofClient.ended).toBe(ended);
      expect([loggedIn.errors, ofClient.errors, stays.errors]).toEqual([[], [], []]);
      await revoking;
    },
  );
});
