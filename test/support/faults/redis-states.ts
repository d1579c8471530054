import { mkdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { Server } from './cluster.ts';
import { redisCommand, replicaOf } from './redis-replica.ts';

/** A Redis that can be brought into any of the states; what it leaves behind is deferred. */
export interface TroubledRedis {
  redis: Pick<Server, 'proxy' | 'address' | 'become'>;
  folder(name: string): string;
  defer(end: () => unknown): void;
}

/** A state of Redis in which it does not do what it should. */
export interface RedisState {
  name: string;
  /** Whether it answers, by refusals. */
  isRefused: boolean;
  begin(at: TroubledRedis): Promise<void>;
  /** What happens once access has ended. */
  goOn?(at: TroubledRedis): Promise<void>;
  end(at: TroubledRedis): Promise<void>;
}

/** A state that commands bring about and end. */
function commanded(name: string, begin: string[][], end: string[][]): RedisState {
  const all = async ({ redis }: TroubledRedis, commands: string[][]) => {
    for (const command of commands) await redisCommand(redis.address(), ...command);
  };
  return {
    name,
    isRefused: name.startsWith('refuses'),
    begin: (at) => all(at, begin),
    end: (at) => all(at, end),
  };
}

/** A state of the line to it. */
function line(name: string, begin: (proxy: Server['proxy']) => void): RedisState {
  return {
    name,
    isRefused: false,
    begin: async ({ redis }) => begin(redis.proxy),
    end: async ({ redis }) => {
      redis.proxy.set('passing');
      redis.proxy.delayMs = 0;
    },
  };
}

/** The file to which the server saves its data. */
async function dumpOf({ redis }: TroubledRedis): Promise<string> {
  const { dir } = (await redisCommand(redis.address(), 'CONFIG', 'GET', 'dir')) as { dir: string };
  return join(dir, 'dump.rdb');
}

async function saved({ redis }: TroubledRedis, state: 'ok' | 'err'): Promise<void> {
  await redisCommand(redis.address(), 'BGSAVE');
  await vi.waitFor(
    async () => {
      const info = String(await redisCommand(redis.address(), 'INFO', 'persistence'));
      if (!info.includes(`rdb_last_bgsave_status:${state}`)) throw new Error(info);
    },
    { timeout: 10_000, interval: 20 },
  );
}

const configured = (name: string, value: string) => ['CONFIG', 'SET', name, value];
const granted = (...rights: string[]) => ['ACL', 'SETUSER', 'default', ...rights];

/** The replica of the failover, between its two halves. */
let promoted: Awaited<ReturnType<typeof replicaOf>> | undefined;

export const REDIS_STATES: readonly RedisState[] = [
  {
    name: 'refuses writes since it cannot save its data (MISCONF)',
    isRefused: true,
    begin: async (at) => {
      const dump = await dumpOf(at);
      // A folder has the name of the file to which it saves. A server that was a replica has such a file.
      await rm(dump, { force: true });
      await mkdir(dump);
      await redisCommand(at.redis.address(), ...configured('save', '3600 1'));
      await saved(at, 'err');
    },
    end: async (at) => {
      await rmdir(await dumpOf(at));
      await saved(at, 'ok');
      await redisCommand(at.redis.address(), ...configured('save', ''));
    },
  },
  commanded(
    'refuses writes since it has no replica (NOREPLICAS)',
    [configured('min-replicas-to-write', '1')],
    [configured('min-replicas-to-write', '0')],
  ),
  commanded(
    'refuses writes since it has become a replica (READONLY)',
    [['REPLICAOF', '127.0.0.1', '1']],
    [['REPLICAOF', 'NO', 'ONE']],
  ),
  commanded(
    'refuses writes since its memory is full (OOM)',
    [configured('maxmemory', '1')],
    [configured('maxmemory', '0')],
  ),
  commanded('refuses writes for lack of a right', [granted('-@write')], [granted('+@all')]),
  commanded('refuses reads for lack of a right', [granted('-@read')], [granted('+@all')]),
  commanded(
    'waits for its master (MASTERDOWN)',
    [configured('replica-serve-stale-data', 'no'), ['REPLICAOF', '127.0.0.1', '1']],
    [['REPLICAOF', 'NO', 'ONE'], configured('replica-serve-stale-data', 'yes')],
  ),
  commanded('holds writes back', [['CLIENT', 'PAUSE', '600000', 'WRITE']], [['CLIENT', 'UNPAUSE']]),
  line('is cut off', (proxy) => proxy.set('cut')),
  line('does not respond', (proxy) => proxy.set('frozen')),
  line('is slow', (proxy) => {
    proxy.delayMs = 150;
  }),
  {
    name: 'loses its data',
    isRefused: false,
    begin: async () => undefined,
    goOn: async ({ redis }) => void (await redisCommand(redis.address(), 'FLUSHALL')),
    end: async () => undefined,
  },
  {
    name: 'fails over to a replica that lacks the last writes',
    isRefused: false,
    begin: async (at) => {
      promoted = await replicaOf(at);
      promoted.link.set('frozen');
    },
    goOn: async ({ redis }) => {
      if (!promoted) throw new Error('there is no replica');
      await redisCommand(promoted.replica.url, 'REPLICAOF', 'NO', 'ONE');
      redis.become(promoted.replica);
      redis.proxy.set('cut');
      redis.proxy.set('passing');
    },
    end: async () => {
      promoted = undefined;
    },
  },
];
