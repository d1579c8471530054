import { RedisConnection } from '../../platform/cache/redis-connection.ts';
import { MemoryWakeUps } from './wake-ups.ts';

const CHANNEL = 'wake-ups';
const MESSAGE = /^(?<nodeId>\S+) (?<seq>\d{1,19})$/;

/** Sends wake-ups to all processes over one Redis channel. While Redis is down, they reach only this process. */
export class RedisWakeUps extends MemoryWakeUps {
  readonly #redis: RedisConnection;
  /** The highest sequence number that this process has sent for each tenant. */
  readonly #sent: ReadonlyMap<string, bigint>;

  /** Connects to Redis; resolves even if it is down. */
  static async open({
    url,
    channelPrefix = '',
    onOutage,
  }: {
    url: string;
    /** The prefix of the channel's name, since all databases of one Redis share their channels. */
    channelPrefix?: string | undefined;
    /** Called once for each outage, with its first error. */
    onOutage?: ((error: unknown) => void) | undefined;
  }): Promise<RedisWakeUps> {
    let wakeUps: RedisWakeUps | undefined;
    const listener = (message: string) => {
      if (wakeUps) wakeUps.#receive(message);
    };
    const channel = { name: `${channelPrefix}${CHANNEL}`, listener };
    wakeUps = new RedisWakeUps(await RedisConnection.open({ url, channel, onOutage }));
    return wakeUps;
  }

  private constructor(redis: RedisConnection) {
    const sent = new Map<string, bigint>();
    super((nodeId, seq) => {
      sent.set(nodeId, seq);
      // The connection reports its outages itself, and the tailers' polls make up for lost wake-ups.
      redis.publish(`${nodeId} ${seq}`).catch(() => undefined);
    });
    this.#redis = redis;
    this.#sent = sent;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#redis.stop();
  }

  #receive(message: string): void {
    const { nodeId, seq } = MESSAGE.exec(message)?.groups ?? {};
    if (nodeId === undefined || seq === undefined) return;
    // The echo of a wake-up that this process has sent, or one that such a wake-up has superseded.
    if (BigInt(seq) > (this.#sent.get(nodeId) ?? 0n)) this.wake(nodeId, BigInt(seq));
  }
}
