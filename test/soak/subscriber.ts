import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { EventReader } from '../graphql/event-reader.ts';
import { cursorFault } from './verdict.rules.ts';

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

/**
 * The cursors of updates after another one, as they come, until `signal` aborts or the stream ends.
 * @throws Error where the stream ends with an error of its own.
 */
export function updatesOver(transport: Transport, updates: Updates, after: bigint, signal: AbortSignal) {
  return transport === 'SSE' ? overSse(updates, after, signal) : overSocket(updates, after, signal);
}

async function* overSse(updates: Updates, after: bigint, signal: AbortSignal): AsyncGenerator<string> {
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
    yield cursorOf(JSON.parse(event.data));
  }
}

async function* overSocket(updates: Updates, after: bigint, signal: AbortSignal): AsyncGenerator<string> {
  const socket = new WebSocket(`${updates.baseUrl.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', {
    perMessageDeflate: false,
    headers: { 'x-correlation-id': updates.correlationId() },
  });
  const close = () => socket.terminate();
  signal.addEventListener('abort', close, { once: true });
  const send = (message: object) => socket.send(JSON.stringify(message));
  const unread: { type: string; payload: unknown }[] = [];
  let wake = Promise.withResolvers<void>();
  const add = (type: string, payload: unknown) => {
    unread.push({ type, payload });
    wake.resolve();
  };
  socket.on('open', () => send({ type: 'connection_init', payload: { authorization: `Bearer ${updates.token()}` } }));
  socket.on('message', (data) => {
    const { type, payload } = JSON.parse(String(data));
    if (type === 'ping') send({ type: 'pong' });
    else if (type === 'connection_ack') {
      send({ type: 'subscribe', id: '1', payload: { query: QUERY, variables: { after: `${after}` } } });
    } else add(type, payload);
  });
  socket.on('error', (error) => add('error', error.message));
  socket.on('close', () => add('closed', undefined));
  try {
    for (;;) {
      const message = unread.shift();
      if (message === undefined) {
        await wake.promise;
        wake = Promise.withResolvers();
      } else if (message.type === 'next') yield cursorOf(message.payload);
      else if (message.type === 'error') throw new Error(JSON.stringify(message.payload));
      else if (message.type !== 'pong') return;
    }
  } finally {
    signal.removeEventListener('abort', close);
    socket.terminate();
  }
}

function cursorOf(payload: unknown): string {
  const { data, errors } = payload as { data?: { transactionUpdates?: { cursor: string } } | null; errors?: unknown };
  if (!data?.transactionUpdates) throw new Error(JSON.stringify(errors ?? payload));
  return data.transactionUpdates.cursor;
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

  constructor(name: string, transport: Transport, updates: Updates, after: bigint) {
    this.name = name;
    this.last = after;
    this.#followed = this.#follow(transport, updates);
  }

  async #follow(transport: Transport, updates: Updates): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      try {
        for await (const cursor of updatesOver(transport, updates, this.last, signal)) this.#take(cursor);
      } catch (error) {
        if (!signal.aborted) this.#fault(`the stream failed: ${error}`);
      }
      if (signal.aborted) return;
      this.resumed += 1;
      await delay(RESUME_MS);
    }
  }

  #take(cursor: string): void {
    const fault = cursorFault(this.last, cursor);
    if (fault !== undefined) this.#fault(fault);
    this.last = BigInt(cursor);
    this.count += 1;
  }

  #fault(fault: string): void {
    if (this.faults.length < MOST_FAULTS) this.faults.push(fault);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#followed;
  }
}
