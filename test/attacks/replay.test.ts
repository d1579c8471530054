import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { describeReal } from '../services/real.ts';
import { type AttackLab, impactOf, logEvents, startAttackLab, type Tenant } from './attack.ts';

const EVENTS = Number(process.env.EVENTS ?? 300);
const SUBS = Number(process.env.SUBS ?? 100);
const ALIASES = Array.from({ length: 20 }, (_, at) => `e${at}: events(last: 1) { edges { node { cursor status } } }`);
const QUERY = `subscription { transactionUpdates(after: "0") { cursor transaction { id ${ALIASES.join(' ')} } } }`;

interface Attacked {
  cursors: number[];
  errors: string[];
  ended: boolean;
}

async function sockets(
  url: string,
  token: string,
  query: string,
): Promise<{ all: Map<string, Attacked>; socket: WebSocket; bytes: () => number }> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  const all = new Map<string, Attacked>();
  let bytes = 0;
  const ack = Promise.withResolvers<void>();
  socket.on('message', (data) => {
    const text = String(data);
    bytes += text.length;
    if (text.includes('connection_ack')) return ack.resolve();
    const message = JSON.parse(text);
    const one = all.get(message.id);
    if (!one) return;
    if (message.type === 'next') {
      one.cursors.push(Number(message.payload.data?.transactionUpdates?.cursor ?? -1));
      if (message.payload.errors) one.errors.push(message.payload.errors[0].extensions.code);
    } else if (message.type === 'error') {
      one.errors.push(message.payload[0].extensions.code);
      one.ended = true;
    } else if (message.type === 'complete') one.ended = true;
  });
  socket.on('close', (code) => console.log('closed', code));
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  await ack.promise;
  for (let i = 0; i < SUBS; i++) {
    const id = `${i}`;
    all.set(id, { cursors: [], errors: [], ended: false });
    socket.send(JSON.stringify({ type: 'subscribe', id, payload: { query } }));
  }
  return { all, socket, bytes: () => bytes };
}

describeReal(['postgres', 'redis', 'kafka'], 'replays', () => {
  let target: AttackLab;
  beforeAll(async () => {
    target = await startAttackLab();
  });
  afterAll(() => target?.[Symbol.asyncDispose]());

  it('D6-24: x', async () => {
    const [attacker] = target.attackers as [Tenant, Tenant];
    console.log('events', await logEvents(target, attacker, EVENTS));
    console.log('baseline', await impactOf(target, () => delay(3_000)));
    const query = process.env.SIMPLE ? 'subscription { transactionUpdates(after: "0") { cursor } }' : QUERY;
    const impact = await impactOf(target, async () => {
      const { all, socket, bytes } = await sockets(target.gateways[0]?.baseUrl ?? '', attacker.token, query);
      const from = performance.now();
      for (;;) {
        await delay(200);
        const open = [...all.values()].filter((one) => !one.ended && one.cursors.length < EVENTS);
        const errors: Record<string, number> = {};
        for (const one of all.values()) for (const e of one.errors) errors[e] = (errors[e] ?? 0) + 1;
        if (Math.round((performance.now() - from) / 1000) % 10 < 2)
          console.log(
            Math.round(performance.now() - from),
            'open',
            open.length,
            'cursors',
            [...all.values()].reduce((s, o) => s + o.cursors.length, 0),
            errors,
            bytes(),
          );
        if (open.length === 0 || performance.now() - from > 120_000) break;
      }
      socket.terminate();
    });
    console.log('attack', impact);
    expect(1).toBe(1);
  }, 300_000);
});
