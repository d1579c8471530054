import { ConfigError } from '../config/config.ts';
import { CacheUnavailableError } from './cache.ts';
import { isInCluster, RedisCluster } from './redis-cluster.ts';
import { type RedisRoute, RedisServer } from './redis-server.ts';

const refused = () => Promise.reject(new CacheUnavailableError(new Error('Redis was not there yet')));
const NOT_THERE: RedisRoute = { runOnKey: refused, run: refused, commandOnKey: refused, checkHealth: refused };

interface RedisConnectionOptions {
  url: string;
  /** Called once for each outage, with its first error. */
  onOutage?: ((error: unknown) => void) | undefined;
}

/** Redis at one URL: the server there, or the cluster that it says it belongs to, asked with each connection. */
export class RedisConnection {
  readonly #onOutage: (error: unknown) => void;
  #seed: RedisServer | undefined;
  #cluster: RedisCluster | undefined;
  #route: RedisRoute = NOT_THERE;
  #learning: Promise<void> | undefined;
  #generation = 0;
  /** Of a server that is not known to be one of a cluster. */
  #isOut = false;
  #isStopped = false;

  /**
   * Resolves when the first attempt to connect has succeeded or failed.
   * @throws ConfigError where a cluster is there, and the URL names a database that it does not have.
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

  /** Changes when something may have been missed or lost, by a lost connection or by a failover. */
  get generation(): number {
    return this.#generation;
  }

  /** The way to the server of a key; it refuses everything until a server was there for the first time. */
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
    if (!this.#cluster) this.#generation += 1;
    // Of a connection that is lost again nothing is learnt: the next one asks.
    this.#learning = this.#learn(seed).catch(() => undefined);
  }

  async #learn(seed: RedisServer): Promise<void> {
    const isCluster = await isInCluster(seed);
    if (this.#isStopped) return;
    if (isCluster) {
      this.#cluster ??= new RedisCluster(seed, {
        isOut: this.#isOut,
        onChange: () => {
          this.#generation += 1;
        },
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
