import { ConfigError } from '../config/config.ts';
import { CacheUnavailableError } from './cache.ts';
import { isInCluster, RedisCluster } from './redis-cluster.ts';
import { type RedisRoute, RedisServer } from './redis-server.ts';

const refused = () => Promise.reject(new CacheUnavailableError(new Error('Redis is not connected yet')));
const NOT_THERE: RedisRoute = {
  run: refused,
  checkHealth: refused,
};

interface RedisConnectionOptions {
  url: string;
  /** Called once for each outage, with its first error. */
  onOutage?: ((error: unknown) => void) | undefined;
}

/**
 * A connection to Redis at one URL: to a single server, or to the cluster to which it belongs. On each connection, it
 * checks which of the two it is.
 */
export class RedisConnection {
  readonly #onOutage: (error: unknown) => void;
  #seed: RedisServer | undefined;
  #cluster: RedisCluster | undefined;
  #route: RedisRoute = NOT_THERE;
  #learning: Promise<void> | undefined;
  /** Whether the current outage has been reported, as long as Redis is not known to be a cluster. */
  #isOut = false;
  #isStopped = false;

  /**
   * Connects to Redis. Resolves when the first attempt has succeeded or failed.
   * @throws ConfigError if Redis is a cluster and the URL names a database other than 0.
   */
  static async open({ url, onOutage }: RedisConnectionOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(onOutage);
    let refusal: unknown;
    connection.#seed = await RedisServer.open({
      url,
      onReady: (server) => connection.#isThere(server),
      onOutage: (error) => {
        if (error instanceof ConfigError) refusal = error;
        if (connection.#cluster) return;
        connection.#isOut = true;
        connection.#onOutage(error);
      },
    });
    await connection.#learning;
    if (refusal === undefined) return connection;
    await connection.stop();
    throw refusal;
  }

  private constructor(onOutage: (error: unknown) => void = () => undefined) {
    this.#onOutage = onOutage;
  }

  /** The route to the server of a key; it refuses every command until Redis was connected for the first time. */
  get route(): RedisRoute {
    return this.#route;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#cluster?.stop();
    this.#seed?.stop();
    await this.#learning;
  }

  #isThere(seed: RedisServer): void {
    // If the connection is lost meanwhile, the next connection repeats this.
    this.#learning = this.#learn(seed).catch(() => undefined);
  }

  async #learn(seed: RedisServer): Promise<void> {
    const isCluster = await isInCluster(seed);
    if (this.#isStopped) return;
    if (isCluster) {
      this.#cluster ??= new RedisCluster(seed, {
        isOut: this.#isOut,
        onOutage: this.#onOutage,
      });
      await this.#cluster.look(seed);
      this.#route = this.#cluster;
      return;
    }
    this.#route = seed;
    this.#isOut = false;
    await this.#cluster?.stop();
    this.#cluster = undefined;
  }
}
