import { PendingWakeUps } from './pending-wake-ups.ts';
import { RedisChannel } from './redis-channel.ts';
import type { WakeUpListener, WakeUps } from './wake-ups.ts';

const CHANNEL = 'wake-ups';
const MESSAGE = /^(?<nodeId>\S+) (?<seq>\d{1,19})$/;

export interface RedisWakeUpsOptions {
  url: string;
  /** Stands before the channel's name: the databases of one Redis share their channels. */
  channelPrefix?: string | undefined;
  /** Told once of each outage, with its first error. */
  onOutage?: ((error: unknown) => void) | undefined;
}

/**
 * Wake-ups between processes, published on one channel. Those sent while Redis is away are lost for the other processes;
 * the own one hears them without it.
 */
export class RedisWakeUps implements WakeUps {
  readonly #channel: RedisChannel;
  readonly #listeners = new Set<WakeUpListener>();
  readonly #pending: PendingWakeUps;
  /** The highest number of each node that was told here already. */
  readonly #told = new Map<string, bigint>();

  /** Starts whether or not Redis is there. */
  static async open({ url, channelPrefix = '', onOutage }: RedisWakeUpsOptions): Promise<RedisWakeUps> {
    return new RedisWakeUps(await RedisChannel.open({ url, name: `${channelPrefix}${CHANNEL}`, onOutage }));
  }

  private constructor(channel: RedisChannel) {
    this.#channel = channel;
    this.#pending = new PendingWakeUps((nodeId, seq) => {
      this.#told.set(nodeId, BigInt(seq));
      this.#tell(nodeId, seq);
      // The connection reports its outages itself; the readers' polling makes up for what is lost.
      channel.publish(`${nodeId} ${seq}`).catch(() => undefined);
    });
    channel.listen((message) => this.#hear(message));
  }

  notify(nodeId: string, seq: string): void {
    this.#pending.add(nodeId, seq);
  }

  listen(listener: WakeUpListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  async stop(): Promise<void> {
    this.#pending.clear();
    this.#listeners.clear();
    await this.#channel.stop();
  }

  #hear(message: string): void {
    const { nodeId, seq } = MESSAGE.exec(message)?.groups ?? {};
    if (nodeId === undefined || seq === undefined) return;
    // The echo of what this process has sent, or what that has made superfluous.
    if (BigInt(seq) <= (this.#told.get(nodeId) ?? 0n)) return;
    this.#tell(nodeId, seq);
  }

  #tell(nodeId: string, seq: string): void {
    for (const listener of this.#listeners) listener(nodeId, seq);
  }
}
