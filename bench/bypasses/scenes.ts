import { setTimeout as delay } from 'node:timers/promises';
import { SIGNING_SECRET } from '../gateway/contenders.ts';
import { productionEnv } from '../gateway/production.ts';
import { portcullisAt, productOn, requestOf } from '../graphql/contenders.ts';
import { fill } from '../graphql/fill.ts';
import { cpuMs, threadsMs } from '../lib/process-stats.ts';
import { clientToken, type ProductOptions, readDemoFile, type Server } from '../lib/product.ts';
import { cpuOfLoad } from '../lib/round.ts';
import { migrateWorld } from '../lib/topics.ts';
import { seedWorld, type World } from '../lib/world.ts';
import { contendersOf } from '../realtime/contenders.ts';
import { AudienceProcess } from '../realtime/measure.ts';
import { askedOf, prepared } from '../webhook/contenders.ts';
import { roundsOf } from '../webhook/measure.ts';

/** One round of a product: its microseconds of CPU for each request, delivery or second. */
export type RunRound = (requests: number) => Promise<number>;

/** A row of the benchmarks, asked of a product on a world of its own. */
export interface Scene {
  /** How many requests or deliveries a round has, or how many seconds it lasts. */
  requests: number;
  /** Fills the world; returns how the product is started on it. */
  prepare(world: World): Promise<ProductOptions>;
  /** Makes the function that asks a product; what it opens is closed with `open`. */
  ask(server: Server, world: World, open: AsyncDisposableStack, start: () => Promise<Server>): Promise<RunRound>;
}

async function inProduction(world: World): Promise<ProductOptions> {
  await seedWorld(world);
  await migrateWorld(world);
  return { ...world, env: { ...productionEnv(world), JWT_SECRET_USER: SIGNING_SECRET } };
}

function gets(path: string, connections: number): Pick<Scene, 'prepare' | 'ask'> {
  return {
    prepare: inProduction,
    ask: async (server, { dataDir }) => {
      const headers = { authorization: `Bearer ${await clientToken(server.url, readDemoFile(dataDir))}` };
      const load = { url: `${server.url}${path}`, method: 'GET' as const, headers, connections };
      return async (requests) => (await cpuOfLoad(server, { ...load, requests })).cpuUs;
    },
  };
}

const SUBSCRIBERS = 1_000;
const DELIVERIES_PER_SECOND = 20_000;

function delivers(transport: 'sse' | 'ws'): Pick<Scene, 'prepare' | 'ask'> {
  return {
    prepare: async (world) => {
      await seedWorld(world);
      return world;
    },
    ask: async (server, world, open) => {
      const { audience } = (await contendersOf(world, server))[transport];
      const listening = open.use(await AudienceProcess.open({ ...audience, subscribers: SUBSCRIBERS, each: false }));
      const perSecond = DELIVERIES_PER_SECOND / SUBSCRIBERS;
      return async (requests) => (await listening.round(server, { count: requests / SUBSCRIBERS, perSecond })).cpuUs;
    },
  };
}

const SECONDS = 3;

export const SCENES = {
  idle: {
    requests: SECONDS,
    prepare: inProduction,
    ask: async (server) => async (seconds) => {
      const before = cpuMs(server.pid);
      await delay(seconds * 1_000);
      return ((cpuMs(server.pid) - before) * 1_000) / seconds;
    },
  },
  start: {
    requests: 1,
    prepare: inProduction,
    ask: async (first, _world, _open, start) => async () => {
      await first.stop();
      const server = await start();
      const spentUs = threadsMs(server.pid) * 1_000;
      await server.stop();
      return spentUs;
    },
  },
  accounts: { requests: 2_000, ...gets('/v1/accounts?limit=10', 8) },
  health: { requests: 8_000, ...gets('/health', 32) },
  graphql: {
    requests: 600,
    prepare: async (world) => {
      await fill(world);
      return productOn(world);
    },
    ask: async (server, world) => {
      const load = { ...requestOf(await portcullisAt(server, world)), connections: 16 };
      return async (requests) => (await cpuOfLoad(server, { ...load, requests })).cpuUs;
    },
  },
  webhook: {
    requests: 15_000,
    prepare: prepared,
    ask: async (server, world) => {
      const round = roundsOf();
      return async (requests) => (await round({ server, asked: askedOf(server, world) }, requests)).cpuUs;
    },
  },
  token: {
    requests: 3_000,
    prepare: inProduction,
    ask: async (server, { dataDir }) => {
      const { client } = readDemoFile(dataDir);
      const load = {
        url: `${server.url}/v2/oauth/token`,
        method: 'POST' as const,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ grant_type: 'client_credentials', ...client }),
        connections: 16,
      };
      return async (requests) => (await cpuOfLoad(server, { ...load, requests })).cpuUs;
    },
  },
  sse: { requests: 20_000, ...delivers('sse') },
  websocket: { requests: 20_000, ...delivers('ws') },
} satisfies Record<string, Scene>;
