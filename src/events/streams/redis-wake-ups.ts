import { setTimeout as delay } from 'node:timers/promises';
import { isInCluster, topologyBy } from '../../platform/cache/redis-cluster.ts';
import { RedisServer } from '../../platform/cache/redis-server.ts';
import { MemoryWakeUps, type WakeUpListener, type WakeUps } from './wake-ups.ts';

const MEMBERS_POLL_MS = 3_000;
const LEAVE_AFTER_MS = 250;

interface RedisChannelOptions {
  url: string;
  name: string;
  /** Called once for each outage, with its first error. */
  onOutage?: ((error: unknown) => void) | undefined;
}

/**
 * A Redis pub/sub channel over one connection. All members of a cluster share their messages, so the channel uses one
 * of them and moves to the next when that one is down.
 */
class RedisChannel {
  readonly #options: RedisChannelOptions;
  readonly #timer: NodeJS.Timeout;
  #server: RedisServer | undefined;
  #listener: (message: string) => void = () => undefined;
  /** The URLs of the cluster's members, in addition to the configured one. */
  #members: readonly string[] = [];
  #moves = 0;
  #moving: Promise<void> | undefined;
  #isDown = false;
  readonly #stopping = new AbortController();

  /** Opens the channel. Resolves when the first attempt to subscribe has succeeded or failed; never rejects. */
  static async open(options: RedisChannelOptions): Promise<RedisChannel> {
    const channel = new RedisChannel(options);
    await channel.#connect(options.url);
    return channel;
  }

  private constructor(options: RedisChannelOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      if (this.#members.length > 0 && this.#server?.isReady) void this.#readMembers(this.#server);
    }, MEMBERS_POLL_MS).unref();
  }

  /**
   * Publishes a message to all current subscribers of the channel.
   * @throws CacheUnavailableError when Redis does not respond.
   */
  async publish(message: string): Promise<void> {
    await this.#server?.command(['PUBLISH', this.#options.name, message]);
  }

  /** Calls `listener` with each message that is published while the channel is connected; others are lost. */
  listen(listener: (message: string) => void): void {
    this.#listener = listener;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#timer);
    this.#server?.stop();
    await this.#moving;
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #connect(url: string): Promise<void> {
    const server = await RedisServer.open({
      url,
      onReady: (ready) => {
        this.#isDown = false;
        void this.#readMembers(ready);
      },
      onOutage: (error) => {
        this.#reportOutage(error);
        this.#moveOn();
      },
    });
    this.#server?.stop();
    this.#server = server;
    if (this.#isStopped) server.stop();
    else await server.subscribe(this.#options.name, (message) => this.#listener(message));
  }

  /**
   * Reads the members of the cluster from the server, and moves to another one if this server has left the cluster:
   * messages published there no longer reach the others. The configured server may be in no cluster; then it is the
   * only one.
   */
  async #readMembers(server: RedisServer): Promise<void> {
    try {
      const isCluster = await isInCluster(server);
      const members = isCluster ? (await topologyBy(server)).members : [];
      const isElsewhere = isCluster || server.url !== this.#options.url;
      if (members.length === 0 && this.#members.length > 0 && isElsewhere) this.#moveOn();
      else this.#members = members;
    } catch (error) {
      if (server.isReady) this.#reportOutage(error);
    }
  }

  #moveOn(): void {
    if (this.#isStopped || this.#members.length === 0) return;
    this.#moving ??= this.#move().finally(() => {
      this.#moving = undefined;
      if (!this.#server?.isReady) this.#moveOn();
    });
  }

  async #move(): Promise<void> {
    await delay(LEAVE_AFTER_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    // The server may have come back by now, without the cluster.
    if (this.#isStopped || this.#members.length === 0) return;
    const urls = [this.#options.url, ...this.#members];
    this.#moves += 1;
    await this.#connect(urls[this.#moves % urls.length] ?? this.#options.url);
  }

  #reportOutage(error: unknown): void {
    if (this.#isDown || this.#isStopped) return;
    this.#isDown = true;
    this.#options.onOutage?.(error);
  }
}

const CHANNEL = 'wake-ups';
const MESSAGE = /^(?<nodeId>\S+) (?<seq>\d{1,19})$/;

interface RedisWakeUpsOptions {
  url: string;
  /** The prefix of the channel's name, since all databases of one Redis share their channels. */
  channelPrefix?: string | undefined;
  /** Called once for each outage, with its first error. */
  onOutage?: ((error: unknown) => void) | undefined;
}

/** Sends wake-ups to all processes over one Redis channel. While Redis is down, they reach only this process. */
export class RedisWakeUps implements WakeUps {
  readonly #channel: RedisChannel;
  readonly #local: MemoryWakeUps;
  /** The highest sequence number that this process has sent for each tenant. */
  readonly #sent = new Map<string, bigint>();

  /** Connects to Redis; resolves even if it is down. */
  static async open({ url, channelPrefix = '', onOutage }: RedisWakeUpsOptions): Promise<RedisWakeUps> {
    return new RedisWakeUps(await RedisChannel.open({ url, name: `${channelPrefix}${CHANNEL}`, onOutage }));
  }

  private constructor(channel: RedisChannel) {
    this.#channel = channel;
    this.#local = new MemoryWakeUps((nodeId, seq) => {
      this.#sent.set(nodeId, BigInt(seq));
      // The connection reports its outages itself, and the tailers' polls make up for lost wake-ups.
      channel.publish(`${nodeId} ${seq}`).catch(() => undefined);
    });
    channel.listen((message) => this.#receive(message));
  }

  notify(nodeId: string, seq: string): void {
    this.#local.notify(nodeId, seq);
  }

  listen(listener: WakeUpListener): () => void {
    return this.#local.listen(listener);
  }

  async stop(): Promise<void> {
    await this.#local.stop();
    await this.#channel.stop();
  }

  #receive(message: string): void {
    const { nodeId, seq } = MESSAGE.exec(message)?.groups ?? {};
    if (nodeId === undefined || seq === undefined) return;
    // The echo of a wake-up that this process has sent, or one that such a wake-up has superseded.
    if (BigInt(seq) <= (this.#sent.get(nodeId) ?? 0n)) return;
    this.#local.wake(nodeId, seq);
  }
}
