import { setTimeout as delay } from 'node:timers/promises';
import { EventReader } from '../graphql/event-reader.ts';

const AGAIN_AFTER_MS = 100;
const SILENCE_MS = 20_000;
const QUERY = 'subscription ($after: String) { transactionUpdates(after: $after) { cursor transaction { id } } }';

/** A subscriber that comes back with the last cursor it has seen, to the next replica, whenever its stream ends. */
export interface Reader {
  /** The cursors, in the order in which they came. */
  seen: bigint[];
  /** What came, in the same order: the cursor and the transaction's id. */
  events: string[];
  /** How often it had to come back. */
  returns(): number;
  stop(): Promise<void>;
}

interface ReaderDependencies {
  baseUrls: readonly string[];
  token: string;
  /** The cursor that it begins at. */
  after: bigint;
}

export function startReader({ baseUrls, token, after }: ReaderDependencies): Reader {
  const seen: bigint[] = [];
  const events: string[] = [];
  const stopping = new AbortController();
  let returns = -1;

  async function read(baseUrl: string): Promise<void> {
    const left = new AbortController();
    const leave = () => left.abort();
    stopping.signal.addEventListener('abort', leave, { once: true });
    // A frozen server says nothing, not even a comment.
    const silence = setTimeout(leave, SILENCE_MS);
    try {
      const response = await fetch(`${baseUrl}/graphql`, {
        method: 'POST',
        signal: left.signal,
        headers: {
          authorization: `Bearer ${token}`,
          accept: 'text/event-stream',
          'content-type': 'application/json',
        },
        body: JSON.stringify({ query: QUERY, variables: { after: `${seen.at(-1) ?? after}` } }),
      });
      if (response.status !== 200) return void (await response.text());
      const stream = new EventReader(response);
      for (let event = await stream.next(); event; event = await stream.next()) {
        const update = event.event === 'next' ? JSON.parse(event.data).data?.transactionUpdates : undefined;
        if (!update) return;
        seen.push(BigInt(update.cursor));
        events.push(`${update.cursor} ${update.transaction.id}`);
        silence.refresh();
      }
    } finally {
      clearTimeout(silence);
      stopping.signal.removeEventListener('abort', leave);
    }
  }

  async function readOn(): Promise<void> {
    for (let turn = 0; !stopping.signal.aborted; turn += 1) {
      returns += 1;
      const baseUrl = baseUrls[turn % baseUrls.length];
      if (baseUrl !== undefined) await read(baseUrl).catch(() => undefined);
      await delay(AGAIN_AFTER_MS);
    }
  }

  const ended = readOn();
  return {
    seen,
    events,
    returns: () => returns,
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
