import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { EventReader } from '../../test/support/graphql/event-reader.ts';
import { cursorFault, endFault, type StreamEnd } from './verdict.rules.ts';

const QUERY = `subscription ($after: String) {
  transactionUpdates(after: $after) { cursor previousStatus transaction { id status } }
}`;
const RESUME_MS = 500;
/** One fault makes others. */
const MOST_FAULTS = 3;

/** The ways in which updates come. */
export type Transport = 'WebSocket' | 'SSE';

/** Whom updates are asked of. */
export interface Updates {
  baseUrl: string;
  token(): string;
  correlationId(): string;
}

/** The cursors of updates after another one, as they come, until `signal` aborts or the stream ends; gives how it has ended. */
export async function* updatesOver(
  transport: Transport,
  updates: Updates,
  after: bigint,
  signal: AbortSignal,
): AsyncGenerator<string, StreamEnd> {
  try {
    return yield* transport === 'SSE' ? overSse(updates, after, signal) : overSocket(updates, after, signal);
  } catch (error) {
    return { by: 'failure', reason: String(error) };
  }
}

async function* overSse(updates: Updates, after: bigint, signal: AbortSignal): AsyncGenerator<string, StreamEnd> {
  const response = await fetch(`${updates.baseUrl}/graphql`, {
    method: 'POST',
    headers: {
      accept: 'text/event-stream',
      'content-type': 'application/json',
      'x-correlation-id': updates.correlationId(),
      authorization: `Bearer ${updates.token()}`,
    },
    body: JSON.stringify({ query: QUERY, variables: { after: `${after}` } }),
    signal,
  });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  const reader = new EventReader(response);
  for (let event = await reader.next(); event?.event === 'next'; event = await reader.next()) {
    const told = updateOf(JSON.parse(event.data));
    if (typeof told !== 'string') return told;
    yield told;
  }
  return { by: reader.hasEnded ? 'end' : 'complete' };
}

async function* overSocket(updates: Updates, after: bigint, signal: AbortSignal): AsyncGenerator<string, StreamEnd> {
  const socket = new WebSocket(`${updates.baseUrl.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', {
    perMessageDeflate: false,
    headers: { 'x-correlation-id': updates.correlationId() },
  });
  const close = () => socket.terminate();
  signal.addEventListener('abort', close, { once: true });
  const send = (message: object) => socket.send(JSON.stringify(message));
  const unread: (string | StreamEnd)[] = [];
  let wake = Promise.withResolvers<void>();
  const add = (told: string | StreamEnd) => {
    unread.push(told);
    wake.resolve();
  };
  socket.on('open', () => send({ type: 'connection_init', payload: { authorization: `Bearer ${updates.token()}` } }));
  socket.on('message', (data) => {
    const { type, payload } = JSON.parse(String(data));
    if (type === 'ping') send({ type: 'pong' });
    else if (type === 'connection_ack') {
      send({ type: 'subscribe', id: '1', payload: { query: QUERY, variables: { after: `${after}` } } });
    } else if (type === 'next') add(updateOf(payload));
    else if (type === 'error') add(errorsEnd(payload));
    else if (type === 'complete') add({ by: 'complete' });
  });
  socket.on('error', (error) => add({ by: 'failure', reason: error.message }));
  socket.on('close', (code) => add({ by: 'close', code }));
  try {
    for (;;) {
      const told = unread.shift();
      if (told === undefined) {
        await wake.promise;
        wake = Promise.withResolvers();
      } else if (typeof told === 'string') yield told;
      else return told;
    }
  } finally {
    signal.removeEventListener('abort', close);
    socket.terminate();
  }
}

/** The cursor of an update, or the end that errors in its place are. */
function updateOf(payload: unknown): string | StreamEnd {
  const { data, errors } = payload as { data?: { transactionUpdates?: { cursor: string } } | null; errors?: unknown };
  return data?.transactionUpdates?.cursor ?? errorsEnd(errors);
}

function errorsEnd(errors: unknown): StreamEnd {
  const all = Array.isArray(errors) ? errors : [];
  return { by: 'errors', codes: all.map((error) => error?.extensions?.code ?? error?.message) };
}

interface SubscriberDependencies {
  transport: Transport;
  updates: Updates;
  after: bigint;
  unexpected(fault: string): void;
}

/** Follows the updates of a node, and is to be told each of them once and in order; goes on after its cursor when its stream ends. */
export class Subscriber implements AsyncDisposable {
  readonly name: string;
  readonly faults: string[] = [];
  last: bigint;
  count = 0;
  /** How often its stream has ended before it was to. */
  resumed = 0;
  readonly #ending = new AbortController();
  readonly #followed: Promise<void>;
  readonly #unexpected: (fault: string) => void;

  /** `unexpected` is told of each end of a stream after which nobody is to come back. */
  constructor(name: string, { transport, updates, after, unexpected }: SubscriberDependencies) {
    this.name = name;
    this.last = after;
    this.#unexpected = unexpected;
    this.#followed = this.#follow(transport, updates);
  }

  async #follow(transport: Transport, updates: Updates): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      const told = updatesOver(transport, updates, this.last, signal);
      let next = await told.next();
      for (; !next.done; next = await told.next()) this.#take(next.value);
      if (signal.aborted) return;
      const fault = endFault(next.value);
      if (fault !== undefined) this.#unexpected(fault);

      this.resumed += 1;
      await delay(RESUME_MS);
    }
  }

  #take(cursor: string): void {
    const fault = cursorFault(this.last, cursor);
    if (fault !== undefined && this.faults.length < MOST_FAULTS) this.faults.push(fault);
    this.last = BigInt(cursor);
    this.count += 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#followed;
  }
}
