import { setTimeout as delay } from 'node:timers/promises';
import { type RecordedName, startPeer, startRecorded, startUpstream } from '../gateway/contenders.ts';
import { compare as compareGateway } from '../gateway/measure.ts';
import { onFilledWorld } from '../graphql/fill.ts';
import { compare as compareGraphql } from '../graphql/measure.ts';
import type { LatencyEffort } from '../lib/latency.ts';
import type { Effort, Selection, Summary } from '../lib/pairs.ts';
import { memoryMb } from '../lib/process-stats.ts';
import type { Server } from '../lib/product.ts';
import { tell } from '../lib/report.ts';
import { idleCpuOf } from '../lib/round.ts';
import { median } from '../lib/statistics.ts';
import { deleteTopics, migrateWorld } from '../lib/topics.ts';
import { emptyFolder, onAllStores, seedWorld, type World } from '../lib/world.ts';
import { checkDescriptors } from '../realtime/descriptors.ts';
import { compare as compareRealtime } from '../realtime/measure.ts';
import { onStage } from '../realtime/stage.ts';
import { SETTLE_MS, startRole } from '../rest.ts';
import { startOnce } from '../start/measure.ts';
import { measureStarts } from '../start.ts';
import { compare as compareTokens } from '../tokens/measure.ts';
import { compare as compareWebhook } from '../webhook/measure.ts';
import type { Measured, Question } from './rows.ts';

/** How many pairs, and instead of a question's own number how many requests a round and a warm-up have. */
export interface Size {
  pairs: number;
  requests?: number | undefined;
  /** What `AT_A_SHARE` also measures, with the same processes. */
  latency?: LatencyEffort | undefined;
  /** Those that have latencies, in the setting that has them, and no others. */
  onlyLatency?: boolean;
}

const PRODUCT = /^Portcullis/;
const IN_THE_PROCESS = /^Portcullis.* in the process$/;
const IN_PRODUCTION = /^Portcullis.* in production$/;
const SUBSCRIBERS = 1_000;
const EVENTS = { count: 40, perSecond: 20 };
const REST_MS = 10_000;
/** Those that start and rest beside the product; each of them also with a record of each request. */
const GATEWAYS: readonly RecordedName[] = ['bare', 'fastify', 'express'];

/** Whose latencies are measured: the product's in production, and those of programs that keep as much. */
const KEEPS_RECORDS = /^Portcullis|record/;
const LATENCY_ROUNDS = 3;

/** What is asked, in order. */
export const QUESTIONS = {
  'proxied-get': proxiedGet,
  'graphql-page': graphqlPage,
  token,
  webhook,
  events,
  starts,
  rest,
} satisfies Record<string, (size: Size) => Promise<Question[]>>;

/** The questions that have latencies at a share of the load. */
export const AT_A_SHARE = ['proxied-get', 'graphql-page', 'token', 'webhook'] as const;

/** The size with latencies as well, or with nothing but what they need. */
export function withLatency(size: Size, onlyLatency: boolean): Size {
  const { pairs, requests } = size;
  const length = requests === undefined ? { requests: 5_000, seconds: 5 } : { requests, seconds: 0 };
  const rounds = Math.min(pairs, LATENCY_ROUNDS);
  const latency = { of: KEEPS_RECORDS, rounds, ...length, mostSeconds: 15 };
  return { ...size, ...(onlyLatency ? { pairs: rounds } : {}), latency, onlyLatency };
}

function effortOf({ pairs, requests: given, latency }: Size, requests: number, warmUp: number): Effort {
  return { pairs, requests: given ?? requests, warmUp: given ?? warmUp, latency };
}

function selectionOf({ onlyLatency }: Size): Selection {
  return { base: PRODUCT, only: onlyLatency ? KEEPS_RECORDS : undefined };
}

function byCpu({ contender: { title }, cpuUs, ratios, latency }: Summary & { contender: { title: string } }): Measured {
  return { title, figure: cpuUs, ratios, latency };
}

/** The product in each of its two settings beside the same peers, each in pairs of its own. */
async function proxiedGet(size: Size): Promise<Question[]> {
  const questions: Question[] = [];
  for (const [setting, base, without] of [
    ['limits counted in the process', IN_THE_PROCESS, / in production$| token new$/],
    ['in production', IN_PRODUCTION, / in the process$| token new$/],
  ] as const) {
    const latency = base === IN_PRODUCTION ? size.latency : undefined;
    if (size.onlyLatency && base !== IN_PRODUCTION) continue;
    const effort = effortOf({ ...size, latency }, 6_000, 15_000);
    const results = await onServers((world, folder) =>
      compareGateway([world], folder, effort, { ...selectionOf(size), base, without }),
    );
    questions.push(question(`proxied GET, ${setting}: µs of CPU`, results.map(byCpu), base));
  }
  return questions;
}

async function graphqlPage(size: Size): Promise<Question[]> {
  const questions: Question[] = [];
  await onFilledWorld(async (world) => {
    for (const { connections, results } of await compareGraphql(
      world,
      [16],
      effortOf(size, 1_000, 1_500),
      selectionOf(size),
    )) {
      questions.push(question(`GraphQL page, ${connections} connections: µs of CPU`, results.map(byCpu)));
    }
  });
  return questions;
}

async function token(size: Size): Promise<Question[]> {
  const results = await onServers((world, folder) =>
    compareTokens([world], folder, effortOf(size, 3_000, 15_000), selectionOf(size)),
  );
  return [question('token, client credentials: µs of CPU', results.map(byCpu))];
}

/** By the time of a request at full load, the inverse of requests a second, so that less is better here too. */
async function webhook(size: Size): Promise<Question[]> {
  const results = await onServers((world, folder) =>
    compareWebhook([world], world, folder, effortOf(size, 15_000, 15_000), selectionOf(size)),
  );
  const measured = results.map(({ contender: { title }, perSecond, speeds, ratios, latency }) => ({
    title,
    figure: 1e6 / perSecond,
    ratios: speeds.map((speed) => 1 / speed),
    cpuRatios: ratios,
    latency,
  }));
  return [question('webhook into two topics, 64 connections: µs of time', measured)];
}

/** The bare server and the floor of the WebSocket send event streams. */
async function events({ pairs }: Size): Promise<Question[]> {
  checkDescriptors(SUBSCRIBERS);
  const scene = { subscribers: SUBSCRIBERS, each: false, pairs, publication: EVENTS, warmUp: EVENTS };
  const questions: Question[] = [];
  await onStage(['servers'], undefined, async ({ contenders, bare }) => {
    const titled = (title: RegExp) => [...contenders, bare].filter((contender) => title.test(contender.title));
    for (const [name, products, others] of [
      ['SSE', titled(/Kafka, SSE$/), titled(/node:http SSE|^SSE of/)],
      ['WebSocket', titled(/Kafka, graphql-transport-ws$/), titled(/node:http SSE|^graphql-ws/)],
    ] as const) {
      const [product] = products;
      if (!product) throw new Error(`the product does not deliver over ${name}`);
      const results = await compareRealtime(others, product, scene);
      const measured = [...others, product].map(({ title }) => {
        const { cpuUs = Number.NaN, ratios = [] } = results.find((result) => result.title === title) ?? {};
        return { title, figure: cpuUs, ratios };
      });
      questions.push(question(`${name}, one event to ${SUBSCRIBERS}: µs of CPU a delivery`, measured));
    }
  });
  return questions;
}

async function starts({ pairs }: Size): Promise<Question[]> {
  const embedded = await measureStarts(['embedded'], { starts: pairs, idleMs: 0 });
  return [
    ...embedded.map(({ title, starts: measured }) => {
      const bare = measured.map(({ bareMs = Number.NaN }) => bareMs);
      const product = inSeconds(
        'Portcullis',
        measured.map(({ pageMs }) => pageMs),
      );
      return { name: `${title}: s`, product, others: [inSeconds('bare script on PGlite', bare)] };
    }),
    await onServers((world, folder) => startsOnServers(world, folder, pairs)),
  ];
}

async function startsOnServers(world: World, folder: string, pairs: number): Promise<Question> {
  await seedWorld(world);
  const options = { ...world, compileCache: `${folder}/compiled`, idleMs: 0 };
  await startOnce(options);
  const product: number[] = [];
  const others = new Map<string, number[]>();
  for (let pair = 0; pair < pairs; pair++) {
    product.push((await startOnce(options)).healthMs);
    for (const start of gatewayStarts(world, folder, 'http://127.0.0.1:1')) {
      const from = performance.now();
      const { title, server } = await start();
      others.set(title, [...(others.get(title) ?? []), performance.now() - from]);
      await server.stop();
    }
  }
  return {
    name: 'PostgreSQL, Redis, Kafka, later start to GET /health: s',
    product: inSeconds('Portcullis', product),
    others: [...others].map(([title, measured]) => inSeconds(title, measured)),
  };
}

function inSeconds(title: string, ms: readonly number[]): Measured {
  return { title, figure: median(ms) / 1_000, ratios: ms };
}

/** Memory and CPU of processes that are asked nothing: all side by side, in the same spans of time. */
async function rest({ pairs }: Size): Promise<Question[]> {
  return onServers(async (world, folder) => {
    await using open = new AsyncDisposableStack();
    const started = async <Started extends { server: Server }>(starting: Promise<Started>) => {
      const one = await starting;
      open.defer(() => one.server.stop());
      return one;
    };
    await seedWorld(world);
    await migrateWorld(world);
    open.defer(() => deleteTopics(world));
    const upstream = await startUpstream(folder);
    open.defer(() => upstream.stop());
    const gateway = startRole(world, 'gateway').then((server) => ({ title: 'Portcullis, role gateway', server }));
    const all = [await started(gateway)];
    for (const start of gatewayStarts(world, folder, upstream.url)) all.push(await started(start()));
    await delay(SETTLE_MS);
    const spans: number[][] = [];
    while (spans.length < pairs) {
      tell(`rest ${spans.length + 1} of ${pairs} …`);
      spans.push(
        await idleCpuOf(
          all.map(({ server }) => server),
          REST_MS,
        ),
      );
    }
    const cpu = all.map(({ title }, at) => {
      const ratios = spans.map((span) => span[at] ?? Number.NaN);
      return { title, figure: median(ratios), ratios };
    });
    const memory = all.map(({ title, server: { pid } }) => {
      const { resident } = memoryMb(pid);
      return { title, figure: resident, ratios: [resident] };
    });
    return [question('memory at rest: MB resident', memory), question('CPU at rest: ms a second', cpu)];
  });
}

function gatewayStarts({ servers: { DATABASE_URL = '' } }: World, folder: string, upstream: string) {
  return GATEWAYS.flatMap((name) => [
    () => startPeer(name, folder, upstream),
    () => startRecorded(name, folder, upstream, DATABASE_URL),
  ]);
}

/** The product, by its title, beside those that are not the product. */
function question(name: string, measured: readonly Measured[], product = PRODUCT): Question {
  const isProduct = ({ title }: Measured) => PRODUCT.test(title);
  return {
    name,
    product: measured.find((one) => isProduct(one) && product.test(one.title)),
    others: measured.filter((one) => !isProduct(one)),
  };
}

/** Calls `use` on fresh servers with a folder for the peers. */
async function onServers<Value>(use: (world: World, folder: string) => Promise<Value>): Promise<Value> {
  await using folder = await emptyFolder();
  const values: Value[] = [];
  await onAllStores(['servers'], async ([world]) => {
    if (world) values.push(await use(world, folder.path));
  });
  const [value] = values;
  if (value === undefined) throw new Error('nothing was measured');
  return value;
}
