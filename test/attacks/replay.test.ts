import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { impactOf, logEvents, startAttackHarness, type Tenant } from '../support/attacks/attack.ts';
import { EventReader } from '../support/graphql/event-reader.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { describeReal } from '../support/services/real.ts';

const EVENTS = 60;
const SUBSCRIPTIONS = 100;
const BASELINE_MS = 5_000;
/** The events of all subscriptions come after so long at the latest, or some subscription has ended. */
const ATTACK_MS = 240_000;
/** What a loaded machine adds to a process that nobody attacks, beyond the baseline of the same run. */
const MORE_MS = 1_500;
const MORE_MEBIBYTES = 500;
const EACH = Array.from({ length: 20 }, (_, at) => `e${at}: events(last: 1) { edges { node { cursor status } } }`);
const QUERY = `subscription { transactionUpdates(after: "0") { cursor transaction { id ${EACH.join(' ')} } } }`;

/** What a subscription has got. */
interface Attacked {
  cursors: number[];
  /** The codes of errors in the place of an event. */
  errors: string[];
  /** The code of the error that it has ended with. */
  end: string | undefined;
}

interface Told {
  data?: { transactionUpdates: { cursor: string } } | null;
  errors?: { extensions: { code: string } }[];
}

function take(attacked: Attacked, { data, errors }: Told): void {
  if (data) attacked.cursors.push(Number(data.transactionUpdates.cursor));
  for (const { extensions } of errors ?? []) attacked.errors.push(extensions.code);
}

const fresh = (): Attacked[] =>
  Array.from({ length: SUBSCRIPTIONS }, () => ({ cursors: [], errors: [], end: undefined }));

/** An attack that has begun; `stop` ends it. */
interface Attack {
  subscriptions: Attacked[];
  stop(): void;
}

async function overSocket(url: string, token: string): Promise<Attack> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  await once(socket, 'message');
  const subscriptions = fresh();
  socket.on('message', (data) => {
    const { id, type, payload } = JSON.parse(String(data));
    const attacked = subscriptions[id];
    if (type === 'next' && attacked) take(attacked, payload);
    else if (type === 'error' && attacked) attacked.end = payload[0].extensions.code;
  });
  for (const id of subscriptions.keys()) {
    socket.send(JSON.stringify({ type: 'subscribe', id: `${id}`, payload: { query: QUERY } }));
  }
  return { subscriptions, stop: () => socket.terminate() };
}

async function overSse(url: string, token: string): Promise<Attack> {
  const subscriptions = fresh();
  const stopping = new AbortController();
  const read = async (attacked: Attacked) => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      signal: stopping.signal,
      headers: { accept: 'text/event-stream', 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ query: QUERY }),
    });
    const reader = new EventReader(response);
    for (let event = await reader.next(); event?.event === 'next'; event = await reader.next()) {
      const told: Told = JSON.parse(event.data);
      if (told.data === undefined) attacked.end = told.errors?.[0]?.extensions.code;
      else take(attacked, told);
    }
  };
  for (const attacked of subscriptions) read(attacked).catch(() => undefined);
  return { subscriptions, stop: () => stopping.abort() };
}

type Begin = (url: string, tenants: readonly [Tenant, Tenant]) => Promise<Attack>[];

const ATTACKS: [what: string, begin: Begin][] = [
  ['one WebSocket', (url, [{ token }]) => [overSocket(url, token)]],
  ['server-sent events', (url, [{ token }]) => [overSse(url, token)]],
  [
    'WebSockets and server-sent events of two tenants',
    (url, [one, other]) => [overSocket(url, one.token), overSse(url, other.token)],
  ],
];

describeReal(['postgres', 'redis', 'kafka'], 'replays of many fields', () => {
  const target = beforeTests(startAttackHarness);
  beforeAll(async () => {
    for (const attacker of target.attackers) await logEvents(target, attacker, EVENTS);
    // The first requests load what later ones use.
    await impactOf(target, () => delay(BASELINE_MS));
  });

  it.each(ATTACKS)(
    'D6-24: replays over %s do not delay other requests, and deliver each event once or end as slow_consumer',
    async (_what, begin) => {
      const baseline = await impactOf(target, () => delay(BASELINE_MS));
      const subscriptions: Attacked[] = [];
      const impact = await impactOf(target, async () => {
        const attacks = await Promise.all(begin(target.gateways[0]?.baseUrl ?? '', target.attackers));
        subscriptions.push(...attacks.flatMap((attack) => attack.subscriptions));
        const until = performance.now() + ATTACK_MS;
        const isOpen = ({ cursors, end }: Attacked) => end === undefined && cursors.length < EVENTS;
        while (subscriptions.some(isOpen) && performance.now() < until) await delay(100);
        for (const attack of attacks) attack.stop();
      });
      process.stdout.write(`${JSON.stringify({ baseline, impact })}\n`);
      expect(impact.failed).toEqual([]);
      expect(impact.slowest).toBeLessThan(baseline.slowest + MORE_MS);
      expect(impact.loop).toBeLessThan(baseline.loop + MORE_MS);
      expect(impact.memory).toBeLessThan(baseline.memory + MORE_MEBIBYTES);
      for (const { cursors, errors, end } of subscriptions) {
        expect(errors).toEqual([]);
        expect(cursors).toEqual(cursors.map((_, at) => at + 1));
        if (cursors.length < EVENTS) expect(end).toBe('SLOW_CONSUMER');
      }
    },
  );
});
