import { backoffMs } from '../../lib/backoff.ts';
import { ConfigError } from '../config/config.ts';
import { CacheUnavailableError } from './cache.ts';
import { CHECK_HEALTH, type LuaScript } from './redis-scripts.ts';
import { redirectionOf } from './redis-topology.rules.ts';

/**
 * The commands on the server that has a key: a single server, or one of a cluster. A method that fails rejects with a
 * CacheUnavailableError.
 */
export interface RedisRoute {
  /** Runs a script whose keys are all in one slot. */
  run(script: LuaScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /**
   * Checks that every key has a server that accepts writes and reads, by keys that begin with `name`; rejects if one
   * does not.
   */
  checkHealth(name: string): Promise<void>;
}

/** Longer than this process stalls while it loads its code: the client would take that for a silent server. */
const CONNECT_TIMEOUT_MS = 2_000;
const WATCH_TICK_MS = 250;
const SILENT_TICKS = 5;
const RECONNECT_BACKOFF = { minMs: 50, maxMs: 1_000 };
const MAX_QUEUED_COMMANDS = 10_000;
const HEALTH_KEY_MS = 60_000;
/** The least time, in ms, between two connections that are left because their server is a replica. */
const LEAVE_REPLICA_MS = 1_000;

type Client = Awaited<ReturnType<typeof newClient>>;

interface RedisServerOptions {
  url: string;
  /** Called each time the connection is ready, the first time included. */
  onReady?: ((server: RedisServer) => void) | undefined;
  /** Called once for each outage, with its first error. */
  onOutage?: ((error: unknown) => void) | undefined;
}

/** Makes a client that is not connected yet. It calls `onLost` when a connection is lost or an attempt has failed. */
async function newClient(url: string, onLost: () => void) {
  const { RedisClient } = await import('redis');
  // `createClient` builds the class of all commands for each address, which takes 45 ms.
  return RedisClient.factory({})({
    url,
    disableOfflineQueue: true,
    commandsQueueMaxLength: MAX_QUEUED_COMMANDS,
    maintNotifications: 'disabled',
    // A timer for each command would cost more than the command; the watchdog limits them all.
    commandOptions: { timeout: 0 },
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      reconnectStrategy: (retries) => {
        onLost();
        return backoffMs(retries + 1, RECONNECT_BACKOFF);
      },
    },
  });
}

/**
 * A connection to one server that never makes its callers wait while the server is down: commands are refused at once
 * while it is disconnected, a frozen server is detected after 1.3 s under any load, and it reconnects in the background
 * for ever.
 */
export class RedisServer implements RedisRoute {
  readonly url: string;
  readonly #client: Client;
  readonly #onOutage: (error: unknown) => void;
  readonly #watchdog: NodeJS.Timeout;
  #silentTicks = 0;
  /** The error of the last PING, if it failed. */
  #refusal: unknown;
  /** Whether the server has accepted a connection that is not ready yet. */
  #isShakingHands = false;
  #isOut = false;
  #isStopped = false;
  #leftReplicaTick = Number.NEGATIVE_INFINITY;

  /** Opens a connection. Resolves when the first attempt has succeeded or failed; never rejects. */
  static async open(options: RedisServerOptions): Promise<RedisServer> {
    const client = await newClient(options.url, () => {
      server.#isShakingHands = false;
    });
    const server = new RedisServer(client, options);
    const { promise: settled, resolve } = Promise.withResolvers<void>();
    client.once('ready', resolve);
    client.once('error', () => resolve());
    client.once('end', resolve);
    server.#connect();
    await settled;
    return server;
  }

  private constructor(client: Client, { url, onReady, onOutage }: RedisServerOptions) {
    this.url = url;
    this.#client = client;
    this.#onOutage = onOutage ?? (() => undefined);
    client.on('error', (error) => {
      this.#reportOutage(error);
      // An error on a working connection is an invalid reply: later replies would be matched to the wrong commands.
      if (client.isReady) client.destroy();
    });
    client.on('connect', () => {
      // The client could not cancel this attempt to connect when it was stopped.
      if (this.#isStopped) {
        client.destroy();
        return;
      }
      this.#silentTicks = 0;
      this.#refusal = undefined;
      this.#isShakingHands = true;
    });
    client.on('ready', () => {
      this.#isShakingHands = false;
      this.#silentTicks = 0;
      onReady?.(this);
    });
    this.#watchdog = setInterval(() => this.#watch(), WATCH_TICK_MS).unref();
  }

  get isReady(): boolean {
    return this.#client.isReady;
  }

  async run(script: LuaScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const given = givenTo(keys, args);
    try {
      // The client's own method for scripts takes longer.
      return this.#heard(await this.#client.sendCommand(['EVALSHA', script.sha1, ...given]));
    } catch (error) {
      if (!isNoScript(error)) throw this.#failed(error);
    }
    return this.command(['EVAL', script.source, ...given]);
  }

  /** Runs one command. @throws CacheUnavailableError if it fails. */
  async command(args: readonly string[]): Promise<unknown> {
    try {
      return this.#heard(await this.#client.sendCommand(args));
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** Runs a script on a slot that is still being moved to this server. @throws CacheUnavailableError if it fails. */
  async runAsking(script: LuaScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const command = ['EVAL', script.source, ...givenTo(keys, args)];
    // Sent together, since ASKING applies only to the connection's next command.
    const [, reply] = await Promise.all([this.command(['ASKING']), this.command(command)]);
    return reply;
  }

  /**
   * Subscribes to a channel, now or once connected, and again after each reconnection; messages in between are lost.
   * Resolves when the first attempt has succeeded or failed; never rejects.
   */
  async subscribe(channel: string, listener: (message: string) => void): Promise<void> {
    // If this fails, so has the connection: the next `ready` subscribes again.
    const start = () => this.#client.subscribe(channel, listener).catch((error) => this.#reportOutage(error));
    this.#client.on('ready', start);
    if (this.#client.isReady) await start();
  }

  async checkHealth(key: string): Promise<void> {
    try {
      await this.run(CHECK_HEALTH, [key], [HEALTH_KEY_MS]);
    } catch (error) {
      const redirection =
        error instanceof CacheUnavailableError && error.cause instanceof Error
          ? redirectionOf(error.cause.message, this.url)
          : undefined;
      // A server that redirects is well: the slot is being moved.
      if (!redirection || redirection.kind === 'down') throw error;
    }
  }

  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    clearInterval(this.#watchdog);
    if (this.#client.isOpen) this.#client.destroy();
  }

  /**
   * Notes that the server has responded, and returns its reply. PINGs are not enough: while the command queue is full,
   * none is sent.
   */
  #heard(answer: unknown): unknown {
    this.#silentTicks = 0;
    return answer;
  }

  /**
   * Makes the error of a command that has failed. A server that has become a replica takes no writes on connections
   * that stay open: it is left, and the next connection goes where the address leads now. While that is the same
   * server, it still serves reads, so it is left once a second at most.
   */
  #failed(error: unknown): CacheUnavailableError {
    if (error instanceof Error && error.message.includes('READONLY') && this.#client.isReady) {
      const now = performance.now();
      if (now - this.#leftReplicaTick >= LEAVE_REPLICA_MS) {
        this.#leftReplicaTick = now;
        this.#client.destroy();
        this.#connect();
      }
    }
    return new CacheUnavailableError(error);
  }

  #connect(): void {
    this.#client.connect().catch((error) => this.#reportOutage(error));
  }

  #reportOutage(error: unknown): void {
    if (this.#isOut || this.#isStopped) return;
    this.#isOut = true;
    this.#onOutage(isDatabaseRefused(error) ? databaseFault(this.url) : error);
  }

  // Counts ticks of its own timer, so that a stall of this process is not mistaken for one of the server. Timeouts of
  // the socket would not do: they expire before data that has arrived is read, and each command written to a frozen
  // server restarts them.
  #watch(): void {
    // Reconnect if the previous tick has given up the connection.
    if (!this.#client.isOpen) this.#connect();
    if (!this.#client.isReady && !this.#isShakingHands) return;
    this.#silentTicks += 1;
    if (this.#silentTicks <= SILENT_TICKS) {
      if (this.#client.isReady) this.#ping();
      return;
    }
    this.#silentTicks = 0;
    this.#isShakingHands = false;
    this.#reportOutage(
      this.#refusal ??
        new Error(`Redis at ${new URL(this.url).host} has not responded for ${SILENT_TICKS * WATCH_TICK_MS} ms`),
    );
    this.#client.destroy();
  }

  // An outage ends only with a reply: a server may accept connections and freeze, or refuse everything while it loads
  // its data.
  #ping(): void {
    this.#client.sendCommand(['PING']).then(
      () => {
        this.#silentTicks = 0;
        this.#refusal = undefined;
        this.#isOut = false;
      },
      (error) => {
        // A server that cannot save its data refuses PING with the writes, and serves reads.
        if (String(error).includes('MISCONF')) this.#heard(undefined);
        this.#refusal = error;
      },
    );
  }
}

/** Returns what a script is given, as its command has it: the number of keys, the keys and the arguments. */
function givenTo(keys: readonly string[], args: readonly (string | number)[]): string[] {
  return [`${keys.length}`, ...keys, ...args.map(String)];
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/** Checks whether a cluster has refused the handshake because the URL names a database other than 0. */
function isDatabaseRefused(error: unknown): boolean {
  return error instanceof Error && error.message.includes('SELECT is not allowed in cluster mode');
}

function databaseFault(url: string): ConfigError {
  const { pathname } = new URL(url);
  return new ConfigError([`REDIS_URL: a Redis Cluster has only database 0; remove ${pathname} at the end`]);
}
