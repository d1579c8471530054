import { RedisConnection } from '../../platform/cache/redis-connection.ts';
import { MemoryWakeUps, type WakeUpListener, type WakeUps } from './wake-ups.ts';

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
  readonly #redis: RedisConnection;
  readonly #local: MemoryWakeUps;
  /** The highest sequence number that this process has sent for each tenant. */
  readonly #sent = new Map<string, bigint>();

  /** Connects to Redis; resolves even if it is down. */
  static async open({ url, channelPrefix = '', onOutage }: RedisWakeUpsOptions): Promise<RedisWakeUps> {
    let wakeUps: RedisWakeUps | undefined;
    const listener = (message: string) => {
      if (wakeUps) wakeUps.#receive(message);
    };
    const channel = { name: `${channelPrefix}${CHANNEL}`, listener };
    wakeUps = new RedisWakeUps(await RedisConnection.open({ url, channel, onOutage }));
    return wakeUps;
  }

  private constructor(redis: RedisConnection) {
    this.#redis = redis;
    this.#local = new MemoryWakeUps((nodeId, seq) => {
      this.#sent.set(nodeId, BigInt(seq));
      // The connection reports its outages itself, and the tailers' polls make up for lost wake-ups.
      redis.publish(`${nodeId} ${seq}`).catch(() => undefined);
    });
  }

  notify(nodeId: string, seq: string): void {
    this.#local.notify(nodeId, seq);
  }

  listen(listener: WakeUpListener): () => void {
    return this.#local.listen(listener);
  }

  async stop(): Promise<void> {
    await this.#local.stop();
    await this.#redis.stop();
  }

  #receive(message: string): void {
    const { nodeId, seq } = MESSAGE.exec(message)?.groups ?? {};
    if (nodeId === undefined || seq === undefined) return;
    // The echo of a wake-up that this process has sent, or one that such a wake-up has superseded.
    if (BigInt(seq) <= (this.#sent.get(nodeId) ?? 0n)) return;
    this.#local.wake(nodeId, seq);
  }
}
