import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { columnDigests, recordHash } from '../../src/audit/audit-chain.ts';
import { type AuditRecord, fixedColumnsOf, RECORD_COLUMNS } from '../../src/audit/audit-record.ts';
import { type AuditProcess, auditProcess, verified } from '../support/audit/chain-world.ts';
import { SEAL_KEY, sealsIn } from '../support/harness/audit-seals.ts';
import { type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';

const RECORDS = 20;
const OTHER_CHAIN = '01234567-89ab-7cde-8f01-23456789abcd';

/** A record as it is stored, with the hash before and its salts in hexadecimal digits. */
type StoredRow = AuditRecord & { chain_index: string; previous: string; salted: string };

describeReal('postgres', 'audit verify', () => {
  let database: RealDatabase;
  let folder: Awaited<ReturnType<typeof emptyFolder>>;
  let chained: AuditProcess;

  beforeAll(async () => {
    database = await realDatabase();
    folder = await emptyFolder();
  });

  afterAll(async () => {
    await database[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  const raw = (statement: string) => database.db.unscoped('test').raw((sql) => sql<object>`${sql.raw(statement)}`);

  beforeEach(async () => {
    await raw('truncate audit_records, audit_seals');
    chained = auditProcess(database.db, folder.path);
    chained.spool(RECORDS / 2);
    await chained.drain();
    await chained.checkpoint();
    chained.spool(RECORDS / 2);
    await chained.stop();
  });

  const place = (index: number) => `chain_index = ${index}`;
  const swap = (columns: string, one: number, other: number) => `
    update audit_records a set (${columns}) = (select ${columns.replace(/(\w+)/g, 'b.$1')} from audit_records b
      where b.chain_index = ${one} + ${other} - a.chain_index) where a.chain_index in (${one}, ${other})`;
  const COLUMNS = 'node_id, correlation_id, method, path, query, status_code, elapsed, headers, request_body';
  const CHAINED = 'chain_id, chain_index, previous_hash, hash, salts';
  const COPIED = [...RECORD_COLUMNS.filter((name) => name !== 'at' && name !== 'id'), CHAINED].join(', ');
  const copyOf = (index: number, id: string, at: string) => `
    insert into audit_records (at, id, ${COPIED})
    select ${at}, ${id}, ${COPIED}
    from audit_records where ${place(index)}`;

  const deleted = (which: string) => `delete from audit_records where ${which}`;
  const seal = (change: string, position = 2) => `update audit_seals set ${change} where position = ${position}`;

  it.each([
    ['a record is deleted', deleted(place(7)), 'missing', /^record 7 of/],
    ['records are deleted', deleted('chain_index between 3 and 12'), 'missing', /^records 3 to 12 of/],
    ['the last record is deleted', deleted(place(19)), 'cut off', /^record 19 of/],
    ['all records are deleted', 'truncate audit_records', 'cut off', /^records 0 to 19 of/],
    ['the contents of two are exchanged', swap(COLUMNS, 4, 9), 'changed', /^record 4 of/],
    ['the places of two are exchanged', swap(CHAINED, 4, 9), 'changed', /^record 4 of/],
    ['one is copied', copyOf(4, 'gen_random_uuid()', 'at'), 'twice', /^record 4 of/],
    ['one is copied to another time', copyOf(4, 'id', "at + interval '1 day'"), 'twice', /^record 4 of/],
    ['a chain is renamed', `update audit_records set chain_id = '${OTHER_CHAIN}'`, 'changed', /^record 0 of/],
    ['a seal is deleted', 'delete from audit_seals where position = 2', 'missing', /^seal 2 is missing/],
    ['the first seal is deleted', 'delete from audit_seals where position = 1', 'missing', /^seal 1 is missing/],
    ['all seals are deleted', 'truncate audit_seals', 'forged', /^record 19 of .* in a chain that no valid seal/],
    [
      'a body is changed',
      seal(`body = replace(body, '"index":9', '"index":8')`),
      'forged',
      /^seal 2 has an invalid sig/,
    ],
    ['a signature is removed', seal('signature = null'), 'forged', /^seal 2 has/],
    ["a seal's row says something else", seal("kind = 'gap'"), 'changed', /^seal 2 was altered/],
    ['a seal is no JSON', seal("body = 'x'"), 'changed', /^seal 2 was altered/],
  ])('when %s, names it', async (_name, change, kind, message) => {
    await raw(change);
    const { findings } = await verified(database.db);
    expect(findings[0]).toMatchObject({ kind, message: expect.stringMatching(message) });
  });

  it('finds nothing where the last seal is deleted with its records, as nobody can know of them', async () => {
    await raw('delete from audit_seals where position = 3; delete from audit_records where chain_index > 12');
    expect((await verified(database.db)).findings).toEqual([]);
  });

  /** Rewrites records from an index on, with hashes that follow on each other, as somebody would who knows how. */
  async function forge(from: number, change: string, chain = chained.chain): Promise<void> {
    await raw(`update audit_records set ${change} where chain_index = ${from} and chain_id = '${chain}'`);
    const rows = (await raw(`
      select *, encode(previous_hash, 'hex') as previous, encode(salts, 'hex') as salted
      from audit_records where chain_id = '${chain}' and chain_index >= ${from} order by chain_index`)) as StoredRow[];
    let previous = rows[0]?.previous ?? '';
    for (const row of rows) {
      const record = {
        ...row,
        at: new Date(row.at).toISOString(),
        request_bytes: Number(row.request_bytes),
        response_bytes: Number(row.response_bytes),
      };
      const index = Number(row.chain_index);
      const hash = recordHash({ chain, index, previous }, fixedColumnsOf(record), columnDigests(record, row.salted));
      await raw(`
        update audit_records set previous_hash = '\\x${previous}', hash = '\\x${hash}'
        where chain_id = '${chain}' and chain_index = ${index}`);
      previous = hash;
    }
  }

  it.each([
    [3, /^one of records 0 to 9 of .* seal 2/],
    [19, /^one of records 10 to 19/],
  ])('names the records between seals of which hashes were made anew, from record %d on', async (from, message) => {
    await forge(from, 'status_code = 500');
    const { findings } = await verified(database.db);
    expect(findings[0]).toMatchObject({ kind: 'forged', message: expect.stringMatching(message) });
  });

  it('knows a chain of somebody else', async () => {
    await raw(`${copyOf(0, 'gen_random_uuid()', 'at')}; update audit_records set chain_id = '${OTHER_CHAIN}'
      where id = (select id from audit_records where chain_index = 0 order by ctid desc limit 1)`);
    await forge(0, 'status_code = 200', OTHER_CHAIN);
    const { findings } = await verified(database.db);
    expect(findings).toMatchObject([{ kind: 'forged' }]);
    expect(findings[0]?.message).toMatch(/in a chain that no valid seal opened/);
  });

  describe('seals', () => {
    const { privateKey: other } = generateKeyPairSync('ed25519');

    it('of a former key hold by that key alone: a later one says nothing of those before', async () => {
      const next = auditProcess(database.db, folder.path, sealsIn(database.db, { key: other }));
      next.spool(3);
      await next.stop();
      const keys = [other, createPublicKey(SEAL_KEY)];
      expect(await verified(database.db, { keys })).toMatchObject({ records: 23, findings: [] });
      for (const key of keys) {
        expect((await verified(database.db, { keys: [key] })).findings[0]).toMatchObject({
          kind: 'forged',
          message: expect.stringMatching(/was signed by an unknown key/),
        });
      }
    });

    it('from before the first key hold by their hashes, and are counted', async () => {
      await raw('truncate audit_records, audit_seals');
      const unsigned = auditProcess(database.db, folder.path, sealsIn(database.db, { key: null }));
      unsigned.spool(3);
      await unsigned.stop();
      const next = auditProcess(database.db, folder.path);
      next.spool(3);
      await next.stop();
      expect(await verified(database.db)).toMatchObject({ records: 6, seals: 4, unsigned: 2, findings: [] });
    });

    it('without any key hold by their hashes alone, where no key is known', async () => {
      expect(await verified(database.db, { keys: [] })).toMatchObject({ records: RECORDS, findings: [] });
    });
  });
});
