import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { EventReader } from '../../test/support/graphql/event-reader.ts';
import { COUNTED, type Tally } from './caller.ts';
import type { Kind } from './traffic.ts';
import { cursorFault, endFault, type StreamEnd } from './verdict.rules.ts';

const QUERY = `subscription ($after: String) {
  transactionUpdates(after: $after) { cursor previousStatus transaction { id status } }
}`;
const RESUME_MS = 500;
/** One fault makes others. */
const MOST_FAULTS = 3;
const EACH = 8;
const BACKLOG = 20n;
const PATIENCE_MS = 10_000;

const TRANSPORTS = { WebSocket: overSocket, SSE: overSse };
export type Transport = keyof typeof TRANSPORTS;

/** Where updates come from. */
export interface Updates {
  baseUrl: string;
  token(): string;
  correlationId(): string;
}

type Told = AsyncGenerator<string, StreamEnd>;

/** Yields the cursors of updates after another one, until `signal` aborts or the stream ends; returns how it ended. */
async function* updatesOver(transport: Transport, updates: Updates, after: bigint, signal: AbortSignal): Told {
  try {
    return yield* TRANSPORTS[transport](updates, after, signal);
  } catch (error) {
    return { by: 'failure', reason: String(error) };
  }
}

async function* overSse({ baseUrl, token, correlationId }: Updates, after: bigint, signal: AbortSignal): Told {
  const response = await fetch(`${baseUrl}/graphql`, {
    method: 'POST',
    headers: {
      accept: 'text/event-stream',
      'content-type': 'application/json',
      'x-correlation-id': correlationId(),
      authorization: `Bearer ${token()}`,
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

async function* overSocket({ baseUrl, token, correlationId }: Updates, after: bigint, signal: AbortSignal): Told {
  class Socket extends WebSocket {
    constructor(url: string, protocol: string) {
      super(url, protocol, { perMessageDeflate: false, headers: { 'x-correlation-id': correlationId() } });
    }
  }
  const client = createClient({
    url: `${baseUrl.replace('http', 'ws')}/graphql`,
    webSocketImpl: Socket,
    retryAttempts: 0,
    generateID: () => '1',
    connectionParams: { authorization: `Bearer ${token()}` },
  });
  signal.addEventListener('abort', client.terminate, { once: true });
  try {
    for await (const payload of client.iterate({ query: QUERY, variables: { after: `${after}` } })) {
      const told = updateOf(payload);
      if (typeof told !== 'string') return told;
      yield told;
    }
    return { by: 'complete' };
  } catch (error) {
    if (Array.isArray(error)) return errorsEnd(error);
    if (typeof error === 'object' && error !== null && 'code' in error)
      return { by: 'close', code: Number(error.code) };
    throw error;
  } finally {
    signal.removeEventListener('abort', client.terminate);
    client.terminate();
  }
}

/** Returns the cursor of an update, or the end that errors in its place are. */
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
  /** Called with each end of a stream after which no client would come back. */
  unexpected(fault: string): void;
}

/** Follows the updates of a node, expects each once and in order, and resumes after its cursor when its stream ends. */
export class Subscriber implements AsyncDisposable {
  readonly name: string;
  readonly faults: string[] = [];
  last: bigint;
  count = 0;
  /** How often its stream has ended before it was to. */
  resumed = 0;
  readonly #ending = new AbortController();
  readonly #followed: Promise<void>;

  constructor(name: string, dependencies: SubscriberDependencies) {
    this.name = name;
    this.last = dependencies.after;
    this.#followed = this.#follow(dependencies);
  }

  async #follow({ transport, updates, unexpected }: SubscriberDependencies): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      const told = updatesOver(transport, updates, this.last, signal);
      let next = await told.next();
      for (; !next.done; next = await told.next()) this.#take(next.value);
      if (signal.aborted) return;
      const fault = endFault(next.value);
      if (fault !== undefined) unexpected(fault);
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

/** Subscribers that follow the updates of the node throughout, and kinds of traffic that subscribe briefly. */
export class Subscriptions implements AsyncDisposable {
  readonly followers: readonly Subscriber[];
  readonly kinds: readonly Kind[];
  readonly #updates: Updates;
  readonly #tally: Tally;

  constructor({ tally, after, ...where }: { baseUrl: string; token(): string; tally: Tally; after: bigint }) {
    this.#tally = tally;
    let count = 0;
    // Their requests last: they are not counted against the audit records.
    const correlationId = () => {
      count += 1;
      return `${COUNTED.replace('-', '')}sub-${count}`;
    };
    this.#updates = { ...where, correlationId };
    const transports = Object.keys(TRANSPORTS) as Transport[];
    this.followers = transports.flatMap((transport) => {
      const unexpected = (fault: string) => tally.failed(`subscribe.${transport}`, fault);
      const dependencies = { transport, updates: this.#updates, after, unexpected };
      return Array.from({ length: EACH }, (_, at) => new Subscriber(`${transport} ${at + 1}`, dependencies));
    });
    this.kinds = transports.map((transport) => {
      const name = `subscribe.${transport}`;
      return { name, weight: 1, ask: () => this.#comeAndGo(name, transport) };
    });
  }

  /** Asks for the last changes that others have got, and goes when it has them. */
  async #comeAndGo(kind: string, transport: Transport): Promise<void> {
    const seen = Math.min(...this.followers.map(({ last }) => Number(last)));
    const after = BigInt(seen) - BACKLOG;
    if (after < 0n) return;
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const startedAt = performance.now();
    const fault = await this.#read(transport, after, patience);
    const shown = patience.aborted ? 'not told in time' : fault;
    this.#tally.answered(kind, performance.now() - startedAt, shown);
  }

  async #read(transport: Transport, after: bigint, signal: AbortSignal): Promise<string | undefined> {
    let last = after;
    const told = updatesOver(transport, this.#updates, after, signal);
    let next = await told.next();
    for (; !next.done; next = await told.next()) {
      const fault = cursorFault(last, next.value);
      last = BigInt(next.value);
      if (fault === undefined && last < after + BACKLOG) continue;
      await told.return({ by: 'end' });
      return fault;
    }
    return `the stream ended at ${last}: ${JSON.stringify(next.value)}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.followers.map((follower) => follower[Symbol.asyncDispose]()));
  }
}
