import { every } from '../../lib/shared-ticks.ts';
import { ConfigError } from '../config/config.ts';
import { CacheUnavailableError } from './cache.ts';
import { type Address, openRedis, type RedisChannel, type RedisClient } from './redis-client.ts';
import { CHECK_HEALTH, type LuaScript } from './redis-scripts.ts';

const WATCH_TICK_MS = 250;
const SILENT_TICKS = 5;
/** How often it tries to make another client while the one in use is not whole. */
const RETRY_TICKS = 2;
/** Longer than this process stalls while it loads its code: it would take that for a silent server. */
const OPEN_WITHIN_MS = 2_000;
const HEALTH_KEY_MS = 60_000;

interface RedisConnectionOptions {
  url: string;
  /** A channel for which alone the connection is. Messages are lost while it is down. */
  channel?: RedisChannel | undefined;
  /** Called once for each outage, with its first error. */
  onOutage?: ((error: unknown) => void) | undefined;
}

/**
 * A connection to Redis at one URL, a single server or a member of a cluster, that never makes its callers wait while a
 * server is down: its commands are refused at once. A client of the `redis` package is used until it is not whole: a
 * connection is lost, a server has been silent for 1.3 s, or it no longer is what it was. Then another is opened in the
 * background, and takes its place once it is connected to all servers; meanwhile the servers that remain are used.
 */
export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  readonly #stopping = new AbortController();
  readonly #stopWatching = every(WATCH_TICK_MS, () => this.#watch());
  /** Each rejects when the commands of its tick are overdue; the newest is last. */
  readonly #deadlines = [newDeadline()];
  #client: RedisClient | undefined;
  /** The members of the cluster when it was last connected: one of them is asked if the URL's server is down. */
  #members: readonly Address[] = [];
  /** Whether all servers have responded to the last probe. */
  #isWell = false;
  /** Whether a server has refused a command for what others may do. */
  #isStale = false;
  #isOut = false;
  #ticks = 0;
  #attempts = 0;
  #opening: Promise<unknown> | undefined;
  #probing: Promise<void> | undefined;

  /**
   * Connects to Redis. Resolves when the first attempt has succeeded or failed.
   * @throws ConfigError if Redis is a cluster and the URL names a database other than 0.
   */
  static async open(options: RedisConnectionOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(options);
    connection.#opening = connection.#open();
    const error = await connection.#opening;
    if (!(error instanceof ConfigError)) return connection;
    await connection.stop();
    throw error;
  }

  private constructor(options: RedisConnectionOptions) {
    this.#options = options;
  }

  /** Runs a script whose keys are all in one slot. @throws CacheUnavailableError if it fails. */
  async run(script: LuaScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const client = this.#client;
    if (!client) throw new CacheUnavailableError(new Error('Redis is not connected'));
    const [key = ''] = keys;
    const commandArgs = [`${keys.length}`, ...keys, ...args.map(String)];
    try {
      // The client's own method for scripts takes longer.
      return await this.#inTime(client.send(key, ['EVALSHA', script.sha1, ...commandArgs])).catch((error) => {
        if (!isReply(error, 'NOSCRIPT')) throw error;
        return this.#inTime(client.send(key, ['EVAL', script.source, ...commandArgs]));
      });
    } catch (error) {
      // The address may lead elsewhere now, or a slot has no server.
      if (client === this.#client && (isReply(error, 'READONLY') || isReply(error, 'CLUSTERDOWN')))
        this.#isStale = true;
      throw new CacheUnavailableError(error);
    }
  }

  /** Publishes a message to all current subscribers of the channel. @throws CacheUnavailableError if it fails. */
  async publish(message: string): Promise<void> {
    if (!this.#client) throw new CacheUnavailableError(new Error('Redis is not connected'));
    await this.#inTime(this.#client.publish(message)).catch((error) => {
      throw new CacheUnavailableError(error);
    });
  }

  /**
   * Checks that every key has a server that accepts writes and reads, by keys that begin with `name`.
   * @throws CacheUnavailableError if one does not.
   */
  async checkHealth(name: string): Promise<void> {
    if (!this.#client || !this.#isWhole) throw new CacheUnavailableError(new Error('some servers do not respond'));
    const keys = await this.#client.keys(name).catch((error) => {
      throw new CacheUnavailableError(error);
    });
    await Promise.all(keys.map((key) => this.run(CHECK_HEALTH, [key], [HEALTH_KEY_MS])));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#stopWatching();
    this.#client?.end();
    this.#client = undefined;
    await this.#opening;
  }

  get #isWhole(): boolean {
    return this.#isWell && !this.#isStale && (this.#client?.nodes() ?? [undefined]).every((node) => node?.isReady);
  }

  // Counts ticks of its own timer, so that a stall of this process is not mistaken for one of a server. Timeouts of the
  // socket would not do: they expire before data that has arrived is read, and each command written to a frozen server
  // restarts them.
  #watch(): void {
    this.#deadlines.push(newDeadline());
    if (this.#deadlines.length > SILENT_TICKS) this.#deadlines.shift()?.reject(new SilentError());
    this.#ticks += 1;
    if (this.#client) this.#probing ??= this.#probeAgain(this.#client);
    if (!this.#isWhole && this.#ticks % RETRY_TICKS === 0) this.#opening ??= this.#open();
  }

  async #probeAgain(client: RedisClient): Promise<void> {
    const error = await this.#probe(client);
    this.#probing = undefined;
    // Another client may have taken its place meanwhile.
    if (client === this.#client) this.#noteHealth(error);
  }

  /**
   * Probes all servers, and ends the connections to those that are silent. Resolves to the first error, or to undefined
   * if all respond; never rejects.
   */
  async #probe(client: RedisClient): Promise<unknown> {
    const probes = client.nodes().map(async (node) => {
      try {
        if (!node) throw new Error('a server is not connected');
        await this.#inTime(client.probe(node));
        return undefined;
      } catch (error) {
        if (error instanceof SilentError) node?.destroy();
        return error;
      }
    });
    return (await Promise.all(probes)).find((error) => error !== undefined);
  }

  /** Notes whether the client in use is well; an outage ends when it is. */
  #noteHealth(error: unknown): void {
    this.#isWell = error === undefined;
    if (error !== undefined) this.#reportOutage(error);
    else if (this.#isWhole) this.#isOut = false;
  }

  /** Opens a client and uses it from now on. Resolves to the error if that fails; never rejects. */
  async #open(): Promise<unknown> {
    const { url, channel } = this.#options;
    const members = [undefined, ...this.#members];
    const member = members[this.#attempts % members.length];
    this.#attempts += 1;
    const expiry = new AbortController();
    const timer = setTimeout(() => expiry.abort(new SilentError()), OPEN_WITHIN_MS).unref();
    const signal = AbortSignal.any([expiry.signal, this.#stopping.signal]);
    try {
      const onLost = (error: unknown) => this.#reportOutage(error);
      const client = await untilAborted(signal, openRedis({ url, member, channel, onLost, signal }));
      clearTimeout(timer);
      const error = await this.#probe(client);
      signal.throwIfAborted();
      this.#client?.end();
      this.#client = client;
      this.#members = client.members;
      this.#isStale = false;
      this.#noteHealth(error);
      return undefined;
    } catch (error) {
      expiry.abort();
      // A cluster refuses the handshake if the URL names another database.
      const isDatabaseRefused =
        error instanceof Error && error.message.includes('SELECT is not allowed in cluster mode');
      const fault = isDatabaseRefused
        ? new ConfigError([
            `REDIS_URL: a Redis Cluster has only database 0; remove ${new URL(url).pathname} at the end`,
          ])
        : error;
      this.#reportOutage(fault);
      return fault;
    } finally {
      clearTimeout(timer);
      this.#opening = undefined;
    }
  }

  /** Settles as `reply` does, or rejects when a server has been silent for too long. */
  #inTime<T>(reply: Promise<T>): Promise<T> {
    return Promise.race([reply, ...this.#deadlines.slice(-1).map(({ promise }) => promise)]);
  }

  #reportOutage(error: unknown): void {
    if (this.#isOut || this.#stopping.signal.aborted) return;
    this.#isOut = true;
    this.#options.onOutage?.(error);
  }
}

class SilentError extends Error {
  constructor() {
    super(`Redis has not responded for ${SILENT_TICKS * WATCH_TICK_MS} ms`);
  }
}

function newDeadline(): PromiseWithResolvers<never> {
  const deadline = Promise.withResolvers<never>();
  deadline.promise.catch(() => undefined);
  return deadline;
}

/** Settles as `promise` does, or rejects when the signal is aborted. */
function untilAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  return Promise.race([promise, aborted]);
}

function isReply(error: unknown, code: string): boolean {
  return error instanceof Error && error.message.startsWith(code);
}
