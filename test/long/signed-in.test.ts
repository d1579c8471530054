import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Cluster, type Stores, startCluster } from '../support/faults/cluster.ts';
import { redisCommand, replicaOf } from '../support/faults/redis-replica.ts';
import { sharedStores } from '../support/faults/shared-stores.ts';
import { type LastingFault, SIGNED_IN_LIMIT, signedInUnder } from '../support/faults/signed-in.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { freeze } from '../support/services/freeze.ts';
import { describeReal } from '../support/services/real.ts';
import { startRedisCluster } from '../support/services/redis-cluster.ts';

const PARTITIONS = 2;
const GATEWAYS = 2;
const FAILOVER_MS = 20_000;
const LIMIT_MS = 180_000;
const CUT_MS = 50;

const onRedis = ({ servers }: Cluster, ...command: string[]) => redisCommand(servers.redis.address(), ...command);
const setting = (name: string, value: string, usual: string): LastingFault => ({
  name: `has ${name} ${value}`,
  begin: (cluster) => onRedis(cluster, 'CONFIG', 'SET', name, value),
  end: (cluster) => onRedis(cluster, 'CONFIG', 'SET', name, usual),
});

const FAULTS: readonly LastingFault[] = [
  {
    name: 'is killed',
    begin: ({ servers }) => servers.redis.kill(),
    end: ({ servers }) => servers.redis.restart(),
  },
  {
    name: 'is frozen',
    begin: ({ servers }) => servers.redis.freeze(),
    end: async ({ servers }) => servers.redis.thaw(),
  },
  {
    name: 'is cut off',
    begin: async ({ servers }) => servers.redis.proxy.set('cut'),
    end: async ({ servers }) => servers.redis.proxy.set('passing'),
  },
  {
    name: 'is emptied',
    begin: (cluster) => onRedis(cluster, 'FLUSHALL'),
    end: async () => undefined,
  },
  setting('maxmemory', '1', '0'),
  setting('min-replicas-to-write', '1', '0'),
  {
    name: 'is replaced by a replica that lacks the last writes',
    async begin(cluster) {
      const { redis } = cluster.servers;
      const { replica, link } = await replicaOf({ ...cluster, redis });
      link.set('frozen');
      await delay(1_000);
      await redis.kill();
      await redisCommand(replica.url, 'REPLICAOF', 'NO', 'ONE');
      redis.become(replica);
    },
    end: async () => undefined,
  },
];

/** Checks that nobody was refused who is signed in, nobody was let in whose session has ended, and limits held. */
async function staysUnder(cluster: Cluster, fault: LastingFault): Promise<void> {
  const { succeeded, failed, ended, passed } = await signedInUnder(cluster, fault);
  expect(failed).toEqual([]);
  expect(succeeded).toBeGreaterThan(0);
  expect(ended.length).toBeGreaterThan(0);
  expect(ended).not.toContain(200);
  expect([passed.before, passed.after]).toEqual([SIGNED_IN_LIMIT, SIGNED_IN_LIMIT]);
  expect(passed.during).toBeGreaterThanOrEqual(SIGNED_IN_LIMIT);
  expect(passed.during).toBeLessThanOrEqual((GATEWAYS + 1) * (SIGNED_IN_LIMIT + 1));
}

describeReal(['postgres', 'redis', 'kafka'], 'a signed-in user', () => {
  const cluster = beforeTests(() => startCluster(['gateway', 'gateway', 'worker'], { partitions: PARTITIONS }));

  it.each(FAULTS.map((fault) => [fault.name, fault] as const))(
    'D3-28 D3-36: is never signed out, and no ended session is accepted, while Redis %s',
    (_name, fault) => staysUnder(cluster, fault),
    LIMIT_MS,
  );

  it(
    '5.1-05: is not signed out while PostgreSQL is unavailable for 20 seconds',
    async () => {
      const { postgres } = cluster.servers;
      const away: LastingFault = {
        name: 'is away',
        begin: async () => {
          await postgres.kill();
          await delay(FAILOVER_MS);
        },
        end: () => postgres.restart(),
      };
      const { succeeded, failed, ended } = await signedInUnder(cluster, away, { restarts: false });
      expect(succeeded).toBeGreaterThan(0);
      expect(failed.map(({ status }) => status)).not.toContain(401);
      expect(ended).not.toContain(200);
    },
    LIMIT_MS,
  );
});

describeReal(['postgres', 'redis', 'kafka'], 'a signed-in user, with a Redis Cluster', () => {
  let cluster: Cluster;
  const redisCluster = beforeTests(() => startRedisCluster({ replicas: 3 }));
  const onMasters = (...command: string[]) =>
    Promise.all(redisCluster.masters.map((master) => master.command(...command)));
  const configured = (name: string, value: string, usual: string): LastingFault => ({
    name: `have ${name} ${value}`,
    begin: () => onMasters('CONFIG', 'SET', name, value),
    end: () => onMasters('CONFIG', 'SET', name, usual),
  });
  let cutting: NodeJS.Timeout | undefined;

  const faults: readonly LastingFault[] = [
    {
      name: 'are killed, one of them',
      begin: async () => redisCluster.masters[1]?.kill(),
      end: async () => redisCluster.masters[1]?.start(),
    },
    {
      name: 'are frozen, one of them',
      begin: () => freeze(redisCluster.masters[1]?.pid ?? 0),
      end: async () => process.kill(redisCluster.masters[1]?.pid ?? 0, 'SIGCONT'),
    },
    {
      name: 'are killed, all of them',
      begin: () => Promise.all(redisCluster.masters.map((master) => master.kill())),
      end: () => Promise.all(redisCluster.masters.map((master) => master.start())),
    },
    {
      name: 'are cut off',
      begin: async () => {
        cutting = setInterval(() => void onMasters('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => undefined), CUT_MS);
      },
      end: async () => clearInterval(cutting),
    },
    {
      name: 'are emptied',
      begin: () => onMasters('FLUSHALL'),
      end: async () => undefined,
    },
    configured('maxmemory', '1', '0'),
    configured('min-replicas-to-write', '2', '0'),
  ];

  beforeAll(async () => {
    const stores = async (stack: AsyncDisposableStack): Promise<Stores> => {
      const shared = await sharedStores(stack);
      const REDIS_URL = redisCluster.masters[0]?.url ?? '';
      return Object.defineProperties(shared, { env: { value: { ...shared.env, REDIS_URL } } });
    };
    cluster = await startCluster(['gateway', 'gateway', 'worker'], { partitions: PARTITIONS, stores });
  });
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });

  it.each(faults.map((fault) => [fault.name, fault] as const))(
    'D3-28 D3-36: is never signed out, and no ended session is accepted, while the Redis masters %s',
    (_name, fault) => staysUnder(cluster, fault),
    LIMIT_MS,
  );
});
