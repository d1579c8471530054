import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, expect, inject, it, vi } from 'vitest';
import { AuditChain, type AuditRecord, jsonOf, RECORD_COLUMNS, unchained } from '../../src/audit/audit-record.ts';
import { AuditStore } from '../../src/audit/audit-writer.ts';
import { anyCharacter } from '../support/harness/any-character.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type EmbeddedDatabase, embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';

const CHAIN = 'cccccccc-0000-7000-8000-000000000001';

type Opened = Pick<EmbeddedDatabase, 'db'> & AsyncDisposable;

const text = fc
  .oneof(
    fc.string({ unit: anyCharacter }),
    fc.stringMatching(/^[\\nrtN.\t\n\r'"{},]*$/),
    fc.constantFrom('\\N', '\\.', '\\', 'NULL', ''),
  )
  .map((drawn) => drawn.replaceAll('\0', ''));

const records: fc.Arbitrary<AuditRecord> = fc.record({
  at: fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true }).map((date) => date.toISOString()),
  id: fc.uuid(),
  node_id: fc.option(fc.uuid()),
  correlation_id: text,
  method: text,
  path: text,
  query: fc.option(text),
  status_code: fc.integer({ min: 100, max: 599 }),
  elapsed: fc.double({ noNaN: true, min: 0, max: 1e9 }),
  headers: fc.dictionary(fc.stringMatching(/^:?[a-z-]{1,9}$/), fc.oneof(text, fc.array(text)), {
    noNullPrototype: true,
  }),
  remote_address: text,
  real_ip: text,
  request_body: fc.option(text),
  request_bytes: fc.nat(),
  response_body: fc.option(text),
  response_bytes: fc.nat(),
  is_api: fc.boolean(),
  aborted: fc.boolean(),
  subject: fc.option(text),
  client_id: fc.option(text),
  operation: fc.option(text),
  noted_users: fc.option(fc.array(fc.uuid(), { minLength: 1 })),
});

/** A line with a place in a chain. */
function lineFor(record: AuditRecord): Buffer {
  const lines: string[] = [];
  new AuditChain(CHAIN, { append: (...added) => lines.push(...added) }).append(unchained(record));
  return Buffer.from(lines.join());
}

/** A row, or the JSON of one, without its place in a chain. */
function recordOf<Row extends object>(row: Row): Row {
  return Object.fromEntries(RECORD_COLUMNS.map((name) => [name, row[name as keyof Row]])) as Row;
}

it('D2-07: the line of a record has no line feed, and parses back to the record', () => {
  fc.assert(
    fc.property(records, (record) => {
      const line = lineFor(record);
      expect(line.includes('\n')).toBe(false);
      const { noted_users, ...found } = recordOf(JSON.parse(jsonOf(line)));
      const { noted_users: users, ...expected } = JSON.parse(JSON.stringify(record));
      expect(found).toEqual(expected);
      expect(noted_users).toBe(users && `{${users}}`);
    }),
  );
});

function storeTests(open: () => Promise<Opened>): void {
  const database = beforeTests(open);
  let store: AuditStore;
  beforeAll(async () => {
    store = new AuditStore(database.db);
  });

  /** What the table has under these ids, with numbers as the records have them. */
  async function stored(ids: string[]) {
    const rows = await database.db
      .unscoped('test')
      .run((k) => k.selectFrom('audit_records').selectAll().where('id', 'in', ids));
    return rows.map((row) => ({
      ...recordOf(row),
      at: new Date(row.at).toISOString(),
      request_bytes: Number(row.request_bytes),
      response_bytes: Number(row.response_bytes),
    }));
  }

  it('D2-07: a copied line and the JSON of it store the same record', async () => {
    await fc.assert(
      fc.asyncProperty(records, async (record) => {
        const [copied, parsed] = [randomUUID(), randomUUID()];
        await store.insertAll([lineFor({ ...record, id: copied })]);
        await store.insertAll([Buffer.from(JSON.stringify({ ...record, id: parsed }))]);
        const expected = { ...record, elapsed: record.elapsed + 0 };
        const found = new Map((await stored([copied, parsed])).map((row) => [row.id, row]));
        expect(found.get(copied)).toEqual({ ...expected, id: copied });
        expect(found.get(parsed)).toEqual({ ...expected, id: parsed });
      }),
      { numRuns: inject('isThorough') ? 50 : 15 },
    );
  });

  it('D2-07: each record of a batch that is repeated in part, in any form, is stored once', async () => {
    const drawn = fc.sample(records, { numRuns: 6, seed: 7 }).map((record) => ({ ...record, id: randomUUID() }));
    const ids = drawn.map(({ id }) => id);
    await store.insertAll(drawn.slice(0, 3).map(lineFor));
    await store.insertAll(drawn.map(lineFor));
    await store.insertAll(drawn.map((record) => Buffer.from(JSON.stringify(record))));
    await store.insertAll(
      drawn.map((record, index) => (index % 2 ? lineFor(record) : Buffer.from(JSON.stringify(record)))),
    );
    expect((await stored(ids)).map(({ id }) => id).sort()).toEqual([...ids].sort());
  });
}

describeEmbedded('in the embedded database', () => storeTests(embeddedDatabase));
describeReal('postgres', 'in PostgreSQL', () => storeTests(realDatabase));

describeReal('postgres', 'while the partition of their month is made', () => {
  // Of a batch that is refused, each half is tried again.
  it.each([1, 3])('D2-07: a batch of %i that waits for the partition is stored in it completely', async (count) => {
    await using database = await realDatabase();
    const { db } = database;
    const drawn = fc.sample(records, { numRuns: count, seed: 7 });
    const ofMonth = drawn.map((record) => ({ ...record, id: randomUUID(), at: '2031-05-10T00:00:00.000Z' }));
    const [locked, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const making = db.transaction(async () => {
      const unscoped = db.unscoped('test');
      await unscoped.raw((sql) => sql`lock table audit_records_default in access exclusive mode`);
      await unscoped.raw((sql) => sql`create table of_may (like audit_records including all)`);
      await unscoped.raw(
        (sql) =>
          sql`alter table audit_records attach partition of_may for values from ('2031-05-01Z') to ('2031-06-01Z')`,
      );
      locked.resolve();
      await written.promise;
    });
    await Promise.race([locked.promise, making]);
    const refused = vi.fn();
    const inserting = new AuditStore(db).insert(ofMonth.map(lineFor), refused, refused);
    await vi.waitFor(async () => {
      const waiting = await db
        .unscoped('test')
        .raw((sql) => sql`select 1 from pg_locks where not granted and relation = 'audit_records_default'::regclass`);
      expect(waiting).not.toEqual([]);
    });
    written.resolve();
    await Promise.all([making, inserting]);
    expect(refused).not.toHaveBeenCalled();
    const rows = await db.unscoped('test').raw<{ id: string }>((sql) => sql`select id from of_may`);
    expect(rows.map(({ id }) => id).sort()).toEqual(ofMonth.map(({ id }) => id).sort());
  });
});
