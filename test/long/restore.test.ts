import { expect, it, vi } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { ADMIN_GROUP, kafkaOf, untilMembers } from '../support/events/worker-fixture.ts';
import { type Cluster, startCluster } from '../support/faults/cluster.ts';
import { type FaultReport, listening, tokenOf, underFault } from '../support/faults/faults.ts';
import { findings } from '../support/faults/findings.ts';
import { type Heard, promoted } from '../support/faults/promotion.ts';
import { type Restored, recover, restored } from '../support/faults/restore.ts';
import { tableOf } from '../support/faults/table.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

const PARTITIONS = 4;
const PACE = { restMs: 100, settleMs: 15_000 };
const LIMIT_MS = 240_000;
/** How late a client may hear of what was acknowledged. */
const EDGE_MS = 1_000;

const reports: FaultReport[] = [];

describeReal(['postgres', 'redis', 'kafka'], 'a database that has lost its latest writes', () => {
  it(
    'D6-10 D6-16 D6-18: restored and recovered: no notification is lost, other writes only since the copy, no event missed',
    async () => {
      await using cluster = await startCluster(['gateway', 'worker'], { partitions: PARTITIONS });
      const { brokers, topicPrefix } = cluster.direct;
      await untilMembers(kafkaOf({ env: { KAFKA_BROKERS: brokers } }), topicPrefix + ADMIN_GROUP, 1);
      const refused = await portcullis(['recover', '--since', new Date(0).toISOString()], cluster.env);
      expect(refused.code).toBe(1);
      expect(refused.err).toContain('Stop every worker');
      const seen = Promise.withResolvers<Restored>();
      const report = await underFault(cluster, restored(seen.resolve), PACE);
      reports.push(report);
      const { copyFrom, copyTo, lost, recovered } = await seen.promise;
      expectLostWithin(report, copyFrom.tick, lost.tick);
      // Each reader has what the log has, the numbers of the lost seconds are given to nobody else, and none comes again.
      expect(report.amiss).toMatchObject({
        deadLetters: 0,
        doubled: [],
        missed: [0, 0, 0],
        repeated: [0, 0, 0],
        wrong: [],
      });
      expect(recovered.groups.find(({ topic }) => topic === 'transactions.admin')?.messages).toBeGreaterThan(0);
      expect(Date.parse(recovered.audit_gap.from)).toBeLessThanOrEqual(copyTo.atMs + EDGE_MS);
      expect(await auditRecords(cluster, [copyTo.atMs + 1_000, lost.atMs - 1_000])).toBe(0);
      await expectNoChange(cluster, copyFrom.atMs);
      await expectRevoked(cluster, copyFrom.atMs);
    },
    LIMIT_MS,
  );

  it(
    'D6-10 D6-16 D6-18: promoted one second behind: only users of that second are lost, recover redelivers notifications',
    async () => {
      await using cluster = await startCluster(['gateway', 'worker'], { partitions: PARTITIONS });
      const heard = Promise.withResolvers<Heard>();
      const fault = promoted({ leave: 'killed', isSynchronous: false }, heard.resolve);
      const report = await underFault(cluster, fault, PACE);
      reports.push(report);
      const { tick, atMs } = await heard.promise;
      expect(report.amiss).toMatchObject({ deadLetters: 0, missed: [0, 0, 0], repeated: [0, 0, 0], wrong: [] });
      await stopped(cluster, async () => void (await recover(cluster, atMs - 1_000, '--keep-tokens')));
      const { journal, after } = report;
      report.amiss = await findings({ cluster, journal, readers: [], after }, PACE.settleMs);
      expectLostWithin(report, tick, tick + 10_000);
    },
    LIMIT_MS,
  );

  it('prints the report of both faults', () => void process.stdout.write(`\n${tableOf(reports)}\n`));
});

/** Of what Kafka has nothing is lost; of what the database alone has had, nothing but what was acknowledged in that time. */
function expectLostWithin({ amiss, journal }: FaultReport, fromTick: number, toTick: number): void {
  const strangers = new Set(journal.told.strangers);
  expect(amiss.lost.filter((id) => !strangers.has(id))).toEqual([]);
  const lost = [...amiss.lost, ...amiss.usersLost, ...amiss.usersWithoutEvent];
  const ticks = lost.map((id) => journal.toldAtMs.get(id) ?? 0);
  expect(Math.min(fromTick, ...ticks)).toBeGreaterThanOrEqual(fromTick);
  expect(Math.max(toTick, ...ticks)).toBeLessThanOrEqual(toTick + EDGE_MS);
}

async function auditRecords(cluster: Cluster, [fromMs, toMs]: [number, number]): Promise<number> {
  const { rows } = await withPostgres(cluster.direct.databaseUrl, (client) =>
    client.query('select count(*) from audit_records where at between $1 and $2', [
      new Date(fromMs).toISOString(),
      new Date(toMs).toISOString(),
    ]),
  );
  return Number(rows[0]?.count);
}

/** Everything is read again and processed again, and the tables are as before. */
async function expectNoChange(cluster: Cluster, sinceMs: number): Promise<void> {
  const before = await stateOf(cluster);
  await stopped(cluster, async () => {
    const { groups } = await recover(cluster, sinceMs, '--keep-tokens');
    expect(groups.reduce((sum, { messages }) => sum + messages, 0)).toBeGreaterThan(0);
  });
  await vi.waitFor(async () => expect(await lagOf(cluster)).toBe(0), { timeout: 30_000, interval: 500 });
  expect(await stateOf(cluster)).toEqual(before);
}

async function stateOf(cluster: Cluster): Promise<unknown> {
  const { rows } = await withPostgres(cluster.direct.databaseUrl, (client) =>
    client.query(
      `select (select md5(string_agg(t::text, ',' order by id)) from transactions t) as transactions,
        (select md5(string_agg(e::text, ',' order by seq)) from transaction_events e) as events,
        (select count(*) from parked_notifications) as parked`,
    ),
  );
  return rows;
}

async function lagOf({ replicas }: Cluster): Promise<number> {
  const worker = replicas.find(({ role }) => role === 'worker');
  const text = await (await fetch(`${worker?.adminUrl}/metrics`)).text();
  const lags = [...text.matchAll(/^portcullis_consumer_lag_messages\{.*\} (\d+)$/gm)];
  if (lags.length === 0) throw new Error('nothing is known of the lag');
  return lags.reduce((sum, [, messages]) => sum + Number(messages), 0);
}

/** Without `--keep-tokens` no token of before is good, and a new one is. */
async function expectRevoked(cluster: Cluster, sinceMs: number): Promise<void> {
  const before = await tokenOf(cluster);
  expect(await statusWith(cluster, before)).toBe(200);
  await stopped(cluster, async () => expect((await recover(cluster, sinceMs)).clients).toBeGreaterThan(0));
  await vi.waitFor(async () => expect(await statusWith(cluster, await tokenOf(cluster))).toBe(200), {
    timeout: 10_000,
  });
  expect(await statusWith(cluster, before)).toBe(401);
}

/** Runs work while no worker runs. */
async function stopped({ replicas }: Cluster, work: () => Promise<void>): Promise<void> {
  const workers = replicas.filter(({ role }) => role === 'worker');
  for (const worker of workers) await worker.stop();
  await work();
  for (const worker of workers) {
    await worker.restart();
    await worker.ready();
  }
}

async function statusWith(cluster: Cluster, token: string): Promise<number> {
  const response = await fetch(`${listening(cluster)[0]?.baseUrl}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query: '{ transactions(first: 1) { edges { node { id } } } }' }),
  });
  await response.text();
  return response.status;
}
