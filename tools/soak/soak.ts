import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type PostgresClient, withPostgres } from '../../test/support/services/pg-client.ts';
import { Caller, COUNTED, Tally } from './caller.ts';
import { type Gauge, Gauges } from './gauges.ts';
import { progressLines, summaryPage } from './report.ts';
import { type Subscriber, Subscriptions } from './subscribers.ts';
import { paced, trafficOn } from './traffic.ts';
import { faultsOf, type SoakFacts } from './verdict.rules.ts';
import { startWorld, type World } from './world.ts';

const DEFAULTS = { minutes: '20', rate: '100' };
const SAMPLE_MS = 10_000;
const SETTLE_MS = 500;
const SETTLE_TIMES = 60;
const SHOWN_LINES = 5;

/**
 * `npm run soak -- --minutes 20 --rate 100`: all kinds of traffic on the real servers for so long. Ends with 1 for any
 * answer or end of a stream that no one expected, a lost event, user or rule, an answer without its audit record, an error in the log, or memory that grows.
 */
async function main(): Promise<void> {
  const options = { minutes: { type: 'string' }, rate: { type: 'string' } } as const;
  const { values } = parseArgs({ options });
  const [minutes, rate] = [Number(values.minutes ?? DEFAULTS.minutes), Number(values.rate ?? DEFAULTS.rate)];
  if (!(minutes > 0 && rate > 0)) throw new Error('--minutes and --rate are numbers above 0');
  const ending = new AbortController();
  process.once('SIGINT', () => ending.abort());
  process.once('SIGTERM', () => ending.abort());
  await using world = await startWorld();
  await withPostgres(world.databaseUrl, async (client) => {
    process.exitCode = await soak(world, client, { minutes, rate, ending });
  });
}

interface Options {
  minutes: number;
  rate: number;
  ending: AbortController;
}

async function soak(world: World, client: PostgresClient, { minutes, rate, ending }: Options): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const tally = new Tally();
  const traffic = trafficOn(stack.use(new Caller(world.instance.baseUrl, tally)), world);
  const gauges = new Gauges(world, client);
  const ofNode = (sql: string) => gauges.number(`${sql} where node_id = $1`, world.demo.node_id);
  const logged = () => ofNode('select coalesce(max(seq), 0) from transaction_events');
  const rowsOf = async () => ({
    users: await ofNode('select count(*) from users'),
    rules: await ofNode('select count(*) from wallet_rules'),
  });
  const before = { log: await logged(), rows: await rowsOf() };
  await traffic.renewToken();
  const { baseUrl } = world.instance;
  const subscriptions = stack.use(
    new Subscriptions({ baseUrl, token: () => traffic.token, tally, after: BigInt(before.log) }),
  );
  const { followers } = subscriptions;
  const samples: Gauge[] = [];
  const kinds = [...traffic.kinds, ...subscriptions.kinds];
  const deadline = setTimeout(() => ending.abort(), minutes * 60_000);
  const startedAt = performance.now();
  const watching = watch({ tally, gauges, followers, samples, signal: ending.signal });
  await Promise.all([paced(kinds, rate, ending.signal), watching]);
  const seconds = (performance.now() - startedAt) / 1_000;
  clearTimeout(deadline);
  const told = () => [
    { subscriber: 'the log, of what was notified,', count: traffic.changes },
    ...followers.map(({ name, count }) => ({ subscriber: name, count })),
  ];
  const settled = async () => {
    const [log, audit] = [(await logged()) - before.log, await auditOf(tally, gauges)];
    const isDone = told().every(({ count }) => count === log);
    return { log, audit, isDone: isDone && audit.every(({ answered, records }) => answered === records) };
  };
  let end = await settled();
  for (let time = 0; time < SETTLE_TIMES && !end.isDone; time += 1) {
    await delay(SETTLE_MS);
    end = await settled();
  }
  const { lag, outbox } = await gauges.read();
  const rows = await rowsOf();
  const facts: SoakFacts = {
    paced: { planned: seconds * rate, answered: [...counts(tally).values()].reduce((sum, count) => sum + count, 0) },
    silent: kinds.map(({ name }) => name).filter((kind) => !tally.kinds.get(kind)?.answered),
    left: { lag, outbox },
    unexpected: [...tally.kinds]
      .filter(([, { unexpected }]) => unexpected > 0)
      .map(([kind, { unexpected, example = '' }]) => ({ kind, count: unexpected, example })),
    events: followers.flatMap(({ name, faults }) => faults.map((fault) => ({ subscriber: name, fault }))),
    logged: end.log,
    told: told(),
    made: (['users', 'rules'] as const).map((what) => ({
      what,
      acknowledged: traffic.made[what],
      rows: rows[what] - before.rows[what],
    })),
    audit: end.audit,
    errorLines: errorLines(world.instance.stdout()),
    memory: samples,
  };
  const faults = faultsOf(facts);
  const resumed = followers.reduce((total, follower) => total + follower.resumed, 0);
  process.stdout.write(summaryPage({ facts, kinds: tally.kinds, gauges: samples, resumed, seconds }));
  process.stdout.write(`\n${faults.map((fault) => `FAULT ${fault}\n`).join('')}`);
  if (faults.length === 0) process.stdout.write('The soak has passed.\n');
  return faults.length === 0 ? 0 : 1;
}

interface Watched {
  tally: Tally;
  gauges: Gauges;
  followers: readonly Subscriber[];
  samples: Gauge[];
  signal: AbortSignal;
}

/** Reads how the instance is every few seconds, and tells it. */
async function watch({ tally, gauges, followers, samples, signal }: Watched): Promise<void> {
  const startedAt = performance.now();
  let last = { at: startedAt, counts: counts(tally), gauge: await gauges.read() };
  while (!signal.aborted) {
    await delay(SAMPLE_MS, undefined, { signal }).catch(() => undefined);
    const [at, now, gauge] = [performance.now(), counts(tally), await gauges.read()];
    samples.push(gauge);
    const seconds = (at - last.at) / 1_000;
    const rates = new Map([...now].map(([kind, count]) => [kind, (count - (last.counts.get(kind) ?? 0)) / seconds]));
    process.stdout.write(
      progressLines({
        seconds: (at - startedAt) / 1_000,
        unexpected: [...tally.kinds.values()].reduce((sum, { unexpected }) => sum + unexpected, 0),
        gauge,
        cpu: (gauge.cpuSeconds - last.gauge.cpuSeconds) / seconds,
        told: followers.map(({ count }) => count),
        rates,
      }),
    );
    last = { at, counts: now, gauge };
  }
}

function counts(tally: Tally): Map<string, number> {
  return new Map([...tally.kinds].map(([kind, { answered }]) => [kind, answered]));
}

/** Answers beside audit records, by kind; subscriptions are told apart by their ids. */
async function auditOf(tally: Tally, gauges: Gauges): Promise<SoakFacts['audit']> {
  const records = await gauges.auditByKind(COUNTED);
  const asked = [...tally.kinds].filter(([kind]) => !kind.startsWith('subscribe.'));
  return asked.map(([kind, { answered }]) => ({
    kind,
    answered,
    ...(records.get(kind) ?? { records: 0, requests: 0 }),
  }));
}

function errorLines(stdout: string): string[] {
  const lines = stdout.split('\n').filter((line) => /^\{"level":"(?:error|fatal)"/.test(line));
  return lines.slice(0, SHOWN_LINES);
}

await main();
