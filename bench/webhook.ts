import { parseArgs } from 'node:util';
import type { Effort } from './lib/pairs.ts';
import { print, type Table } from './lib/report.ts';
import { median } from './lib/statistics.ts';
import { emptyFolder, onAllStores, onEachStores, type Stores, storesNamed } from './lib/world.ts';
import { compare, type Result } from './webhook/measure.ts';
import { profile } from './webhook/profile.ts';

const EFFORT: Effort = { pairs: 5, requests: 40_000, warmUp: 40_000 };

/** Measures the webhook of the product beside bare servers that send to the same topics, all in one run. */
export async function measureWebhook(stores: readonly Stores[], effort: Effort = EFFORT): Promise<Table[]> {
  await using folder = await emptyFolder();
  const results: Result[] = [];
  await onAllStores(stores, async (worlds) => {
    const kafka = worlds.find((world) => world.stores === 'servers');
    if (!kafka) throw new Error('the bare servers need Kafka: --stores servers');
    results.push(...(await compare(worlds, kafka, folder.path, effort)));
  });
  return [speeds(results), aims(results)];
}

function speeds(results: readonly Result[]): Table {
  return {
    head: [
      'notifications into two topics, acks=all, 64 connections',
      'requests/s',
      '× coalescing',
      'of the pairs',
      'CPU, µs',
      'p50, ms',
      'p99, ms',
    ],
    rows: results.map((result) => [
      result.contender.title,
      result.perSecond.toFixed(0),
      median(result.speeds).toFixed(2),
      `${Math.min(...result.speeds).toFixed(2)} to ${Math.max(...result.speeds).toFixed(2)}`,
      result.cpuUs.toFixed(0),
      result.p50.toFixed(1),
      result.p99.toFixed(1),
    ]),
  };
}

function aims(results: readonly Result[]): Table {
  const [singly, coalescing] = results.slice(-2);
  if (!singly || !coalescing) throw new Error('the bare servers are the last two');
  const ofProduct = results.filter(({ contender }) => contender.title.startsWith('Portcullis'));
  const rows = ofProduct.map((result) => {
    const ofSingly = result.speeds.map((speed, index) => speed / (singly.speeds[index] ?? Number.NaN));
    const isEmbedded = result.contender.title.includes('embedded');
    const [most, least] = isEmbedded ? ['', ''] : ['at least 0.7', 'at least 2'];
    return [result.contender.title, median(result.speeds).toFixed(2), most, median(ofSingly).toFixed(2), least];
  });
  return { head: ['Portcullis', '× coalescing', 'aim', '× a send for each request', 'aim'], rows };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true },
      pairs: { type: 'string', default: `${EFFORT.pairs}` },
      requests: { type: 'string', default: `${EFFORT.requests}` },
      profile: { type: 'boolean', default: false },
    },
  });
  const stores = storesNamed(values.stores);
  const effort = { ...EFFORT, pairs: Number(values.pairs), requests: Number(values.requests) };
  if (values.profile) await onEachStores(stores, async (world) => (await profile(world, effort)).forEach(print));
  else (await measureWebhook(stores, effort)).forEach(print);
}
