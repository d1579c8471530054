import { once } from 'node:events';
import { COUNTED } from './caller.ts';
import { Subscriber, type Transport, type Updates, updatesOver } from './subscriber.ts';
import type { Tally } from './tally.ts';
import type { Kind } from './traffic.ts';
import { cursorFault } from './verdict.rules.ts';

const EACH = 8;
const BACKLOG = 20n;
const PATIENCE_MS = 10_000;
const TRANSPORTS: readonly Transport[] = ['WebSocket', 'SSE'];

/** Those who follow the updates of the node throughout, and those who come and go. */
export class Subscriptions implements AsyncDisposable {
  readonly followers: readonly Subscriber[];
  readonly #updates: Updates;
  readonly #tally: Tally;
  #count = 0;

  constructor(parts: { baseUrl: string; token(): string; tally: Tally; after: bigint }) {
    const { baseUrl, token, tally, after } = parts;
    this.#tally = tally;
    // Their requests last: they are not counted against the audit records.
    const correlationId = () => {
      this.#count += 1;
      return `${COUNTED.replace('-', '')}sub-${this.#count}`;
    };
    this.#updates = { baseUrl, token, correlationId };
    this.followers = TRANSPORTS.flatMap((transport) =>
      Array.from(
        { length: EACH },
        (_, at) =>
          new Subscriber(`${transport} ${at + 1}`, {
            transport,
            updates: this.#updates,
            after,
            unexpected: (fault) => tally.failed(`subscribe.${transport}`, fault),
          }),
      ),
    );
  }

  kinds(): Kind[] {
    return TRANSPORTS.map((transport) => ({
      name: `subscribe ${transport}`,
      weight: 1,
      ask: () => this.#comeAndGo(transport),
    }));
  }

  /** Asks for the last changes that others have got, and goes when it has them. */
  async #comeAndGo(transport: Transport): Promise<void> {
    const kind = `subscribe.${transport}`;
    const seen = Math.min(...this.followers.map(({ last }) => Number(last)));
    const after = BigInt(seen) - BACKLOG;
    if (after < 0n) return;
    const ending = new AbortController();
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const startedAt = performance.now();
    try {
      const late = once(patience, 'abort', { signal: ending.signal }).then(() => 'not told in time');
      late.catch(() => undefined);
      const fault = await Promise.race([this.#read(transport, after, ending.signal), late]);
      this.#tally.answered(kind, performance.now() - startedAt, fault);
    } catch (error) {
      this.#tally.failed(kind, String(error));
    } finally {
      ending.abort();
    }
  }

  async #read(transport: Transport, after: bigint, signal: AbortSignal): Promise<string | undefined> {
    let last = after;
    const told = updatesOver(transport, this.#updates, after, signal);
    let next = await told.next();
    for (; !next.done; next = await told.next()) {
      const fault = cursorFault(last, next.value);
      if (fault !== undefined) return fault;
      last = BigInt(next.value);
      if (last === after + BACKLOG) {
        await told.return({ by: 'end' });
        return undefined;
      }
    }
    return `the stream ended at ${last}: ${JSON.stringify(next.value)}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.followers.map((follower) => follower[Symbol.asyncDispose]()));
  }
}
