import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runEach } from '../lib/pairs.ts';
import { cpuMs } from '../lib/process-stats.ts';
import { median } from '../lib/statistics.ts';
import type { Audience, Order, Publication, Reception } from './audience.ts';
import type { Contender } from './contenders.ts';

const AUDIENCE = join(import.meta.dirname, 'audience.ts');
/** What a server does after its last delivery, such as writing audit records, belongs to the round. */
const SETTLE_MS = 700;
const IDLE_MS = 3_000;

/** One round: the server's microseconds of CPU for each delivery, and its subscribers' milliseconds. */
export interface Round extends Reception {
  cpuUs: number;
}

/** Rounds of one contender, each with the base's beside it. */
export interface Result {
  title: string;
  cpuUs: number;
  /** The median of the pairs' ratios, and each of them. */
  ratio: number;
  ratios: number[];
  p50: number;
  p50Ratio: number;
  p99: number;
  /** Milliseconds of CPU a second that the server takes for its audience while nothing is published. */
  idleMs: number;
}

/** How an audience is spoken to. */
export interface Scene {
  subscribers: number;
  /** Whether each follows a transaction of its own. */
  each: boolean;
  publication: Publication;
  warmUp: Publication;
  pairs: number;
}

/** Subscribers in a process of their own. */
export class AudienceProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  /** Returns once all are subscribed. */
  static async open(audience: Audience): Promise<AudienceProcess> {
    const opened = new AudienceProcess();
    await opened.#tell({ open: audience });
    return opened;
  }

  private constructor() {
    this.#child = fork(AUDIENCE, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#exited = once(this.#child, 'exit');
  }

  /** One round of the server that it listens to. */
  async round({ pid }: { pid: number }, { count, perSecond }: Publication): Promise<Round> {
    await this.#tell({ prepare: count });
    await delay(SETTLE_MS);
    const before = cpuMs(pid);
    const reception = (await this.#tell({ publish: perSecond })) as Reception;
    await delay(SETTLE_MS);
    return { ...reception, cpuUs: ((cpuMs(pid) - before) * 1_000) / reception.deliveries };
  }

  /** Milliseconds of CPU a second while nothing is published. */
  async idle({ pid }: { pid: number }): Promise<number> {
    await delay(SETTLE_MS);
    const before = cpuMs(pid);
    await delay(IDLE_MS);
    return ((cpuMs(pid) - before) * 1_000) / IDLE_MS;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.connected) this.#child.send({ close: true } satisfies Order);
    await this.#exited;
  }

  async #tell(order: Order): Promise<unknown> {
    this.#child.send(order);
    const ended = this.#exited.then(() => [{ error: 'the audience has ended' }]);
    const [{ answer, error }] = (await Promise.race([once(this.#child, 'message'), ended])) as [
      { answer?: unknown; error?: string },
    ];
    if (error !== undefined) throw new Error(error);
    return answer;
  }
}

/** Each contender's rounds before one of the base's, whose audience is there all the time; the last result is the base's. */
export async function compare(contenders: readonly Contender[], base: Contender, scene: Scene): Promise<Result[]> {
  const results: Result[] = [];
  const besides: Pair[] = [];
  await runEach(contenders, async (contender) => {
    const pairs = scene.each ? await eachPairs(contender, base, scene) : await allPairs(contender, base, scene);
    for (const { beside, idle } of pairs) {
      besides.push({ round: beside, beside, idle: { round: idle.beside, beside: idle.beside } });
    }
    results.push(resultOf(contender, pairs));
  });
  return [...results, resultOf(base, besides)];
}

interface Pair {
  round: Round;
  beside: Round;
  idle: { round: number; beside: number };
}

async function allPairs(contender: Contender, base: Contender, scene: Scene): Promise<Pair[]> {
  await using listening = await audienceOf(contender, scene);
  await using beside = await audienceOf(base, scene);
  await listening.round(contender.server, scene.warmUp);
  await beside.round(base.server, scene.warmUp);
  const [round, besides] = await Promise.all([listening.idle(contender.server), beside.idle(base.server)]);
  const pairs: Pair[] = [];
  for (let pair = 0; pair < scene.pairs; pair++) {
    pairs.push({
      round: await listening.round(contender.server, scene.publication),
      beside: await beside.round(base.server, scene.publication),
      idle: { round, beside: besides },
    });
  }
  return pairs;
}

/** A transaction is started once and goes on once: each pair has an audience of its own. */
async function eachPairs(contender: Contender, base: Contender, scene: Scene): Promise<Pair[]> {
  const pairs: Pair[] = [];
  for (let pair = 0; pair < scene.pairs; pair++)
    pairs.push(...(await allPairs(contender, base, { ...scene, pairs: 1 })));
  return pairs;
}

function audienceOf({ audience }: Contender, { subscribers, each }: Scene): Promise<AudienceProcess> {
  return AudienceProcess.open({ ...audience, subscribers, each });
}

function resultOf({ title }: Contender, pairs: readonly Pair[]): Result {
  const of = (value: (pair: Pair) => number) => median(pairs.map(value));
  const ratios = pairs.map(({ round, beside }) => round.cpuUs / beside.cpuUs);
  return {
    title,
    cpuUs: of(({ round }) => round.cpuUs),
    ratio: median(ratios),
    ratios,
    p50: of(({ round }) => round.p50),
    p50Ratio: of(({ round, beside }) => round.p50 / beside.p50),
    p99: of(({ round }) => round.p99),
    idleMs: of(({ idle }) => idle.round),
  };
}
