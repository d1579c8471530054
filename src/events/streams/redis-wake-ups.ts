import { setTimeout as delay } from 'node:timers/promises';
import { isInCluster, topologyBy } from '../../platform/cache/redis-cluster.ts';
import { RedisServer } from '../../platform/cache/redis-server.ts';
import { MemoryWakeUps, type WakeUpListener, type WakeUps } from './wake-ups.ts';

const LOOK_AGAIN_MS = 3_000;
const LEAVE_AFTER_MS = 250;

interface RedisChannelOptions {
  url: string;
  name: string;
  /** Called once for each outage, with its first error. */
  onOutage?: ((error: unknown) => void) | undefined;
}

/**
 * A channel of Redis by one connection. What is published at any member of a cluster is heard at each of them: it stays
 * at one, and goes to the next when that one is down.
 */
class RedisChannel {
  readonly #options: RedisChannelOptions;
  readonly #timer: NodeJS.Timeout;
  #server: RedisServer | undefined;
  #listener: (message: string) => void = () => undefined;
  /** The URLs of a cluster's members, besides the configured one. */
  #members: readonly string[] = [];
  #moves = 0;
  #moving: Promise<void> | undefined;
  #isOut = false;
  readonly #stopping = new AbortController();

  /** Resolves when the first attempt to hear it has succeeded or failed; never rejects. */
  static async open(options: RedisChannelOptions): Promise<RedisChannel> {
    const channel = new RedisChannel(options);
    await channel.#connect(options.url);
    return channel;
  }

  private constructor(options: RedisChannelOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      if (this.#members.length > 0 && this.#server?.isReady) void this.#look(this.#server);
    }, LOOK_AGAIN_MS).unref();
  }

  /** Sends to all who listen now. @throws CacheUnavailableError */
  async publish(message: string): Promise<void> {
    await this.#server?.command(['PUBLISH', this.#options.name, message]);
  }

  /** Calls `listener` with what is published from now on, or once connected; messages while it is not are lost. */
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
        this.#isOut = false;
        void this.#look(ready);
      },
      onOutage: (error) => {
        this.#reportOutage(error);
        if (this.#members.length > 0) this.#moveOn();
      },
    });
    this.#server?.stop();
    this.#server = server;
    if (this.#isStopped) server.stop();
    else await server.subscribe(this.#options.name, (message) => this.#listener(message));
  }

  /**
   * Learns who else there is. What is said at one that was put out of its cluster, or is of none where a cluster was, the
   * others do not hear; the configured one that is of none is the only one.
   */
  async #look(server: RedisServer): Promise<void> {
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
    if (this.#isStopped) return;
    this.#moving ??= this.#move().finally(() => {
      this.#moving = undefined;
      if (!this.#server?.isReady) this.#moveOn();
    });
  }

  async #move(): Promise<void> {
    const urls = [this.#options.url, ...this.#members];
    this.#moves += 1;
    await delay(LEAVE_AFTER_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    if (!this.#isStopped) await this.#connect(urls[this.#moves % urls.length] ?? this.#options.url);
  }

  #reportOutage(error: unknown): void {
    if (this.#isOut || this.#isStopped) return;
    this.#isOut = true;
    this.#options.onOutage?.(error);
  }
}

const CHANNEL = 'wake-ups';
const MESSAGE = /^(?<nodeId>\S+) (?<seq>\d{1,19})$/;

interface RedisWakeUpsOptions {
  url: string;
  /** Stands before the channel's name: the databases of one Redis share their channels. */
  channelPrefix?: string | undefined;
  /** Called once for each outage, with its first error. */
  onOutage?: ((error: unknown) => void) | undefined;
}

/**
 * Wake-ups between processes, published on one channel. Those sent while Redis is down are lost for the other processes;
 * this one is woken without it.
 */
export class RedisWakeUps implements WakeUps {
  readonly #channel: RedisChannel;
  readonly #local: MemoryWakeUps;
  /** The highest number of each tenant that this process has sent. */
  readonly #sent = new Map<string, bigint>();

  /** Starts whether or not Redis is there. */
  static async open({ url, channelPrefix = '', onOutage }: RedisWakeUpsOptions): Promise<RedisWakeUps> {
    return new RedisWakeUps(await RedisChannel.open({ url, name: `${channelPrefix}${CHANNEL}`, onOutage }));
  }

  private constructor(channel: RedisChannel) {
    this.#channel = channel;
    this.#local = new MemoryWakeUps((nodeId, seq) => {
      this.#sent.set(nodeId, BigInt(seq));
      // The connection reports its outages itself; the readers' polling makes up for what is lost.
      channel.publish(`${nodeId} ${seq}`).catch(() => undefined);
    });
    channel.listen((message) => this.#hear(message));
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

  #hear(message: string): void {
    const { nodeId, seq } = MESSAGE.exec(message)?.groups ?? {};
    if (nodeId === undefined || seq === undefined) return;
    // The echo of what this process has sent, or what that has made superfluous.
    if (BigInt(seq) <= (this.#sent.get(nodeId) ?? 0n)) return;
    this.#local.wake(nodeId, seq);
  }
}
