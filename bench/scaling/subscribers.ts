import { setTimeout as delay } from 'node:timers/promises';
import { SIGNING_SECRET } from '../gateway/contenders.ts';
import { callerTokens } from '../lib/callers.ts';
import { memoryMb } from '../lib/process-stats.ts';
import { startProduct } from '../lib/product.ts';
import { tell } from '../lib/report.ts';
import { deleteTopics } from '../lib/topics.ts';
import { seedWorld } from '../lib/world.ts';
import { contendersOf, startReplica } from '../realtime/contenders.ts';
import { checkDescriptors } from '../realtime/descriptors.ts';
import { AudienceProcess } from '../realtime/measure.ts';
import { insertCallers } from './insert-callers.ts';
import { type Curve, headOf, measureSizes, rowsOf } from './rounds.ts';

const NAMES = ['CPU of the gateway an event, µs', 'a delivery, µs'];
/** The memory of fewer is lost in what the heap grows by with its first load. */
const LEAST_FOR_MEMORY = 5_000;
const DELIVERIES = 20_000;
const MOST_EVENTS = 100;
const LEAST_EVENTS = 5;
const DELIVERIES_PER_SECOND = 10_000;
const MOST_PER_SECOND = 50;

interface Listening {
  pid: number;
  audience: AudienceProcess;
  bytes: number | undefined;
}

/** Events to so many subscribers over SSE: a gateway and a tenant for each audience, which all are there all the time. */
export const measureSubscribers: Curve = async (open, { rounds, subscribers }) => {
  checkDescriptors(Math.max(...subscribers));
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await open());
  await seedWorld(world, 'limits');
  stack.defer(() => deleteTopics(world));
  await insertCallers(world, { clients: subscribers.length, tenants: subscribers.length });
  const env = { JWT_SECRET_USER: SIGNING_SECRET };
  const product = stack.adopt(await startProduct({ ...world, env }), (server) => server.stop());
  const { sse } = await contendersOf(world, product);
  const count = subscribers.length;
  const tokens = callerTokens(sse.audience.token ?? '', SIGNING_SECRET, { clients: count, tenants: count });
  const listening = new Map<number, Listening>();
  for (const [index, size] of subscribers.entries()) {
    tell(`${size.toLocaleString('en')} subscribe …`);
    const { server, audience } = await startReplica(world, sse, env);
    stack.defer(() => server.stop());
    await delay(1_000);
    const before = memoryMb(server.pid).anonymous;
    const own = { ...audience, token: tokens[index], subscribers: size, each: false };
    const opened = stack.use(await AudienceProcess.open(own));
    await delay(1_000);
    const taken = ((memoryMb(server.pid).anonymous - before) * 1e6) / size;
    const bytes = size < LEAST_FOR_MEMORY ? undefined : taken;
    listening.set(size, { pid: server.pid, audience: opened, bytes });
  }
  const title = 'subscribers of all updates';
  const measured = await measureSizes(title, subscribers, rounds, async (size) => {
    const { pid, audience } = listening.get(size) as Listening;
    const events = Math.min(MOST_EVENTS, Math.max(LEAST_EVENTS, DELIVERIES / size));
    const perSecond = Math.min(MOST_PER_SECOND, DELIVERIES_PER_SECOND / size);
    const { cpuUs } = await audience.round({ pid }, { count: events, perSecond });
    return { [NAMES[0] ?? '']: cpuUs * size, [NAMES[1] ?? '']: cpuUs };
  });
  const memory = [...listening.values()].map(({ bytes }) => (bytes === undefined ? '–' : (bytes / 1e3).toFixed(0)));
  return [
    {
      head: [...headOf(title, NAMES), 'memory of an idle one, kB'],
      rows: rowsOf(measured, NAMES).map((cells, index) => [...cells, memory[index] ?? '–']),
    },
  ];
};
