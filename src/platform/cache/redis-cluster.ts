import { setTimeout as delay } from 'node:timers/promises';
import { CacheUnavailableError } from './cache.ts';
import type { LuaScript } from './redis-scripts.ts';
import { type RedisRoute, RedisServer } from './redis-server.ts';
import {
  type Redirection,
  redirectionOf,
  SLOT_COUNT,
  slotOf,
  type Topology,
  topologyOf,
} from './redis-topology.rules.ts';

const LOOK_AGAIN_MS = 500;
const RETRY_MS = 50;
/** How long a command waits for a slot that is being moved, in milliseconds; no longer than for a frozen server. */
const SETTLED_WITHIN_MS = 1_000;

/** Reads the topology of a cluster from one of its servers. @throws CacheUnavailableError */
export async function topologyBy(server: RedisServer): Promise<Topology> {
  return topologyOf(await server.command(['CLUSTER', 'SLOTS']), server.url);
}

/** Checks whether a server belongs to a cluster. @throws CacheUnavailableError if the connection is lost meanwhile. */
export async function isInCluster(server: RedisServer): Promise<boolean> {
  const said = await server.command(['HELLO']).catch((error) => {
    if (server.isReady) return undefined;
    throw error;
  });
  return typeof said === 'object' && said !== null && 'mode' in said && said.mode === 'cluster';
}

interface RedisClusterOptions {
  /** Whether an outage that has already been reported continues. */
  isOut: boolean;
  /** Called once for each outage, which lasts from the first lost server until every slot has a connected one. */
  onOutage(error: unknown): void;
}

/**
 * The masters of a Redis Cluster, with a connection to each. A command goes to the master of its key's slot, and is
 * refused at once while that is down. While a slot has no connected master, the topology is read every 500 ms.
 */
export class RedisCluster implements RedisRoute {
  readonly #seed: RedisServer;
  readonly #options: RedisClusterOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #masters = new Map<string, RedisServer>();
  /** Connections to servers that other servers have named, but that are not in the topology in force yet. */
  readonly #newcomers = new Map<string, Promise<RedisServer>>();
  #owners: (RedisServer | undefined)[] = [];
  #isCovered = false;
  #isOut: boolean;
  #looking: Promise<void> | undefined;
  #looks = 0;
  #isStopped = false;

  /** Takes the connection to the configured URL, which may name any member; this class does not stop it. */
  constructor(seed: RedisServer, options: RedisClusterOptions) {
    this.#seed = seed;
    this.#options = options;
    this.#isOut = options.isOut;
    this.#timer = setInterval(() => {
      if (!this.isWhole) void this.look();
    }, LOOK_AGAIN_MS).unref();
  }

  /** Whether every slot has a connected master. */
  get isWhole(): boolean {
    return this.#isCovered && this.#masters.values().every((server) => server.isReady);
  }

  /**
   * Reads which master has which slot: from the server `at`, or from another one if `at` is not given or fails. Never
   * rejects.
   */
  look(at?: RedisServer): Promise<void> {
    this.#looking ??= this.#look(at).finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async run(script: LuaScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const slot = slotOf(keys[0] ?? '');
    const until = performance.now() + SETTLED_WITHIN_MS;
    let asked: RedisServer | undefined;
    for (let redirections = 0; ; redirections += 1) {
      const server = asked ?? this.#owners[slot];
      if (!server) throw new CacheUnavailableError(new Error(`slot ${slot} of the cluster has no server`));
      try {
        return await (asked ? server.runAsking(script, keys, args) : server.run(script, keys, args));
      } catch (error) {
        const said = redirectionOfError(error, server);
        if (!said) throw error;
        asked = await this.#redirected(said, server);
        if (said.kind === 'down') throw error;
        if (redirections < 2) continue;
        // Wait: servers that contradict each other soon agree, and keys that are being moved arrive.
        if (performance.now() > until) throw error;
        await delay(RETRY_MS);
      }
    }
  }

  async checkHealth(name: string): Promise<void> {
    if (!this.isWhole)
      throw new CacheUnavailableError(new Error('some slots of the cluster have no server that responds'));
    const masters = [...new Set(this.#owners)].filter((server) => server !== undefined);
    await Promise.all(masters.map((server) => server.checkHealth(this.#keyOn(server, name))));
    const states = await Promise.all(masters.map((server) => server.command(['CLUSTER', 'INFO'])));
    if (states.every((state) => String(state).includes('cluster_state:ok'))) return;
    throw new CacheUnavailableError(new Error('the cluster is down: cluster_state is not ok'));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    for (const server of this.#masters.values()) server.stop();
    // It may still open connections to new servers.
    await this.#looking;
    for (const opening of this.#newcomers.values()) (await opening).stop();
  }

  /** Returns a key that begins with `name` and is in a slot of the server. */
  #keyOn(server: RedisServer, name: string): string {
    for (let number = 0; ; number += 1) {
      const key = `${name}:{${number}}`;
      if (this.#owners[slotOf(key)] === server) return key;
    }
  }

  /** Follows a redirection. Returns the server to which the command goes next; undefined means the slot's master. */
  async #redirected(said: Redirection, server: RedisServer): Promise<RedisServer | undefined> {
    if (said.kind === 'ask') return this.#masters.get(said.url) ?? this.#newcomer(said.url);
    if (said.kind === 'moved') await this.look(server);
    if (said.kind === 'down') void this.look();
    return undefined;
  }

  #newcomer(url: string): Promise<RedisServer> {
    const before = this.#newcomers.get(url);
    if (before) return before;
    const opening = this.#open(url);
    this.#newcomers.set(url, opening);
    return opening;
  }

  async #look(at: RedisServer | undefined): Promise<void> {
    const others = [this.#seed, ...this.#masters.values()];
    // Begins with another server each time: one that is cut off from the others still has the old topology.
    this.#looks += 1;
    const turned = others.map((_, index) => others[(index + this.#looks) % others.length]);
    for (const server of [at, ...turned]) {
      if (!server?.isReady) continue;
      const topology = await topologyBy(server).catch((error) => this.#reportOutage(error));
      // A server that was removed from its cluster knows no slots.
      if (topology && topology.ranges.length > 0) return this.#adopt(topology);
    }
  }

  async #adopt({ ranges }: Topology): Promise<void> {
    const urls = new Set(ranges.map(({ url }) => url));
    const opened = await Promise.all(
      [...urls].map(
        async (url): Promise<[string, RedisServer]> => [url, this.#masters.get(url) ?? (await this.#newcomer(url))],
      ),
    );
    if (this.#isStopped) return;
    for (const [url, server] of opened) {
      this.#masters.set(url, server);
      this.#newcomers.delete(url);
    }
    const owners: (RedisServer | undefined)[] = [];
    for (const { first, last, url } of ranges) {
      const server = this.#masters.get(url);
      for (let slot = first; slot <= last; slot += 1) owners[slot] = server;
    }
    this.#owners = owners;
    this.#isCovered = Array.from({ length: SLOT_COUNT }, (_, slot) => owners[slot]).every((owner) => owner);
    if (!this.#isCovered) this.#reportOutage(new Error('some slots of the cluster have no server'));
    for (const [url, server] of this.#masters) {
      if (urls.has(url)) continue;
      server.stop();
      this.#masters.delete(url);
    }
    if (this.isWhole) this.#isOut = false;
  }

  #open(url: string): Promise<RedisServer> {
    return RedisServer.open({
      url,
      onReady: () => {
        if (this.isWhole) this.#isOut = false;
      },
      onOutage: (error) => this.#reportOutage(error),
    });
  }

  #reportOutage(error: unknown): void {
    if (this.#isOut || this.#isStopped) return;
    this.#isOut = true;
    this.#options.onOutage(error);
  }
}

function redirectionOfError(error: unknown, server: RedisServer): Redirection | undefined {
  if (!(error instanceof CacheUnavailableError) || !(error.cause instanceof Error)) return undefined;
  return redirectionOf(error.cause.message, server.url);
}
