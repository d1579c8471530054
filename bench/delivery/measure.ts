import { setTimeout as delay } from 'node:timers/promises';
import { Agent } from 'undici';
import { clientToken, readDemoFile, type Server } from '../lib/product.ts';
import { percentile } from '../lib/statistics.ts';
import { notifyAll, register } from './notify.ts';
import { subscribe } from './subscriber.ts';

const LAST_DELIVERY_MS = 10_000;
const SETTLE_MS = 500;

export interface DeliveryEffort {
  notifications: number;
  perSecond: number;
  subscribers: number;
}

/** Milliseconds from the webhook's 200 to the receipt, over all subscribers; negative where the event was faster. */
export interface Delivery {
  p50: number;
  p99: number;
  highest: number;
}

/** Notifies at an even rate while subscribers listen; fails unless each of them receives each update once. */
export async function deliver(product: Server, dataDir: string, effort: DeliveryEffort): Promise<Delivery> {
  const { notifications, perSecond, subscribers } = effort;
  const demo = readDemoFile(dataDir);
  const { url } = product;
  const token = await clientToken(url, demo);
  const ids = await register(url, token, notifications);
  const received: { id: string; at: number }[] = [];
  const dispatcher = new Agent();
  const onUpdate = (id: string, at: number) => void received.push({ id, at });
  const open = await Promise.all(
    Array.from({ length: subscribers }, () => subscribe({ url, token, dispatcher, onUpdate })),
  );
  // The first byte of a stream can come before the place in the log from which it delivers.
  await delay(SETTLE_MS);
  const answered = await notifyAll({ url, webhook: demo.webhook, ids, perSecond });
  const expected = notifications * subscribers;
  const deadline = performance.now() + LAST_DELIVERY_MS;
  while (received.length < expected && performance.now() < deadline) await delay(20);
  for (const subscriber of open) subscriber.stop();
  await dispatcher.destroy();
  if (received.length !== expected) throw new Error(incomplete(received, ids, subscribers));
  const latencies = received.map(({ id, at }) => at - (answered.get(id) ?? Number.NaN));
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99), highest: Math.max(...latencies) };
}

function incomplete(received: readonly { id: string }[], ids: readonly string[], subscribers: number): string {
  const times = Map.groupBy(received, ({ id }) => id);
  const faulty = ids.flatMap((id, index) => {
    const count = times.get(id)?.length ?? 0;
    return count === subscribers ? [] : [`notification ${index} by ${count}`];
  });
  return `not each update was received once by ${subscribers}: ${faulty.join(', ')}`;
}
