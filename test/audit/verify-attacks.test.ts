import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AuditRecord, columnDigests, fixedColumnsOf, NO_HASH, recordHash } from '../../src/audit/audit-record.ts';
import { AuditRetention, setAuditRetention } from '../../src/audit/audit-retention.ts';
import { keyId, type Seal, sealHash } from '../../src/audit/seals.ts';
import { AuditRedaction } from '../../src/audit/verification/redaction.ts';
import {
  type AuditProcess,
  addUser,
  auditProcess,
  auditRecord,
  eraseCall,
  eraseNoted,
  verified,
} from '../support/audit/chain-fixture.ts';
import { OTHER_VALUES } from '../support/audit/chain-history.ts';
import { SEAL_KEY, sealsIn } from '../support/harness/audit-seals.ts';
import { type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';

const DAY_MS = 24 * 3_600_000;
const { privateKey: FOREIGN_KEY } = generateKeyPairSync('ed25519');

describeReal('postgres', 'audit verify reports', () => {
  let database: RealDatabase;
  let folder: Awaited<ReturnType<typeof emptyFolder>>;
  /**
   * The process whose records are attacked: 0 to 4 are dropped, 10 and 11 refused, 14 is erased, 15 could be, and 19 is the
   * last one.
   */
  let closed: AuditProcess;
  /** Another one, with records 0 to 29. */
  let running: AuditProcess;
  /** A user that record 15 has noted, and who is not erased. */
  let user: string;

  const raw = (statement: string) =>
    database.db.unscoped('test').raw((sql) => sql<Record<string, string>>`${sql.raw(statement)}`);

  beforeAll(async () => {
    database = await realDatabase();
    folder = await emptyFolder();
    const nowMs = Date.now();
    const [erased, kept] = [await addUser(database.db), await addUser(database.db)];
    user = kept;
    closed = auditProcess(database.db, folder.path, sealsIn(database.db), nowMs - 20 * DAY_MS);
    const old = new Date(nowMs - 9 * DAY_MS).toISOString();
    closed.spool(Array.from({ length: 5 }, () => auditRecord({ at: old })));
    closed.spool(5);
    closed.spool([auditRecord({ status_code: 418 }), auditRecord({ status_code: 418 })]);
    closed.spool(2);
    closed.spool([auditRecord({ noted_users: [erased] }), auditRecord({ noted_users: [kept] })]);
    closed.spool(4);
    await raw('alter table audit_records add constraint no_teapot check (status_code <> 418)');
    await closed.drain();
    await raw('alter table audit_records drop constraint no_teapot');
    await closed.stop();
    running = auditProcess(database.db, folder.path);
    for (let count = 0; count < 2; count += 1) {
      running.spool(15);
      await running.drain();
      await running.checkpoint();
    }
    await setAuditRetention(database.db, 8);
    await new AuditRetention({
      ...{ db: database.db, seals: sealsIn(database.db), nowMs: () => nowMs, retentionDays: 8 },
    }).enforce();
    expect(await eraseNoted(database.db, erased)).toBe(1);
    await raw('create table built_records as select * from audit_records');
    await raw('create table built_seals as select * from audit_seals');
  });

  afterAll(async () => {
    await database[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  beforeEach(async () => {
    await raw('truncate audit_records, audit_seals');
    await raw('insert into audit_records select * from built_records');
    await raw('insert into audit_seals select * from built_seals');
  });

  /** Lets a process of the service take over the records of dead processes, write more, and stop. */
  async function write(...records: AuditRecord[]): Promise<void> {
    const process = auditProcess(database.db, folder.path);
    process.spool(records);
    await process.drain();
    await process.stop();
  }

  it('nothing for unaltered records and seals', async () => {
    expect(await verified(database.db)).toMatchObject({ records: 43, chains: 2, findings: [] });
  });

  const at = (index: number) => `chain_id = '${closed.chain}' and chain_index = ${index}`;

  /** Beside one other value of each column: what a database takes for the value before, or nearly. */
  const CHANGES = `
    at | at - interval '1 microsecond' | 'infinity' | '-infinity' | at + interval '1 year'
    at | (to_char(at, 'YYYY-MM-DD HH24:MI:SS.US') || '+00 BC')::timestamptz
    elapsed | 'infinity' | 'nan' | -elapsed | elapsed + 1e-15
    request_bytes | 9223372036854775807
    response_bytes | -9223372036854775808 | 4294967305
    status_code | -200
    headers | 'null' | '5' | '[]' | '"host"' | headers || '{"host":1}' | headers || '{"host":null}'
    headers | headers || '{"host":["a"]}' | headers || '{"accept":"b,c"}' | headers || '{"accept":["c","b"]}'
    headers | headers || '{"__proto__":{"a":1}}' | headers || '{"n":1e400}' | headers - 'accept'
    headers | headers || ('{"x-correlation-id":"' || normalize('ü', NFD) || '"}')::jsonb
    method | 'post' | method || chr(9) || '200'
    path | normalize(path || 'ü', NFD) | path || chr(8203)
    query | '' | '\\N' | null
    request_body | '' | null
    real_ip | '10.0.0.01'
    noted_users | '{}'
    salts | set_byte(salts, 0, get_byte(salts, 0) # 1) | salts || salts | '\\x' | null
    hash | hash || '\\x00' | '\\x' | null
    previous_hash | previous_hash || '\\x00' | null
    digests | '{}' | array['a', null] | (select digests from audit_records where digests is not null)
    digests | array['a', 'b', 'c'], salts = null, query = null, request_body = null, response_body = null
    chain_id | null
    chain_index | null | -8 | 9223372036854775807`;
  const changes = CHANGES.trim()
    .split('\n')
    .flatMap((line) => {
      const [column = '', ...values] = line.trim().split(' | ');
      return values.map((value): [string, string] => [column, value]);
    });

  it.each([...Object.entries(OTHER_VALUES), ...inTurn(changes, 3, 0)])('%s changed to %s', async (column, value) => {
    await raw(`update audit_records set ${column} = ${value} where ${at(8)}`);
    const { findings } = await verified(database.db);
    const kind = column.startsWith('chain_') && value !== '-8' ? 'missing' : 'changed';
    expect(findings.map((finding) => finding.kind)).toContain(value.includes('salts = null') ? 'erased' : kind);
    expect(findings.map(({ message }) => message).join('\n')).toMatch(/records? (8|-8) /);
  });

  it('a changed salt of a null column', async () => {
    await write(auditRecord({ query: null }));
    await raw(`update audit_records set salts = overlay(salts placing '\\x00000000' from 1) where query is null`);
    expect((await verified(database.db)).findings).toMatchObject([{ kind: 'changed' }]);
  });

  it.each(["'null'", "'5'", "'[]'"])('empty headers changed to %s', async (value) => {
    await write(auditRecord({ headers: {} }));
    await raw(`update audit_records set headers = ${value} where headers = '{}'`);
    expect((await verified(database.db)).findings).toMatchObject([{ kind: 'changed' }]);
  });

  /** Adds a record, with a hash as it should be, at a place of a chain. */
  async function forgeAt(chain: string, index: number, previous: string, more = {}): Promise<void> {
    const record = auditRecord({ method: 'FORGED', ...more });
    const salts = '00'.repeat(48);
    const hash = recordHash({ chain, index, previous }, fixedColumnsOf(record), columnDigests(record, salts));
    const row = JSON.stringify({
      ...record,
      ...{
        chain_id: chain,
        chain_index: index,
        previous_hash: `\\x${previous}`,
        hash: `\\x${hash}`,
        salts: `\\x${salts}`,
      },
    });
    await raw(`insert into audit_records select * from json_populate_record(null::audit_records, $row$${row}$row$)`);
  }

  const hashAt = async (chain: string, index: number) =>
    (
      await raw(
        `select encode(hash, 'hex') as hash from audit_records where chain_id = '${chain}' and chain_index = ${index}`,
      )
    )[0]?.hash ?? NO_HASH;

  it.each([
    ['among records that the retention deleted', 2],
    ['as the last of the records that the retention deleted', 4],
    ['at the index of a record that the database rejected', 10],
    ['after the end of a closed chain', 20],
    ['before the first record', -1],
  ])('a forged record %s', async (_name, index) => {
    await forgeAt(closed.chain, index, await hashAt(closed.chain, index - 1));
    const { findings } = await verified(database.db);
    expect(findings.length).toBeGreaterThan(0);
    expect(findings.map(({ message }) => message).join('\n')).toContain(`record ${index} of chain`);
  });

  it('a record forged at the index of a lost one', async () => {
    await sealsIn(database.db).add({ kind: 'gap', chain: running.chain, from: 30, to: 34, reason: 'lost' });
    await forgeAt(running.chain, 32, NO_HASH);
    expect((await verified(database.db)).findings).toMatchObject([{ kind: 'forged' }]);
  });

  it('records whose time is infinity', async () => {
    await forgeAt(running.chain, 8, NO_HASH, { at: 'infinity' });
    expect((await verified(database.db)).findings).toMatchObject([{ kind: 'twice' }]);
    await raw("update audit_records set chain_id = null where at = 'infinity'");
    expect((await verified(database.db)).findings).toMatchObject([{ kind: 'unchained' }]);
  });

  it('nothing for a rejected record that is stored later, but another record in its place', async () => {
    await closed.retry();
    expect(await verified(database.db)).toMatchObject({ records: 45, findings: [] });
    await raw(`delete from audit_records where ${at(11)}`);
    await forgeAt(closed.chain, 11, await hashAt(closed.chain, 10));
    const [first] = (await verified(database.db)).findings;
    expect(first).toMatchObject({ kind: 'forged', message: expect.stringMatching(/^record 11 of/) });
  });

  it('a record with a greater index and no hash, and does not stop later writes', async () => {
    const killed = auditProcess(database.db, folder.path);
    killed.spool(3);
    await killed.drain();
    killed.spool(2);
    killed.kill();
    await forgeAt(killed.chain, 7, NO_HASH);
    await raw(`update audit_records set hash = null, chain_index = 9223372036854775807
      where chain_id = '${killed.chain}' and method = 'FORGED'`);
    await write(auditRecord());
    const { records, findings } = await verified(database.db);
    expect(records).toBe(43 + 7);
    expect(findings[0]?.message).toContain('record 9223372036854775807 of chain');
  });

  it.each([
    ['a body', "request_body = repeat('x', 20000000)"],
    ['headers', "headers = jsonb_build_object('x', repeat('x', 20000000))"],
    ['noted users', 'noted_users = (select array_agg(id) from audit_records, generate_series(1, 2500))'],
    ['digests', "digests = array_fill(repeat('x', 1000000), array[20])"],
  ])('a record longer than a service writes, without reading it: %s', async (_what, change) => {
    await raw(`update audit_records set ${change} where ${at(8)}`);
    const { records, findings } = await verified(database.db);
    expect(records).toBe(42);
    expect(findings).toContainEqual({
      kind: 'changed',
      message: expect.stringMatching(/is longer than the gateway ever writes/),
    });
  });

  it('records deleted before the next process closes the chain, if a seal covers them', async () => {
    const killed = auditProcess(database.db, folder.path);
    killed.spool(10);
    await killed.drain();
    await killed.checkpoint();
    killed.spool(5);
    killed.kill();
    await raw(`delete from audit_records where chain_id = '${killed.chain}' and chain_index > 5`);
    await write();
    const { findings } = await verified(database.db);
    expect(findings).toMatchObject([{ kind: 'missing', message: expect.stringMatching(/^records 6 to 9 of/) }]);
  });

  const erasedPlace = 'chain_index = 14 and digests is not null';

  it('an erased record that has a body again', async () => {
    await raw(`update audit_records set request_body = 'x' where ${erasedPlace}`);
    expect((await verified(database.db)).findings).toMatchObject([{ kind: 'changed' }]);
    await raw(`update audit_records set request_body = null, salts = '\\x00' where ${erasedPlace}`);
    expect((await verified(database.db)).findings).toMatchObject([{ kind: 'changed' }]);
  });

  it('D1-18: a record that was altered before its redaction, also when it is set back', async () => {
    const redaction = new AuditRedaction({
      db: database.db,
      seals: sealsIn(database.db),
      filter: { clientId: 'c', until: '2100-01-01' },
    });
    await raw(`update audit_records set status_code = 201 where ${at(15)}`);
    await redaction.redact({ by: 'ann', reason: 'r', filter: {} }, () => undefined);
    const changed = [{ kind: 'changed', message: expect.stringMatching(/^record 15 /) }];
    expect((await verified(database.db)).findings).toMatchObject(changed);
    await raw(`update audit_records set status_code = 200 where ${at(15)}`);
    expect((await verified(database.db)).findings).toMatchObject(changed);
  });

  it('D7-10: a record erased without a seal that erases one of its users', async () => {
    await raw(`select ${eraseCall(user)}`);
    const { findings } = await verified(database.db);
    expect(findings).toMatchObject([
      { kind: 'erased', message: expect.stringMatching(/^record 15 of .* no seal says/) },
    ]);
  });

  it('D7-10: exchanged digests of erased records', async () => {
    expect(await eraseNoted(database.db, user)).toBe(1);
    expect((await verified(database.db)).findings).toEqual([]);
    await raw(`
      update audit_records a set digests = (select digests from audit_records b
        where b.chain_id = a.chain_id and b.chain_index = 29 - a.chain_index)
      where ${at(14)} or ${at(15)}`);
    expect((await verified(database.db)).findings).toMatchObject([{ kind: 'changed' }, { kind: 'changed' }]);
  });

  describe('seals', () => {
    /** Adds a seal as somebody who may write to the database, at the end or at a position of their choice. */
    async function addSeal(statement: object, key: KeyObject | null, more: { position?: number; raw?: string } = {}) {
      const [last] = await raw(`
        select position, body, encode(signature, 'hex') as signature from audit_seals order by position desc limit 1`);
      const position = more.position ?? Number(last?.position ?? 0) + 1;
      const previous = last ? sealHash(last as unknown as Seal) : NO_HASH;
      const content = { position, previous, at: new Date().toISOString(), key: key && keyId(key), ...statement };
      const body = more.raw ?? JSON.stringify(content);
      const signature = key ? `'\\x${sign(null, Buffer.from(body), key).toString('hex')}'` : 'null';
      const { kind = 'gap', chain } = statement as { kind?: string; chain?: unknown };
      await raw(
        `insert into audit_seals values (${position}, ${typeof chain === 'string' ? `'${chain}'` : 'null'}, '${kind}', $body$${body}$body$, ${signature})`,
      );
      return position;
    }

    const KEYS: [string, KeyObject | null, string][] = [
      ['a key of their own', FOREIGN_KEY, 'was signed by an unknown key'],
      ['no key', null, 'has no signature, although'],
    ];

    it.each(KEYS)(
      'added by somebody else with %s, even if a service added seals afterwards',
      async (_name, key, fault) => {
        await raw(`delete from audit_records where ${at(8)}`);
        const position = await addSeal({ kind: 'gap', chain: closed.chain, from: 8, to: 8, reason: 'lost' }, key);
        await write(auditRecord());
        const { findings } = await verified(database.db);
        expect(findings[0]).toMatchObject({
          kind: 'forged',
          message: expect.stringMatching(new RegExp(`^seal ${position} ${fault}`)),
        });
      },
    );

    it.each([0, -1])('added at position %d, and the erasure that they claim', async (position) => {
      await raw(`select ${eraseCall(user)}`);
      await addSeal({ kind: 'erasure', user }, null, { position });
      const { findings } = await verified(database.db);
      expect(findings).toContainEqual({ kind: 'erased', message: expect.stringMatching(/^record 15 of/) });
      expect(findings).toContainEqual({
        kind: 'forged',
        message: expect.stringMatching(new RegExp(`^seal ${position}\\b`)),
      });
    });

    it.each([
      ['records that a checkpoint has not seen yet', 29, -9],
      ['a chain younger than the cutoff', 14, -9],
      ['records by a cutoff in the future', 29, 9],
    ])('that claim to drop %s', async (_name, to, days) => {
      await raw(`delete from audit_records where chain_id = '${running.chain}'`);
      const before = new Date(Date.now() + days * DAY_MS).toISOString();
      const ranges = [{ chain: running.chain, from: 0, to }];
      const position = await addSeal({ kind: 'dropped', before, ranges, unchained: 0 }, SEAL_KEY);
      const { findings } = await verified(database.db);
      expect(findings).toContainEqual({
        kind: 'forged',
        message: expect.stringMatching(new RegExp(`^seal ${position} drops record ${to} of`)),
      });
      expect(findings).toContainEqual(expect.objectContaining({ kind: 'cut off' }));
    });

    it.each(['"x"', '{"spooled":"many"}', '{"spooled":1e300}', 'no JSON', 'null'])(
      'with the content %s, and still closes the chain',
      async (body) => {
        const killed = auditProcess(database.db, folder.path);
        killed.spool(3);
        await killed.drain();
        await killed.checkpoint();
        killed.spool(2);
        killed.kill();
        await raw(
          `insert into audit_seals select max(position) + 1, '${killed.chain}', 'checkpoint', '${body}' from audit_seals`,
        );
        await write(auditRecord());
        const { records, findings } = await verified(database.db);
        expect({ records, kinds: findings.map(({ kind }) => kind) }).toEqual({ records: 43 + 6, kinds: ['changed'] });
      },
    );

    it.each(KEYS)(
      'with a greater index, added with %s, and the replaced record that they would hide',
      async (_name, key) => {
        const process = auditProcess(database.db, folder.path);
        process.spool(3);
        await process.drain();
        const { chain } = process;
        await addSeal({ kind: 'checkpoint', chain, index: 2 ** 40, spooled: 2 ** 40, hash: 'a'.repeat(64) }, key);
        await process.checkpoint();
        await raw(`delete from audit_records where chain_id = '${chain}' and chain_index = 2`);
        await forgeAt(chain, 2, await hashAt(chain, 1));
        const { findings } = await verified(database.db);
        expect(findings.map(({ message }) => message)).toContainEqual(
          expect.stringMatching(/^one of records 0 to 2 of .* was replaced/),
        );
        await process.stop();
      },
    );

    it('of unknown kinds, and still verifies every other seal and record', async () => {
      await addSeal({ kind: 'unheard-of' }, null, { raw: '{"kind":"unheard-of"}' });
      await write(auditRecord(), auditRecord());
      await raw(`delete from audit_records where ${at(8)}`);
      const { records, chains, findings } = await verified(database.db);
      expect({ records, chains }).toEqual({ records: 44, chains: 3 });
      expect(findings.map(({ kind }) => kind).sort()).toEqual(['changed', 'missing']);
    });

    it.each(['null', '"x"', '[]', '{"', '['.repeat(50_000), '{}'])('with a malformed body: %.20s', async (text) => {
      await addSeal({}, null, { raw: text });
      expect((await verified(database.db)).findings).toMatchObject([{ kind: 'changed' }]);
    });

    const GARBAGE: [string, object][] = [
      ['dropped', {}],
      ['dropped', { ranges: null, before: 5 }],
      ['dropped', { ranges: [null], before: '', unchained: 0 }],
      ['dropped', { ranges: [{ chain: 'x', from: 'a', to: {} }], before: '', unchained: 0 }],
      ['dropped', { ranges: [{ chain: 'x', from: 0, to: 1e300 }], before: '', unchained: 0 }],
      ['erasure', {}],
      ['erasure', { user: 5 }],
      ['opened', { chain: 5 }],
      ['gap', { from: '1', to: null, reason: 5 }],
      ['checkpoint', { index: 'x', hash: null, spooled: [] }],
      ['closed', { index: 1e300, hash: 7 }],
      ['unheard-of', {}],
      ['opened', { at: 'yesterday' }],
      ['opened', { key: {} }],
    ];

    it.each(GARBAGE)('of the kind %s with the malformed content %j', async (kind, more) => {
      const position = await addSeal(
        { kind, ...(kind === 'dropped' || kind === 'erasure' ? {} : { chain: closed.chain }), ...more },
        null,
      );
      for (const keys of [[SEAL_KEY], []]) {
        const { findings } = await verified(database.db, { keys });
        expect(findings.length).toBeGreaterThan(0);
        expect(findings[0]?.message).toMatch(new RegExp(`\\b${position}\\b`));
      }
    });

    it('of which the first has an invalid time', async () => {
      await raw('truncate audit_seals');
      await addSeal({ kind: 'opened', chain: closed.chain, at: 'x' }, null);
      const { findings } = await verified(database.db);
      expect(findings[0]).toMatchObject({ kind: 'changed', message: expect.stringMatching(/^seal 1 was altered/) });
    });

    const fourth = 'from audit_seals where position = 4';

    it.each([
      [
        'the signatures of two seals are exchanged',
        'update audit_seals a set signature = (select signature from audit_seals b where b.position = 7 - a.position) where position in (3, 4)',
      ],
      ['a signature is empty', `update audit_seals set signature = '\\x' where position = 4`],
      ['a space is added to one', `update audit_seals set body = body || ' ' where position = 4`],
      [
        'one has a far greater position',
        `insert into audit_seals select 9223372036854775807, chain_id, kind, body, signature ${fourth}`,
      ],
    ])('when %s', async (_name, change) => {
      await raw(change);
      for (const keys of [[SEAL_KEY], []]) {
        expect((await verified(database.db, { keys })).findings.length).toBeGreaterThan(0);
      }
    });
  });
});
