import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { AuditRetention } from '../../src/audit/audit-retention.ts';
import { deleteOldEvents } from '../../src/events/streams/event-log.ts';
import { sealsIn } from '../support/harness/audit-seals.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type EmbeddedDatabase, embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';

type Opened = Pick<EmbeddedDatabase, 'db'> & AsyncDisposable;

const NOON = Date.parse('2024-11-21T12:00:00Z');
const DAY_MS = 24 * 3_600_000;

function retentionTests(open: () => Promise<Opened>): void {
  const database = beforeTests(open);
  const door = () => database.db.unscoped('test');

  async function record(at: string): Promise<string> {
    const id = randomUUID();
    await door().run((k) =>
      k.insertInto('audit_records').values({
        ...{ at, id, correlation_id: 'c', method: 'GET', path: '/', status_code: 200, elapsed: 1, headers: {} },
        ...{ remote_address: '::1', real_ip: '::1', request_bytes: '0', response_bytes: '0', is_api: false },
      }),
    );
    return id;
  }

  /** Each record that is left, with the partition that it is in. */
  async function places(): Promise<Record<string, string>> {
    const rows = await door().raw(
      (sql) => sql<{ id: string; place: string }>`select id, tableoid::regclass::text as place from audit_records`,
    );
    return Object.fromEntries(rows.map(({ id, place }) => [id, place]));
  }

  const keepAt = (nowMs: number) =>
    new AuditRetention({
      db: database.db,
      seals: sealsIn(database.db),
      nowMs: () => nowMs,
      retentionDays: 90,
    }).enforce();

  it('D2-07: records go into the partition of their month, earlier ones when it is created', async () => {
    const early = await record('2024-11-20T00:00:00Z');
    await keepAt(NOON);
    const [late, next, far] = [
      await record('2024-11-30T23:59:59.999999Z'),
      await record('2024-12-01T00:00:00Z'),
      await record('2025-06-01T00:00:00Z'),
    ];
    await keepAt(NOON);
    expect(await places()).toEqual({
      [early]: 'audit_records_2024_11',
      [late]: 'audit_records_2024_11',
      [next]: 'audit_records_2024_12',
      [far]: 'audit_records_default',
    });
    const listed = await door().raw(
      (sql) => sql<{ name: string }>`
        select relid::regclass::text as name from pg_partition_tree('audit_records') where level = 1 order by 1`,
    );
    expect(listed.map(({ name }) => name)).toEqual([
      ...['audit_records_2024_11', 'audit_records_2024_12', 'audit_records_2025_01', 'audit_records_default'],
    ]);
  });

  it('D2-07: records past the retention are deleted: whole months by dropping the partition, others row by row', async () => {
    await door().run((k) => k.deleteFrom('audit_records'));
    const times = ['2024-11-01T00:00:00Z', '2024-12-31T00:00:00Z', '2025-01-09T11:59:59Z', '2025-01-09T12:00:00Z'];
    const ids = [];
    for (const at of times) ids.push(await record(at));
    const astray = await record('2024-02-01T00:00:00Z');
    await keepAt(Date.parse('2025-01-09T12:00:00Z') + 90 * DAY_MS);
    const left = await places();
    expect(left).toEqual({ [ids[3] ?? '']: 'audit_records_2025_01' });
    expect(left).not.toHaveProperty(astray);
    expect(
      await door().raw((sql) => sql<{ gone: boolean }>`select to_regclass('audit_records_2024_11') is null as gone`),
    ).toEqual([{ gone: true }]);
  });

  it('the oldest events of each node are deleted, and recent ones are kept', async () => {
    const [nodeId, other] = [randomUUID(), randomUUID()];
    await door().run((k) => k.insertInto('nodes').values([nodeId, other].map((id) => ({ id, name: id }))));
    for (const [node, times] of [
      [nodeId, ['2024-10-01T00:00:00Z', '2024-10-22T11:59:59Z', '2024-10-22T12:00:00Z', '2024-11-21T00:00:00Z']],
      [other, ['2024-11-20T00:00:00Z']],
    ] as const) {
      const id = randomUUID();
      await door().raw((sql) => sql`insert into transaction_ids values (${id})`);
      await door().raw(
        (sql) => sql`insert into transactions (id, node_id, collection, registered_type, registered_by, type)
          values (${id}, ${node}, 'otc_transactions', 1, 'topic', 1)`,
      );
      await door().raw((sql) => sql`insert into node_event_seq values (${node}, ${times.length})`);
      for (const [index, at] of times.entries()) {
        const columns = 'node_id, seq, transaction_id, status, correlation_id, transaction, occurred_at';
        await door().raw(
          (sql) => sql`insert into transaction_events (${sql.raw(columns)})
            values (${node}, ${index + 1}, ${id}, 1, 'c', '{}', ${at})`,
        );
      }
    }
    await deleteOldEvents({ db: database.db, nowMs: () => NOON, retentionDays: 30 });
    const left = await door().raw(
      (sql) => sql<{ node_id: string; seq: string }>`select node_id, seq::text from transaction_events order by seq`,
    );
    expect(left.filter((row) => row.node_id === nodeId).map(({ seq }) => seq)).toEqual(['3', '4']);
    expect(left.filter((row) => row.node_id === other)).toHaveLength(1);
  });
}

describeEmbedded('retention on the embedded database', () => retentionTests(embeddedDatabase));
describeReal('postgres', 'retention on PostgreSQL', () => {
  retentionTests(realDatabase);

  it('of several concurrent processes one creates the partitions, and none fails', async () => {
    await using database = await realDatabase();
    const seals = sealsIn(database.db);
    const retention = () => new AuditRetention({ db: database.db, seals, nowMs: () => NOON, retentionDays: 90 });
    await Promise.all(Array.from({ length: 4 }, () => retention().enforce()));
    await retention().enforce();
    const rows = await database.db
      .unscoped('test')
      .raw((sql) => sql`select 1 from pg_partition_tree('audit_records') where level = 1`);
    expect(rows).toHaveLength(4);
  });
});
