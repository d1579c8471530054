import { parseArgs } from 'node:util';
import { print, type Table, tell } from './lib/report.ts';
import { onEachStores, type Stores, storesNamed } from './lib/world.ts';
import { checkDescriptors } from './realtime/descriptors.ts';
import { compare, type Result, type Scene } from './realtime/measure.ts';
import { profile } from './realtime/profile.ts';
import { onStage, type Stage } from './realtime/stage.ts';

const PAIRS = 3;
const DELIVERIES = 50_000;
const DELIVERIES_PER_SECOND = 20_000;
/** Of those that follow a transaction of their own. */
const EACH = 1_000;
const EACH_PER_SECOND = 500;
const WEBHOOKS = 250;
const WEBHOOKS_PER_SECOND = 50;

/** What is measured of it all. */
interface Chosen {
  pairs?: number;
  scenes?: readonly string[] | undefined;
  /** Pieces of the titles of contenders; all by default. */
  titles?: readonly string[] | undefined;
}

type MeasureScene = (stage: Stage, pairs: number) => Promise<Table[]>;

const SCENES: Record<string, MeasureScene> = {
  '1000': (stage, pairs) => toAll(stage, pairs, 1_000),
  '5000': (stage, pairs) => toAll(stage, pairs, 5_000),
  each: toEach,
  webhook: fromWebhook,
};

/** One event to many, events each to one, and the way from the webhook: the product on each of the stores beside its peers. */
export async function measureRealtime(
  kinds: readonly Stores[],
  { pairs = PAIRS, scenes = Object.keys(SCENES), titles }: Chosen = {},
): Promise<Table[]> {
  const tables: Table[] = [];
  await onStage(kinds, titles, async (stage) => {
    for (const scene of scenes) {
      tell(`${scene} …`);
      const measure = SCENES[scene];
      if (measure === undefined) throw new Error(`no scene ${scene}: one of ${Object.keys(SCENES).join(', ')}`);
      tables.push(...(await measure(stage, pairs)));
    }
  });
  return tables;
}

async function toAll({ contenders, bare }: Stage, pairs: number, subscribers: number): Promise<Table[]> {
  checkDescriptors(subscribers);
  const publication = { count: DELIVERIES / subscribers, perSecond: DELIVERIES_PER_SECOND / subscribers };
  const scene: Scene = { subscribers, each: false, pairs, publication, warmUp: publication };
  return [toTable(`one event to ${subscribers}`, await compare(contenders, bare, scene))];
}

async function toEach({ contenders, bare, behindKafka }: Stage, pairs: number): Promise<Table[]> {
  const publication = { count: EACH, perSecond: EACH_PER_SECOND };
  const scene: Scene = { subscribers: EACH, each: true, pairs, publication, warmUp: publication };
  const all = behindKafka ? [...contenders, behindKafka.bare] : contenders;
  return [toTable(`${EACH} events each to one`, await compare(all, bare, scene))];
}

async function fromWebhook({ behindKafka }: Stage, pairs: number): Promise<Table[]> {
  if (!behindKafka) return [];
  const publication = { count: WEBHOOKS, perSecond: WEBHOOKS_PER_SECOND };
  const scene: Scene = { subscribers: 1, each: false, pairs, publication, warmUp: publication };
  return [toTable('from the webhook to one', await compare([behindKafka.product], behindKafka.bare, scene))];
}

function toTable(title: string, results: readonly Result[]): Table {
  return {
    head: [title, 'CPU a delivery, µs', '× bare', 'of the pairs', 'p50, ms', '× bare', 'p99, ms', 'idle, ms/s'],
    rows: results.map(({ title: name, cpuUs, ratio, ratios, p50, p50Ratio, p99, idleMs }) => [
      name,
      cpuUs.toFixed(1),
      ratio.toFixed(2),
      `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
      p50.toFixed(1),
      p50Ratio.toFixed(2),
      p99.toFixed(1),
      idleMs.toFixed(0),
    ]),
  };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true },
      pairs: { type: 'string', default: `${PAIRS}` },
      contender: { type: 'string', multiple: true },
      scene: { type: 'string', multiple: true },
      profile: { type: 'string' },
    },
  });
  const stores = storesNamed(values.stores);
  if (values.profile === 'sse' || values.profile === 'ws') {
    const transport = values.profile;
    await onEachStores(stores, async (world) => (await profile(world, transport)).forEach(print));
  } else {
    const { scene: scenes, contender: titles } = values;
    (await measureRealtime(stores, { pairs: Number(values.pairs), scenes, titles })).forEach(print);
  }
}
