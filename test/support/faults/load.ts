import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { vi } from 'vitest';
import { SINGLE } from '../user-migrations/calls.ts';
import type { Cluster } from './cluster.ts';

const WEBHOOK = '/v2/webhooks/custodial';
const CONNECTIONS = 16;
const LANES = 12;
/** Of so many lanes one migrates users, and one notifies of ids that are registered afterwards. */
const USERS_EVERY = 6;
const STRANGERS_EVERY = 3;
const STATUSES = [1, 2, 3];
const AGAIN_AFTER_MS = 50;
const ANSWER_TIMEOUT_MS = 8_000;
const MAX_WRONG = 5;
const JSON_BODY = { 'content-type': 'application/json' };

/** What clients have sent and been told. */
export interface Journal {
  /** Transactions of which every notification was answered 200, by whether they had been registered before. */
  told: { registered: string[]; strangers: string[] };
  /** The wallet addresses of users whose migration was answered 201. */
  users: string[];
  /** When the last answer came that acknowledged a transaction or user, by the id or address; ms of performance.now(). */
  toldAtMs: Map<string, number>;
  /** By status; `unanswered` where the connection gave nothing, `cut` where it gave a part. */
  answers: Record<string, number>;
  /** Answers that no fault of a server explains, the first few. */
  wrong: string[];
  /** The correlation ids of the answers of 500 and more. */
  failed: string[];
}

export interface Load {
  journal: Journal;
  /** How many notifications have been answered 200. */
  acknowledged(): number;
  /** Lets every lane finish what it has begun, however often it must ask. */
  stop(): Promise<void>;
  /** Ends every lane with what it has. */
  abandon(): void;
}

interface Call {
  path: string;
  headers: Record<string, string>;
  body: string;
}

interface LoadDependencies {
  cluster: Cluster;
  token: string;
  /** Ids that are registered and not yet notified. */
  registered: readonly string[];
  /** How long a lane rests after each transaction or user. */
  restMs: number;
}

/**
 * Notifies of one transaction after the other in several lanes, Started, InProgress and Done, each until it is answered
 * 200, by way of all replicas that listen; migrates users beside that.
 */
export function startLoad({ cluster, token, registered, restMs }: LoadDependencies): Load {
  const doors = cluster.replicas
    .filter(({ role }) => role !== 'worker')
    .map(({ baseUrl }) => ({ baseUrl, agent: new Agent({ keepAlive: true, maxSockets: CONNECTIONS }) }));
  const journal: Journal = {
    told: { registered: [], strangers: [] },
    users: [],
    toldAtMs: new Map(),
    answers: {},
    wrong: [],
    failed: [],
  };
  const bearer = { ...JSON_BODY, authorization: `Bearer ${token}` };
  let acknowledged = 0;
  let next = 0;
  let isStopping = false;
  let isAbandoned = false;

  /** Asks one door after the other until it has an answer that is not for now. */
  async function untilAnswered(lane: number, call: Call): Promise<Answer> {
    for (let attempt = lane; ; attempt += 1) {
      const door = doors[attempt % doors.length];
      if (!door) throw new Error('nobody listens');
      const answer = await ask(door, call);
      const name = typeof answer === 'string' ? answer : `${answer.status}`;
      journal.answers[name] = (journal.answers[name] ?? 0) + 1;
      if (typeof answer !== 'string') {
        if (answer.status < 500) return answer;
        journal.failed.push(answer.correlationId);
      }
      if (isAbandoned) throw new Error('the load is given up');
      await delay(AGAIN_AFTER_MS);
    }
  }

  function note(wrong: string): void {
    if (journal.wrong.length < MAX_WRONG) journal.wrong.push(wrong);
  }

  async function expectIn(statuses: number[], lane: number, call: Call): Promise<string> {
    const { status, text } = await untilAnswered(lane, call);
    if (!statuses.includes(status)) note(`${call.path} ${status} ${text}`);
    return text;
  }

  async function notify(lane: number, id: string): Promise<void> {
    for (const status of STATUSES) {
      await expectIn([200], lane, notification(cluster, id, status));
      acknowledged += 1;
      journal.toldAtMs.set(id, performance.now());
    }
  }

  async function register(lane: number, id: string): Promise<void> {
    const query = `mutation ($input: RegisterTransactionInput!) { registerTransaction(input: $input) { __typename } }`;
    const variables = { input: { id, collection: 'TOKEN_TRANSACTIONS', type: 1 } };
    const body = JSON.stringify({ query, variables });
    for (;;) {
      const text = await expectIn([200], lane, { path: '/graphql', headers: bearer, body });
      if (text.includes('"Transaction"')) return;
      // The mutation's own error in an answer that arrived: the database is away.
      if (!text.includes('INTERNAL_SERVER_ERROR')) return note(text);
      await delay(AGAIN_AFTER_MS);
    }
  }

  async function migrateUser(lane: number): Promise<void> {
    const wallet = `0x${randomUUID()}`;
    const body = JSON.stringify({ wallet_address: wallet, email: `${wallet}@example.com` });
    const headers = { ...bearer, 'idempotency-key': randomUUID() };
    await expectIn([200, 201], lane, { path: SINGLE, headers, body });
    journal.users.push(wallet);
    journal.toldAtMs.set(wallet, performance.now());
  }

  async function lane(number: number): Promise<void> {
    while (!isStopping) {
      if (number % USERS_EVERY === 1) {
        await migrateUser(number);
      } else if (number % STRANGERS_EVERY === 2) {
        const id = randomUUID();
        await notify(number, id);
        await register(number, id);
        journal.told.strangers.push(id);
      } else {
        const id = registered[next];
        if (id === undefined) throw new Error('more transactions must be registered before');
        next += 1;
        await notify(number, id);
        journal.told.registered.push(id);
      }
      if (restMs > 0) await delay(restMs);
    }
  }

  const lanes = Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
  lanes.catch(() => undefined);
  return {
    journal,
    acknowledged: () => acknowledged,
    async stop() {
      isStopping = true;
      await lanes;
      for (const { agent } of doors) agent.destroy();
    },
    abandon() {
      isStopping = true;
      isAbandoned = true;
    },
  };
}

/** Resolves when each door has taken a notification: a broker that has just started may be slower at first than a sender waits. */
export async function warmUp(cluster: Cluster): Promise<void> {
  for (const { baseUrl } of cluster.replicas.filter(({ role }) => role !== 'worker')) {
    const { path, headers, body } = notification(cluster, randomUUID(), 1);
    await vi.waitFor(
      async () => {
        const { status } = await fetch(`${baseUrl}${path}`, { method: 'POST', headers, body });
        if (status !== 200) throw new Error(`a notification is answered ${status}`);
      },
      { interval: AGAIN_AFTER_MS },
    );
  }
}

function notification({ webhook }: Cluster, id: string, status: number): Call {
  const at = new Date(Date.UTC(2026, 0, 1) + status * 1_000).toISOString();
  const members = { id, type: 1, status, created_at: at, updated_at: at, transaction_hash: `0x${status}` };
  return { path: WEBHOOK, headers: { ...JSON_BODY, authorization: webhook }, body: JSON.stringify(members) };
}

interface Answer {
  status: number;
  correlationId: string;
  text: string;
}

type Asked = Answer | 'unanswered' | 'cut';

function ask({ baseUrl, agent }: { baseUrl: string; agent: Agent }, { path, headers, body }: Call): Promise<Asked> {
  const { promise, resolve } = Promise.withResolvers<Asked>();
  const call = request(`${baseUrl}${path}`, {
    method: 'POST',
    agent,
    headers: { ...headers, 'content-length': Buffer.byteLength(body) },
    timeout: ANSWER_TIMEOUT_MS,
  });
  call.once('timeout', () => call.destroy());
  call.once('error', () => resolve('unanswered'));
  call.once('response', async (response) => {
    try {
      const text = (await response.toArray()).join('');
      const { statusCode: status = 0, complete } = response;
      resolve(complete ? { status, correlationId: `${response.headers['x-correlation-id']}`, text } : 'cut');
    } catch {
      resolve('cut');
    }
  });
  call.end(body);
  return promise;
}
