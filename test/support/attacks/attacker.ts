import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Demo } from '../../../src/app/demo/demo.ts';
import { openSocket, request } from '../gateway/raw.ts';
import type { Tenant } from './attack.ts';

/** What is attacked: the gateways, and the clients and supervisors that they know. */
export interface Target {
  gatewayUrls: readonly string[];
  demo: Demo;
}

/** How many requests were answered with a status, are still `open`, or were `closed` without an answer. */
export type Answers = Record<string, number>;

/** Whether the connection is kept after so long, as a slow client keeps it; and the address it comes from. */
interface SendOptions {
  from?: string;
  heldMs?: number;
}

const ANSWERED_WITHIN_MS = 60_000;
const JSON_TYPE = { 'Content-Type': 'application/json' };

/** Sends the requests of one attack to the gateways in turn, and counts their answers. Disposing closes its connections. */
export class Attacker {
  readonly target: Target;
  readonly tenant: Tenant;
  readonly answers: Answers = {};
  readonly #open = new Set<{ destroy(): unknown }>();
  #sent = 0;

  constructor(target: Target, tenant: Tenant) {
    this.target = target;
    this.tenant = tenant;
  }

  get bearer(): Record<string, string> {
    return { Authorization: `Bearer ${this.tenant.token}` };
  }

  /** The gateway whose turn it is. */
  get nextUrl(): string {
    const { gatewayUrls } = this.target;
    this.#sent += 1;
    return gatewayUrls[this.#sent % gatewayUrls.length] ?? '';
  }

  count(answer: string | number): void {
    this.answers[answer] = (this.answers[answer] ?? 0) + 1;
  }

  /** Sends bytes on a connection of their own. */
  async send(bytes: string | Buffer, { from, heldMs }: SendOptions = {}): Promise<void> {
    const socket = openSocket(this.nextUrl, from === undefined ? {} : { from });
    this.#open.add(socket);
    let status = heldMs === undefined ? 'unanswered' : 'open';
    const answered = new Promise<void>((resolve) => {
      socket.on('error', () => undefined).on('close', () => resolve());
      socket.once('data', (data) => {
        status = /^HTTP\/1\.1 (\d+)/.exec(String(data))?.[1] ?? 'no HTTP';
        resolve();
      });
    });
    socket.once('close', () => {
      if (!/\d/.test(status)) status = 'closed';
      this.#open.delete(socket);
    });
    socket.write(bytes, 'latin1');
    await Promise.race([answered, delay(heldMs ?? ANSWERED_WITHIN_MS, undefined, { ref: false })]);
    this.count(status);
    if (heldMs === undefined) socket.destroy();
    else socket.resume();
  }

  /** Opens a WebSocket of GraphQL whose token is accepted, and sends these messages. Answers are counted by their type or code. */
  async socket(messages: readonly (string | object)[]): Promise<void> {
    const socket = new WebSocket(`${this.nextUrl.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    this.#open.add({ destroy: () => socket.terminate() });
    socket.on('error', () => undefined);
    await Promise.race([once(socket, 'open'), once(socket, 'close')]).catch(() => undefined);
    if (socket.readyState !== socket.OPEN) return this.count('refused');
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: this.bearer.Authorization } }));
    await Promise.race([once(socket, 'message'), once(socket, 'close')]);
    socket.on('message', (data) => {
      const text = String(data);
      this.count(/"code":"(\w+)"/.exec(text)?.[1] ?? /"type":"(\w+)"/.exec(text)?.[1] ?? '');
    });
    socket.on('close', (code) => this.count(`closed ${code}`));
    for (const message of messages) socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** Ends its connections, open and future ones of this attack alike. */
  [Symbol.dispose](): void {
    for (const one of this.#open) one.destroy();
    this.#open.clear();
  }
}

/** A request with a JSON body; a `length` over that of the text announces more than is sent. */
export function post(path: string, headers: Record<string, string>, body: string | object, length?: number): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return (
    request('POST', path, { ...JSON_TYPE, 'Content-Length': `${length ?? Buffer.byteLength(text)}`, ...headers }) + text
  );
}

/** Runs so many of something, at most some of them at once. */
export async function many(count: number, one: (at: number) => Promise<void>, atOnce = 200): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
}

/** An address of one of twenty networks of this machine. */
export function networkOf(at: number): string {
  return `127.${1 + (at % 20)}.${1 + (Math.floor(at / 20) % 200)}.1`;
}
