import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type AuditRecord,
  columnDigests,
  fixedColumnsOf,
  RECORD_COLUMNS,
  recordHash,
} from '../../src/audit/audit-record.ts';
import { AuditRetention, setAuditRetention } from '../../src/audit/audit-retention.ts';
import type { Seal } from '../../src/audit/seals.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import {
  type AuditProcess,
  addUser,
  auditProcess,
  auditRecord,
  eraseNoted,
  verified,
} from '../support/audit/chain-fixture.ts';
import { SEAL_KEY, sealsIn } from '../support/harness/audit-seals.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';

/** A time of seals that say of no record that it is young. */
const LONG_AGO_MS = Date.UTC(2026, 0, 1);

const RECORDS = 20;
const OTHER_CHAIN = '01234567-89ab-7cde-8f01-23456789abcd';

/** A record as it is stored, with the hash before and its salts in hexadecimal digits. */
type StoredRow = AuditRecord & { chain_index: string; previous: string; salted: string };

describeReal('postgres', 'audit verify', () => {
  const database = beforeTests(realDatabase);
  let folder: Awaited<ReturnType<typeof emptyFolder>>;

  beforeEach(async () => {
    folder = await emptyFolder();
    await raw('truncate audit_records, audit_seals');
  });

  const raw = (statement: string) =>
    database.db.unscoped('test').raw((sql) => sql<Record<string, string>>`${sql.raw(statement)}`);
  const sealed = async () =>
    (await raw('select body from audit_seals order by position')).map(({ body }) => JSON.parse(body ?? ''));
  const segments = () => readdirSync(folder.path).filter((name) => name.endsWith('.seg'));

  /** Lets the next process on the folder write what was left, and end. */
  async function takeOver(): Promise<void> {
    const next = auditProcess(database.db, folder.path);
    await next.drain();
    await next.stop();
  }

  describe('succeeds', () => {
    it.each([
      ['before any of its records is stored', []],
      ['when some of its records are stored', ['drain', 'spool']],
      ['when all of its records are stored', ['drain']],
      ['after a checkpoint', ['drain', 'checkpoint']],
      ['with records after a checkpoint', ['drain', 'checkpoint', 'spool']],
    ] as const)('for a process killed %s, whose chain the next process closes', async (_name, steps) => {
      const killed = auditProcess(database.db, folder.path);
      killed.spool(10);
      for (const step of steps) await (step === 'spool' ? killed.spool(10) : killed[step]());
      killed.kill();
      const records = (await raw('select 1 from audit_records')).length;
      expect(await verified(database.db)).toMatchObject({ records, findings: [] });
      await takeOver();
      const all = 10 + 10 * steps.filter((step) => step === 'spool').length;
      expect(await verified(database.db)).toMatchObject({ records: all, findings: [] });
      expect((await sealed()).at(-1)).toMatchObject({ kind: 'closed', chain: killed.chain, index: all - 1 });
      expect(readdirSync(folder.path)).toEqual([]);
    });

    it.each([
      ['in the middle of a line', 25],
      ['in its first line', 3],
    ])('for a spool that lost its end, cut %s: the lost records are a gap', async (_name, kept) => {
      const killed = auditProcess(database.db, folder.path);
      killed.spool(5);
      await killed.drain();
      killed.spool(10);
      await killed.checkpoint();
      killed.kill();
      const [name = ''] = segments();
      const bytes = readFileSync(join(folder.path, name));
      const cut = kept === 3 ? 100 : bytes.indexOf(10, Math.floor(bytes.length / 2)) + kept;
      truncateSync(join(folder.path, name), cut);
      await takeOver();
      const { records, findings } = await verified(database.db);
      expect(findings).toEqual([]);
      expect(records).toBeLessThan(15);
      expect(await sealed()).toContainEqual(
        expect.objectContaining({ kind: 'gap', reason: 'lost', chain: killed.chain, from: records, to: 14 }),
      );
    });

    it('for a damaged spool: the unreadable records are a gap', async () => {
      const killed = auditProcess(database.db, folder.path);
      killed.spool(9);
      killed.kill();
      const path = join(folder.path, segments()[0] ?? '');
      const bytes = readFileSync(path);
      let at = 0;
      for (let line = 0; line < 4; line += 1) at = bytes.indexOf(10, at) + 1;
      bytes.fill('x', at + 20, at + 40);
      writeFileSync(path, bytes);
      await takeOver();
      expect(await verified(database.db)).toMatchObject({ records: 8, findings: [] });
      expect(await sealed()).toContainEqual(expect.objectContaining({ kind: 'gap', from: 4, to: 4, reason: 'lost' }));
    });

    it('D7-10: after an erasure, which keeps the digests of bodies and query, deletes their salts and blanks nothing else', async () => {
      const [user, other] = [await addUser(database.db), await addUser(database.db)];
      const process = auditProcess(database.db, folder.path);
      const noted = [[user], [other, user], [other], null].map((noted_users) => auditRecord({ noted_users }));
      process.spool([...noted, auditRecord({ noted_users: [user], query: null, request_body: '' })]);
      await process.stop();
      const columns = 'id, at, path, headers, correlation_id, subject, noted_users, request_bytes';
      const before = await raw(`select ${columns} from audit_records order by chain_index`);
      expect(await eraseNoted(database.db, user)).toBe(3);
      expect(await eraseNoted(database.db, user)).toBe(0);
      expect(await raw(`select ${columns} from audit_records order by chain_index`)).toEqual(before);
      const erased = await raw(`
        select chain_index from audit_records where query is null and request_body is null and response_body is null
          and salts is null and array_length(digests, 1) = 3 order by chain_index`);
      expect(erased.map(({ chain_index }) => chain_index)).toEqual(['0', '1', '4']);
      expect(await verified(database.db)).toMatchObject({ records: 5, findings: [] });
      await raw("delete from audit_seals where kind = 'erasure'");
      const { findings } = await verified(database.db, { keys: [] });
      expect(findings.filter(({ kind }) => kind === 'erased')).toHaveLength(3);
    });

    it('D7-10: after several processes concurrently erased users noted in the same records', async () => {
      const users = await Promise.all(Array.from({ length: 4 }, () => addUser(database.db)));
      const process = auditProcess(database.db, folder.path);
      process.spool(Array.from({ length: 120 }, () => auditRecord({ noted_users: users })));
      await process.stop();
      const counts = await Promise.all(users.map((user) => eraseNoted(database.db, user)));
      expect(counts.reduce((sum, count) => sum + count)).toBe(120);
      expect(await verified(database.db)).toMatchObject({ records: 120, findings: [] });
    });

    it('if each seal is in the database, and the lock of seals is free, before the seal is exported', async () => {
      await using other = await openDatabase({ url: database.url });
      const seen: string[] = [];
      const sink = async ({ body }: Seal) => {
        const { position, kind } = JSON.parse(body);
        const rows = await other.db.unscoped('test').raw(
          (sql) => sql<{ isFree: boolean }>`
            select pg_try_advisory_xact_lock(4273005) as "isFree" from audit_seals where position = ${position}`,
        );
        if (rows[0]?.isFree) seen.push(kind);
      };
      await raw(`select audit_make_month('2026-08-01')`);
      await setAuditRetention(database.db, 1);
      const seals = sealsIn(database.db, { sink });
      const process = auditProcess(
        database.db,
        folder.path,
        sealsIn(database.db, { sink, nowMs: () => LONG_AGO_MS }),
        0,
      );
      process.spool([auditRecord({ at: '2026-08-05T00:00:00.000Z' }), auditRecord({ at: '2026-11-01T00:00:00.000Z' })]);
      await process.drain();
      await process.checkpoint();
      const nowMs = Date.UTC(2026, 10, 24);
      await new AuditRetention({ db: database.db, seals, nowMs: () => nowMs, retentionDays: 10 }).enforce();
      await process.stop();
      expect(seen).toEqual((await sealed()).map(({ kind }) => kind));
      expect(seen).toEqual(['opened', 'checkpoint', 'dropped', 'dropped', 'closed']);
    });

    it('for a time range, and does not report records at its edges as missing', async () => {
      const process = auditProcess(database.db, folder.path);
      const at = (minute: number) => auditRecord({ at: `2026-11-24T10:${String(minute).padStart(2, '0')}:00.000Z` });
      process.spool([0, 2, 1, 4, 3, 6, 5, 8, 7, 9].map(at));
      await process.stop();
      const times = (from: number, to: number) => ({
        from: `2026-11-24T10:0${from}:00Z`,
        to: `2026-11-24T10:0${to}:00Z`,
      });
      for (let from = 0; from < 9; from += 1) {
        for (let to = from + 1; to < 9; to += 1) {
          expect(await verified(database.db, times(from, to))).toMatchObject({ records: to - from, findings: [] });
        }
      }
      await raw('delete from audit_records where chain_index = 5');
      expect((await verified(database.db, times(2, 9))).findings[0]?.message).toMatch(/^record 5 of/);
      expect((await verified(database.db, times(0, 3))).findings).toEqual([]);
    });

    it('only with every exported seal, and no other seal between them', async () => {
      const kept: Seal[] = [];
      const sink = async (seal: Seal) => void kept.push(seal);
      const process = auditProcess(database.db, folder.path, sealsIn(database.db, { sink }));
      process.spool(5);
      await process.drain();
      await process.checkpoint();
      process.spool(5);
      await process.stop();
      async function* lines(extra: string[] = []) {
        for (const seal of kept) yield JSON.stringify(seal);
        yield* extra;
      }
      const found = async (extra?: string[]) => (await verified(database.db, { keptSeals: lines(extra) })).findings;
      expect(await found()).toEqual([]);
      expect(await found(['', '{"body":"{'])).toMatchObject([
        { kind: 'changed', message: 'line 5 of the checkpoint file is not a valid seal' },
      ]);
      const [second] = kept.splice(1, 1);
      expect(await found()).toMatchObject([{ kind: 'not kept', message: expect.stringMatching(/^seal 2 is in the/) }]);
      kept.push(...(second ? [second] : []));
      expect(await found()).toEqual([]);
      await raw('delete from audit_seals where position = 3');
      await raw('delete from audit_records where chain_index > 4');
      expect((await verified(database.db)).findings).toEqual([]);
      expect(await found()).toMatchObject([
        { kind: 'cut off', message: expect.stringMatching(/^seal 3 is in line \d+ .* but not in/) },
      ]);
    });
  });

  describe('with 20 records and three seals', () => {
    let chained: AuditProcess;

    beforeEach(async () => {
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
      ['several records are deleted', deleted('chain_index between 3 and 12'), 'missing', /^records 3 to 12 of/],
      ['the last record is deleted', deleted(place(19)), 'cut off', /^record 19 of/],
      ['all records are deleted', 'truncate audit_records', 'cut off', /^records 0 to 19 of/],
      ['the contents of two records are exchanged', swap(COLUMNS, 4, 9), 'changed', /^record 4 of/],
      ['the chain positions of two records are exchanged', swap(CHAINED, 4, 9), 'changed', /^record 4 of/],
      ['a record is copied', copyOf(4, 'gen_random_uuid()', 'at'), 'twice', /^record 4 of/],
      ['a record is copied to another time', copyOf(4, 'id', "at + interval '1 day'"), 'twice', /^record 4 of/],
      ['a chain is renamed', `update audit_records set chain_id = '${OTHER_CHAIN}'`, 'changed', /^record 0 of/],
      ['a seal is deleted', 'delete from audit_seals where position = 2', 'missing', /^seal 2 is missing/],
      ['the first seal is deleted', 'delete from audit_seals where position = 1', 'missing', /^seal 1 is missing/],
      [
        'all seals are deleted',
        'truncate audit_seals',
        'forged',
        /^record 19 of .* belongs to a chain that no valid seal/,
      ],
      [
        'the body of a seal is changed',
        seal(`body = replace(body, '"index":9', '"index":8')`),
        'forged',
        /^seal 2 has an invalid sig/,
      ],
      ['the signature of a seal is removed', seal('signature = null'), 'forged', /^seal 2 has/],
      ['the row of a seal contradicts its body', seal("kind = 'gap'"), 'changed', /^seal 2 was altered/],
      ['a seal is not JSON', seal("body = 'x'"), 'changed', /^seal 2 was altered/],
    ])('reports when %s', async (_name, change, kind, message) => {
      await raw(change);
      const { findings } = await verified(database.db);
      expect(findings[0]).toMatchObject({ kind, message: expect.stringMatching(message) });
    });

    it('reports nothing when the last seal is deleted with its records, which nothing else proves', async () => {
      await raw('delete from audit_seals where position = 3; delete from audit_records where chain_index > 12');
      expect((await verified(database.db)).findings).toEqual([]);
    });

    /** Rewrites records from an index on, with hashes that follow on each other, as somebody would who knows how. */
    async function forge(from: number, change: string, chain = chained.chain): Promise<void> {
      await raw(`update audit_records set ${change} where chain_index = ${from} and chain_id = '${chain}'`);
      const rows = (await raw(`
        select *, encode(previous_hash, 'hex') as previous, encode(salts, 'hex') as salted
        from audit_records where chain_id = '${chain}' and chain_index >= ${from} order by chain_index`)) as unknown as StoredRow[];
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
    ])(
      'reports the records between two seals whose hashes were recomputed from record %d on',
      async (from, message) => {
        await forge(from, 'status_code = 500');
        const { findings } = await verified(database.db);
        expect(findings[0]).toMatchObject({ kind: 'forged', message: expect.stringMatching(message) });
      },
    );

    it('reports a chain that no valid seal opened', async () => {
      await raw(`${copyOf(0, 'gen_random_uuid()', 'at')}; update audit_records set chain_id = '${OTHER_CHAIN}'
        where id = (select id from audit_records where chain_index = 0 order by ctid desc limit 1)`);
      await forge(0, 'status_code = 200', OTHER_CHAIN);
      const { findings } = await verified(database.db);
      expect(findings).toMatchObject([{ kind: 'forged' }]);
      expect(findings[0]?.message).toMatch(/belongs to a chain that no valid seal opened/);
    });

    describe('seals', () => {
      const { privateKey: other } = generateKeyPairSync('ed25519');

      it('signed with a former key verify only with that key, and those of a later key only with the later one', async () => {
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

      it('from before the first key verify by their hashes, and are counted as unsigned', async () => {
        await raw('truncate audit_records, audit_seals');
        const unsigned = auditProcess(database.db, folder.path, sealsIn(database.db, { key: null }));
        unsigned.spool(3);
        await unsigned.stop();
        const next = auditProcess(database.db, folder.path);
        next.spool(3);
        await next.stop();
        expect(await verified(database.db)).toMatchObject({ records: 6, seals: 4, unsigned: 2, findings: [] });
      });

      it('verify by their hashes alone if no key is given', async () => {
        expect(await verified(database.db, { keys: [] })).toMatchObject({ records: RECORDS, findings: [] });
      });
    });
  });
});
