import { randomInt, randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { Demo } from '../../../src/app/demo/demo.ts';
import type { Running } from './process.ts';

/** What was sent to the webhook, and whether a 200 came back. */
export interface SentNotification {
  correlationId: string;
  body: Buffer;
  isAcknowledged: boolean;
}

/** Everything that was sent, over all rounds. */
export interface Journal {
  notifications: SentNotification[];
  /** The correlation ids of all requests, and of those whose whole answer arrived. */
  sent: Set<string>;
  answered: Set<string>;
}

interface LoadOptions {
  instance: Running;
  demo: Demo;
  webhook: { username: string; password: string };
  /** Transactions that are registered; every fifth notification is of another id. */
  registered: readonly string[];
  journal: Journal;
}

interface Call {
  method: 'GET' | 'POST';
  path: string;
  headers?: Record<string, string>;
  body?: Buffer;
}

const CONNECTIONS = 8;
const CLIENTS = 8;
const STRANGER_EVERY = 5;
const MIX = 4;

export function newJournal(): Journal {
  return { notifications: [], sent: new Set(), answered: new Set() };
}

/** Sends webhook posts, account pages and what is refused over kept connections until the instance dies. */
export async function loadUntilDeath({ instance, demo, webhook, registered, journal }: LoadOptions): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const send = sender(instance.baseUrl, agent, journal);
  const basic = `Basic ${Buffer.from(`${webhook.username}:${webhook.password}`).toString('base64')}`;
  const token = await tokenOf(demo, send);

  async function notify(): Promise<boolean> {
    const correlationId = randomUUID();
    const body = notification(registered);
    const sent: SentNotification = { correlationId, body, isAcknowledged: false };
    journal.notifications.push(sent);
    const headers = { authorization: basic, 'content-type': 'application/json' };
    const answer = await send(correlationId, { method: 'POST', path: '/v2/webhooks/custodial', headers, body });
    sent.isAcknowledged = answer?.status === 200;
    return answer !== undefined;
  }

  async function list(): Promise<boolean> {
    const headers = { authorization: `Bearer ${token}` };
    return (await send(randomUUID(), { method: 'GET', path: '/v1/accounts?limit=5', headers })) !== undefined;
  }

  async function refused(turn: number): Promise<boolean> {
    const path = turn % (2 * MIX) < MIX ? '/v1/accounts' : '/nowhere';
    return (await send(randomUUID(), { method: 'GET', path })) !== undefined;
  }

  function ask(turn: number): Promise<boolean> {
    if (turn % MIX === 0) return list();
    return turn % MIX === 1 ? refused(turn) : notify();
  }

  async function client(number: number): Promise<void> {
    for (let turn = number; await ask(turn); turn += 1);
  }

  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
  agent.destroy();
}

function notification(registered: readonly string[]): Buffer {
  const isStranger = randomInt(STRANGER_EVERY) === 0;
  const id = isStranger ? `stranger-${randomInt(50)}` : registered[randomInt(registered.length)];
  const at = new Date(Date.UTC(2026, 0, 1) + randomInt(10_000)).toISOString();
  const members = { id, type: 1, status: 1 + randomInt(5), transaction_hash: `0x${randomInt(1_000)}` };
  return Buffer.from(JSON.stringify({ ...members, created_at: at, updated_at: at }));
}

type Answer = { status: number | undefined; text: string } | undefined;

/** Sends requests; an answer that did not arrive whole is undefined. */
function sender(baseUrl: string, agent: Agent, journal: Journal) {
  return async function send(correlationId: string, { method, path, headers, body }: Call): Promise<Answer> {
    journal.sent.add(correlationId);
    const { promise, resolve } = Promise.withResolvers<Answer>();
    const call = request(`${baseUrl}${path}`, {
      method,
      agent,
      headers: { ...headers, 'x-correlation-id': correlationId, ...(body ? { 'content-length': body.length } : {}) },
    });
    call.once('error', () => resolve(undefined));
    call.once('response', async (response) => {
      try {
        const text = (await response.toArray()).join('');
        resolve(response.complete ? { status: response.statusCode, text } : undefined);
      } catch {
        resolve(undefined);
      }
    });
    call.end(body);
    const answer = await promise;
    if (answer !== undefined) journal.answered.add(correlationId);
    return answer;
  };
}

async function tokenOf({ client }: Demo, send: ReturnType<typeof sender>): Promise<string> {
  const body = Buffer.from(JSON.stringify({ grant_type: 'client_credentials', ...client }));
  const headers = { 'content-type': 'application/json' };
  const answer = await send(randomUUID(), { method: 'POST', path: '/v2/oauth/token', headers, body });
  return answer ? JSON.parse(answer.text).access_token : '';
}
