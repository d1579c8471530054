import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { atRate } from '../lib/at-rate.ts';
import { percentile } from '../lib/statistics.ts';
import { openSse } from './sse-client.ts';
import { openSocket } from './ws-client.ts';

/** Who listens, how, and how updates are published. */
export interface Audience {
  url: string;
  subscribers: number;
  /** Whether each subscriber follows a transaction of its own, or all of them follow every one. */
  each: boolean;
  /** `bare`: GET /events; the others: GraphQL. */
  transport: 'bare' | 'sse' | 'ws';
  token?: string | undefined;
  /** Where updates are published; the product's webhook takes notifications. */
  publish: { url: string; authorization?: string | undefined };
  /** Where transactions are registered before they are notified of; nowhere for the others. On servers their owner has done so. */
  register?: { url: string; databaseUrl: string | undefined } | undefined;
}

/** Updates to be published: one to all, or one to each; at an even rate. */
export interface Publication {
  count: number;
  perSecond: number;
}

/** Milliseconds from before the publication to the receipt, over all deliveries. */
export interface Reception {
  deliveries: number;
  p50: number;
  p99: number;
}

export interface Subscriber {
  stop(): void;
}

export interface SubscriberOptions {
  url: string;
  token: string | undefined;
  /** The transaction that it follows; undefined: all. */
  id: string | undefined;
  /** Called for each update with the transaction's id. */
  onUpdate(id: string): void;
}

const REGISTER = 'mutation ($input: RegisterTransactionInput!) { registerTransaction(input: $input) { __typename } }';
const OPENING_AT_ONCE = 32;
const LAST_DELIVERY_MS = 60_000;
/** Of a transaction of its own: started, then in progress, so that its subscription goes on. */
const STATUSES = [1, 2];

/** As if the topic of registrations had told of all that a mutation has registered. */
async function settle(url: string): Promise<void> {
  await using database = await openDatabase({ url });
  await database.db
    .unscoped('a benchmark registers as an owner does')
    .run((k) => k.updateTable('transactions').set({ registered_by: 'topic' }).where('registered_by', '=', 'mutation'));
}

/** Run as a process of its own that is told by messages what to do: it subscribes, publishes and takes the time. */
class Listeners {
  readonly #audience: Audience;
  readonly #pool: Pool;
  readonly #open: Subscriber[] = [];
  readonly #publishedAt = new Map<string, number>();
  #followed: string[] = [];
  #round = 0;
  #latencies: number[] = [];
  #expected = Number.POSITIVE_INFINITY;
  #complete = Promise.withResolvers<void>();

  constructor(audience: Audience) {
    this.#audience = audience;
    this.#pool = new Pool(new URL(audience.publish.url).origin, { connections: 16, pipelining: 1 });
  }

  async open(): Promise<void> {
    const { url, token, transport, subscribers, each } = this.#audience;
    this.#followed = each ? await this.#register(subscribers) : [];
    const subscribe = transport === 'ws' ? openSocket : openSse;
    const onUpdate = (id: string) => this.#receive(id);
    let index = 0;
    const lane = async () => {
      while (index < subscribers) {
        const id = this.#followed[index++];
        this.#open.push(await subscribe({ url, token, id, onUpdate, isBare: transport === 'bare' }));
      }
    };
    await Promise.all(Array.from({ length: OPENING_AT_ONCE }, lane));
  }

  /** Makes ready for a publication, outside of what is measured. */
  async prepare(count: number): Promise<string[]> {
    return this.#audience.each ? this.#followed.slice(0, count) : this.#register(count);
  }

  async publish(ids: readonly string[], perSecond: number): Promise<Reception> {
    const { each, subscribers } = this.#audience;
    const status = each ? (STATUSES[this.#round++] ?? 2) : 3;
    this.#latencies = [];
    this.#expected = ids.length * (each ? 1 : subscribers);
    this.#complete = Promise.withResolvers<void>();
    const timeout = setTimeout(
      () => this.#complete.reject(new Error(`${this.#latencies.length} of ${this.#expected} updates came`)),
      LAST_DELIVERY_MS + (ids.length * 1_000) / perSecond,
    );
    const one = async (id = '') => {
      this.#publishedAt.set(id, performance.now());
      await this.#send(id, status);
    };
    await Promise.all([atRate(perSecond, ids.length, (index) => one(ids[index])), this.#complete.promise]);
    clearTimeout(timeout);
    const [p50, p99] = [percentile(this.#latencies, 0.5), percentile(this.#latencies, 0.99)];
    return { deliveries: this.#latencies.length, p50, p99 };
  }

  async close(): Promise<void> {
    for (const subscriber of this.#open) subscriber.stop();
    await this.#pool.close();
  }

  #receive(id: string): void {
    const from = this.#publishedAt.get(id);
    // What a subscription begins with is no update that was published.
    if (from === undefined) return;
    this.#latencies.push(performance.now() - from);
    if (this.#latencies.length === this.#expected) this.#complete.resolve();
    if (this.#latencies.length > this.#expected) throw new Error(`more than ${this.#expected} updates came`);
  }

  async #send(id: string, status: number): Promise<void> {
    const { publish, register } = this.#audience;
    const at = new Date().toISOString();
    const update = register ? { ...NOTIFICATION, id, status, created_at: at, updated_at: at } : { id, status: 'DONE' };
    const { authorization } = publish;
    await this.#post(publish.url, update, authorization);
  }

  async #register(count: number): Promise<string[]> {
    const { register, token } = this.#audience;
    const ids = Array.from({ length: count }, () => randomUUID());
    if (register === undefined) return ids;
    let index = 0;
    const lane = async () => {
      for (let id = ids[index++]; id !== undefined; id = ids[index++]) {
        const input = { id, collection: 'NODE_TRANSACTIONS', type: 1 };
        const text = await this.#post(register.url, { query: REGISTER, variables: { input } }, `Bearer ${token}`);
        if (!text.includes('"__typename":"Transaction"')) throw new Error(`not registered: ${text}`);
      }
    };
    await Promise.all(Array.from({ length: 8 }, lane));
    if (register.databaseUrl !== undefined) await settle(register.databaseUrl);
    return ids;
  }

  async #post(url: string, value: object, authorization: string | undefined): Promise<string> {
    const { statusCode, body } = await this.#pool.request({
      method: 'POST',
      path: new URL(url).pathname,
      headers: { 'content-type': 'application/json', ...(authorization ? { authorization } : {}) },
      body: JSON.stringify(value),
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`refused: ${statusCode} ${text}`);
    return text;
  }
}

const NOTIFICATION = { type: 1, transaction_hash: '0xfeed', contract_address: '0xc0ffee', gas_used: 21_000 };

/** What the process is told, and what it says when that is done. */
export type Order = { open: Audience } | { prepare: number } | { publish: number } | { close: true };

let listeners: Listeners | undefined;
let prepared: string[] = [];

process.on('message', (order: Order) => {
  obey(order).then(
    (answer) => process.connected && process.send?.({ answer }),
    (error: unknown) => process.send?.({ error: error instanceof Error ? error.stack : String(error) }),
  );
});

async function obey(order: Order): Promise<unknown> {
  if ('open' in order) {
    listeners = new Listeners(order.open);
    return listeners.open();
  }
  if (!listeners) throw new Error('nobody listens yet');
  if ('prepare' in order) {
    prepared = await listeners.prepare(order.prepare);
    return prepared.length;
  }
  if ('publish' in order) return listeners.publish(prepared, order.publish);
  await listeners.close();
  process.disconnect?.();
  return undefined;
}
