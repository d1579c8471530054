import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type AttackHarness, newTenant, type Tenant } from '../support/attacks/attack.ts';
import { type Attempt, attackApart } from '../support/attacks/attack-thread.ts';
import type { Answers } from '../support/attacks/attacker.ts';
import { type Figures, startProbe } from '../support/attacks/probe.ts';
import { ANONYMOUS, addRules, answerRemote, ROWS, type Row } from '../support/attacks/rows.ts';
import { type Replica, startCluster } from '../support/faults/cluster.ts';
import { listening, tokenOf } from '../support/faults/faults.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { startRawUpstream } from '../support/gateway/raw-upstream.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';
import { notification } from '../support/webhook/fixture.ts';

/** The memory limit of a gateway in `deploy/`. */
const MEMORY_MIB = 1_024;
const MOST_P99_MS = 300;
/** The longest that a request waits for a database that does not answer. */
const MOST_WAIT_MS = 20_000;
/** Within so long, what an attack held is free again. */
const RETURN_MS = 60_000;
/** What differs from before, of memory that is collected: caches, compiled code, connections of the drivers. */
const MORE_MIB = 60;
const CALM_MS = 5_000;
/** How long an attack is noticed for at least. */
const WAY_MS = 2_000;
const TENANTS = 5;
/** A gateway collects its garbage when it is told, so that what it holds can be measured. */
const COLLECTING = `--expose-gc --import=data:text/javascript,process.on('SIGUSR2',()=>gc())`;
const REMOTE = [{ methods: ['GET'], path: '/remote/*', services: ['remote'], tokens: ['user', 'legacy', 'discover'] }];

const value = (metrics: string, name: string) =>
  metrics.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm')).reduce((sum, [, one]) => sum + Number(one), 0);

describeReal(['postgres', 'redis', 'kafka'], 'gateways of 1 GiB under attack', () => {
  const stack = new AsyncDisposableStack();
  let target: AttackHarness;
  let tenants: Tenant[];
  let calm: Record<string, Figures>;
  let before: Memory[];

  beforeAll(async () => {
    const upstream = stack.use(await startRawUpstream(answerRemote));
    const file = stack.use(await gatewayFile({ remote: { at: upstream.url, timeout_ms: 3_000 } }, REMOTE));
    const env = { GATEWAY_CONFIG: file.path, CONSOLE: 'on', NODE_OPTIONS: COLLECTING };
    const cluster = stack.use(await startCluster(['gateway', 'gateway', 'worker'], { partitions: 3, env }));
    tenants = [];
    for (let at = 0; at < TENANTS; at += 1) tenants.push(await newTenant(cluster));
    for (const { nodeId } of tenants) await addRules(cluster.direct.databaseUrl, nodeId, cluster.demo.node_id);
    const { other_node: other } = cluster.demo;
    const bystander = { nodeId: other.node_id, token: await tokenOf(cluster, other.client) };
    const [first, second] = tenants;
    if (!first || !second) throw new Error('there are tenants that attack');
    target = {
      cluster,
      gateways: listening(cluster),
      attackers: [first, second],
      bystander,
      [Symbol.asyncDispose]: async () => undefined,
    };
    // The first requests load what later ones use.
    for (let round = 0; round < 2; round += 1) calm = await noticed(() => delay(CALM_MS));
    before = await Promise.all(target.gateways.map(memoryOf));
    tell({ what: 'before', ...brief(calm), memory: before });
  });
  afterAll(() => stack.disposeAsync());

  /** What others meet while something is done. */
  async function noticed(work: () => Promise<unknown>): Promise<Record<string, Figures>> {
    const { cluster, gateways, bystander } = target;
    const json = { 'content-type': 'application/json' };
    const authorization = `Bearer ${bystander.token}`;
    const stop = startProbe(
      gateways.flatMap(({ baseUrl }) => [
        {
          name: 'me',
          url: `${baseUrl}/graphql`,
          headers: { ...json, authorization },
          body: '{"query":"{ me { nodeId } }"}',
        },
        {
          name: 'webhook',
          url: `${baseUrl}/v2/webhooks/custodial`,
          headers: { ...json, authorization: cluster.webhook },
          body: JSON.stringify(notification({ id: 'UUID' })),
        },
        { name: 'remote', url: `${baseUrl}/remote/ok`, headers: { authorization } },
      ]),
    );
    try {
      await work();
    } catch (error) {
      await stop();
      throw error;
    }
    return stop();
  }

  interface Memory {
    /** What is in use after a collection, and what the accounts say; MiB. */
    heap: number;
    charged: number;
    resident: number;
  }

  async function memoryOf(gateway: Replica): Promise<Memory> {
    for (let round = 0; round < 2; round += 1) {
      gateway.signal('SIGUSR2');
      await delay(500);
    }
    return metricsOf(gateway);
  }

  async function metricsOf({ adminUrl }: Replica): Promise<Memory> {
    const text = await vi.waitFor(async () => (await fetch(`${adminUrl}/metrics`)).text());
    const mebibytes = (name: string) => Math.round(value(text, name) / 1_048_576);
    return {
      heap: mebibytes('nodejs_heap_size_used_bytes'),
      charged: mebibytes('portcullis_held_memory_bytes'),
      resident: mebibytes('process_resident_memory_bytes'),
    };
  }

  const brief = (figures: Record<string, Figures>) =>
    Object.fromEntries(
      Object.entries(figures).map(([name, { refused, ...rest }]) => [
        name,
        { ...rest, refused: refused.length, first: refused[0] },
      ]),
    );
  const tell = (figures: object) => void process.stdout.write(`${JSON.stringify(figures)}\n`);

  async function attacked(
    what: string,
    attempts: readonly Attempt[],
    { atOnce = false, fault }: { atOnce?: boolean; fault?: Row['during'] } = {},
  ) {
    const answers: Record<string, Answers> = {};
    let peak = 0;
    let isOver = false;
    const watching = target.gateways.map(async (gateway) => {
      while (!isOver) {
        peak = Math.max(peak, (await metricsOf(gateway)).resident);
        await delay(500);
      }
    });
    const attacks = { demo: target.cluster.demo, gatewayUrls: target.gateways.map(({ baseUrl }) => baseUrl) };
    const all = async () => {
      for (const some of atOnce ? [attempts] : attempts.map((one) => [one])) {
        Object.assign(answers, await attackApart({ target: attacks, attempts: some, minMs: WAY_MS }));
      }
    };
    const figures = await noticed(() => during(fault, all)).finally(async () => {
      isOver = true;
      await Promise.all(watching);
    });
    const endedAt = performance.now();
    calm = await noticed(() => delay(WAY_MS));
    let after: Memory[] = [];
    const isBack = () =>
      after.every(({ heap, charged }, at) => charged === 0 && heap < (before[at]?.heap ?? 0) + MORE_MIB);
    do after = await Promise.all(target.gateways.map(memoryOf));
    while (!isBack() && performance.now() < endedAt + RETURN_MS);
    const backMs = Math.round(performance.now() - endedAt);
    tell({ what, peak, backMs, after, ...brief(figures), calm: brief(calm), answers });
    expect(isBack(), JSON.stringify(after)).toBe(true);
    expect(peak).toBeLessThan(MEMORY_MIB);
    return { figures, answers };
  }

  /** Does to the servers what a row says, while it is attacked. */
  async function during(fault: Row['during'], work: () => Promise<void>): Promise<void> {
    const { servers, direct } = target.cluster;
    if (fault === 'postgres hangs') {
      servers.postgres.proxy.set('frozen');
      await work().finally(() => servers.postgres.proxy.set('passing'));
    } else if (fault === 'a transaction hangs') {
      await withPostgres(direct.databaseUrl, async (client) => {
        await client.query('begin; lock table users in access exclusive mode');
        const over = work();
        await delay(5_000);
        await client.query('rollback');
        await over;
      });
    } else await work();
  }

  function expectServed(figures: Record<string, Figures>) {
    for (const [name, { p99, refused }] of Object.entries(figures)) {
      expect(refused, name).toEqual([]);
      expect(p99, name).toBeLessThan(MOST_P99_MS);
    }
  }

  /** While PostgreSQL hangs, a token of a client cannot be checked: a request is refused instead of waiting for ever. */
  function expectAnswered(figures: Record<string, Figures>) {
    const { webhook, ...others } = figures;
    expectServed({ ...(webhook && { webhook }) });
    for (const [name, { slowest }] of Object.entries(others)) expect(slowest, name).toBeLessThan(MOST_WAIT_MS);
  }

  it.each(Object.entries(ROWS).map(([what, row]) => [row.clause, what, row] as const))(
    '%s: %s do not exhaust a process of 1 GiB, and other tenants are served',
    async (_clause, what, row) => {
      const [tenant] = tenants;
      if (!tenant) throw new Error('there are tenants that attack');
      const ways = Object.keys(row.ways).map((way) => ({ what, way, tenant }));
      const { figures } = await attacked(what, ways, { fault: row.during });
      if (row.during === 'postgres hangs') expectAnswered(figures);
      else expectServed(figures);
    },
  );

  it('D6-25 D6-26 D6-27: all attacks at once, by five tenants and callers without a token, do not exhaust a process of 1 GiB', async () => {
    const first = Object.entries(ROWS).map(([what, { ways }]) => ({ what, way: Object.keys(ways)[0] ?? '' }));
    const without = Object.keys(ANONYMOUS).map((way) => ({ what: 'callers without a token', way }));
    const attacks = [...first, ...without].map((one, at): Attempt => {
      const tenant = tenants[at % TENANTS];
      if (!tenant) throw new Error('there are tenants that attack');
      return { ...one, tenant };
    });
    const { figures } = await attacked('all at once', attacks, { atOnce: true });
    expectServed(figures);
  });
});
