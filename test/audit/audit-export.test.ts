import { createHash, createPublicKey, verify } from 'node:crypto';
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { AuditRecord } from '../../src/audit/audit-record.ts';
import { AuditErasure } from '../../src/audit/erasure.ts';
import { csvRecord } from '../../src/audit/export/csv.ts';
import { ExportFolder } from '../../src/audit/export/export-targets.ts';
import { exportAudit } from '../../src/audit/export/record-export.ts';
import { AuditRedaction } from '../../src/audit/verification/redaction.ts';
import { addUser, auditProcess, auditRecord, NODE } from '../support/audit/chain-fixture.ts';
import { history, live } from '../support/audit/chain-history.ts';
import {
  type Changes,
  SIGNING_KEY,
  sealsTo,
  startVerifier,
  tampered,
  verifiedByScript,
} from '../support/audit/exports.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { SEAL_KEY, sealsIn } from '../support/harness/audit-seals.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder, type TestFolder } from '../support/start/folders.ts';

const OTHER = 'bbbbbbbb-0000-4000-8000-000000000002';
/** In every text of a record of another tenant. */
const FOREIGN = 'foreign';
const RUNS = inject('isThorough') ? 200 : 3;

const foreign = () =>
  auditRecord({
    ...{ node_id: OTHER, path: `/v1/${FOREIGN}`, query: FOREIGN, subject: FOREIGN, client_id: FOREIGN },
    ...{ headers: { host: FOREIGN }, request_body: FOREIGN, response_body: FOREIGN, correlation_id: FOREIGN },
  });

describeReal(['postgres', 'python'], 'audit export', () => {
  const verifier = beforeTests(startVerifier);
  let database: RealDatabase;
  let folder: TestFolder;
  let checkpoints: string;
  let november: string;
  let count = 0;

  const raw = (statement: string) =>
    database.db.unscoped('test').raw((sql) => sql<Record<string, string>>`${sql.raw(statement)}`);
  const newPath = () => join(folder.path, `export-${++count}`);
  const lines = (path: string, name: string) => readFileSync(join(path, name), 'utf8').split('\n').slice(0, -1);
  const records = (path: string) => lines(path, 'records.jsonl').map((line) => JSON.parse(line));
  const manifestOf = (path: string) => JSON.parse(readFileSync(join(path, 'manifest.json'), 'utf8'));
  const scripted = (path: string) => verifier.verify(path, checkpoints);

  async function exported(...flags: string[]) {
    const path = newPath();
    const env = { DATABASE_URL: database.url, AUDIT_SIGNING_KEY: SIGNING_KEY };
    const result = await portcullis(['audit', 'export', ...flags, '--out', path], env);
    return { path, ...result };
  }

  /** Of one process: 20 records in each of five minutes, of which two tenants have every second one; then three after the last checkpoint. */
  beforeAll(async () => {
    database = await realDatabase();
    folder = await emptyFolder();
    checkpoints = join(folder.path, 'seals.ndjson');
    writeFileSync(checkpoints, '');
    const spool = join(folder.path, 'spool');
    const seals = sealsTo(database.db, checkpoints);
    const [erased] = [await addUser(database.db)];
    const process = auditProcess(database.db, spool, seals);
    const own = (index: number): AuditRecord => auditRecord(OWN[index % OWN.length]);
    for (let minute = 0; minute < 5; minute += 1) {
      // In the fourth minute the tenant makes no request.
      process.spool(
        Array.from({ length: 20 }, (_, index) => (index % 2 === 0 && minute !== 3 ? own(index) : foreign())),
      );
      await process.drain();
      await process.checkpoint();
    }
    process.spool([auditRecord({ noted_users: [erased] }), auditRecord({ path: '/v1/redacted/secret' }), foreign()]);
    await process.drain();
    await process.checkpoint();
    const erasure = new AuditErasure(database.db, seals);
    await erasure.seal(erased);
    expect(await erasure.erase(erased)).toBe(1);
    const redaction = new AuditRedaction({ db: database.db, seals, filter: { pathPrefix: '/v1/redacted/' } });
    expect(await redaction.redact({ by: 'ann', reason: 'r', filter: {} }, () => undefined)).toBe(1);
    process.spool([auditRecord(), foreign(), auditRecord()]);
    await process.drain();
    november = (await exported('--node', NODE)).path;
  });

  afterAll(async () => {
    await database[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  it('D8-11: has the records of the filter as CSV and JSON Lines, in order, and a manifest that says by whom, of what and how many', async () => {
    const stored = await raw(`select id from audit_records where node_id = '${NODE}' order by chain_id, chain_index`);
    expect(records(november).map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
    expect(lines(november, 'records.csv').filter((line) => line.includes(NODE))).toHaveLength(stored.length);
    const manifest = manifestOf(november);
    expect(manifest).toMatchObject({
      ...{ format: 1, filter: { node: NODE }, asked_by: userInfo().username, period: { from: null } },
      // Between two checkpoints without a record of the tenant nothing is shown.
      ...{ records: 44, positions: 20 * 4 + 3 + 3, unsealed: 2, unchained: 0 },
      chains: [{ from: 0, to: 105, records: 44 }],
      verification: { findings: 0, records: 106 },
    });
    for (const [name, { bytes, sha256 }] of Object.entries<{ bytes: number; sha256: string }>(manifest.files)) {
      const content = readFileSync(join(november, name));
      expect([bytes, sha256]).toEqual([content.length, createHash('sha256').update(content).digest('hex')]);
    }
    const signed = readFileSync(join(november, 'manifest.json'));
    expect(verify(null, signed, createPublicKey(SEAL_KEY), readFileSync(join(november, 'manifest.sig')))).toBe(true);
    expect(readdirSync(november).sort()).toEqual([
      'chain.csv',
      'manifest.json',
      'manifest.sig',
      'records.csv',
      'records.jsonl',
    ]);
    for (const name of readdirSync(november)) expect(statSync(join(november, name)).mode & 0o777).toBe(0o600);
  });

  it('D8-21: each export has a record when it begins and one when it ends, with who, filter, period, count and the digest of the manifest', async () => {
    const { path } = await exported('--node', OTHER, '--since', '2026-01-01T00:00:00Z');
    const { period, records: count } = manifestOf(path);
    const stored = await raw(
      `select subject, status_code, request_body, chain_id from audit_records where path = 'audit export' order by position desc limit 2`,
    );
    const digest = createHash('sha256')
      .update(readFileSync(join(path, 'manifest.json')))
      .digest('hex');
    const filter = { node: OTHER, since: '2026-01-01T00:00:00Z' };
    expect(stored.map(({ request_body }) => JSON.parse(request_body ?? ''))).toEqual([
      { filter, period, records: count, manifest: digest },
      { filter, until: period.to },
    ]);
    for (const record of stored) {
      expect(record).toMatchObject({ subject: userInfo().username, status_code: 202, chain_id: expect.any(String) });
    }
    const env = { DATABASE_URL: database.url, AUDIT_SIGNING_KEY: SIGNING_KEY };
    expect(await portcullis(['audit', 'verify'], env)).toMatchObject({ code: 0 });
  });

  it('D8-11: is verified by the script of its page, with erased and redacted records, and shows nothing of other tenants', async () => {
    expect(await verifiedByScript(november, checkpoints, folder.path)).toEqual({
      code: 0,
      said: 'VERIFIED: 42 records by checkpoints, 2 only by the signature\n',
    });
    expect(records(november).find(({ digests }) => digests)).toMatchObject({
      query: null,
      request_body: null,
      salts: '',
    });
    for (const name of readdirSync(november)) expect(readFileSync(join(november, name), 'utf8')).not.toContain(FOREIGN);
    expect(readFileSync(join(november, 'records.jsonl'), 'utf8')).not.toContain(OTHER);
  });

  /** The lines of the record at a place among the exported ones. */
  const without = (place: number, all: string[]) => all.filter((_, index) => index !== place);
  const replaced = (place: number, all: string[], change: (line: string) => string) =>
    all.map((line, index) => (index === place ? change(line) : line));
  const leafOf = (path: string, place: number) => {
    const { chain, index } = records(path)[place];
    return lines(path, 'chain.csv').findIndex((line) => line.startsWith(`${chain},${index},`));
  };
  const more = (line: string) => line.replace(/"index":\d+,/, '"index":106,');

  describe('D8-11: the script finds in an export', () => {
    it.each<[string, () => Changes]>([
      [
        'a changed record',
        () => ({
          'records.jsonl': (all) => replaced(7, all, (line) => line.replace('"status_code":200', '"status_code":500')),
        }),
      ],
      [
        'a changed body',
        () => ({ 'records.jsonl': (all) => replaced(7, all, (line) => line.replace('ann@', 'bob@')) }),
      ],
      [
        'changed headers',
        () => ({ 'records.jsonl': (all) => replaced(7, all, (line) => line.replace('"host":"a"', '"host":"b"')) }),
      ],
      [
        'a record that is left out with its leaf',
        () => ({ 'records.jsonl': (all) => without(7, all), 'chain.csv': (all) => without(leafOf(november, 7), all) }),
      ],
      [
        'the first record of a minute, left out with all before it',
        () => ({ 'records.jsonl': (all) => without(0, all), 'chain.csv': (all) => without(1, all) }),
      ],
      ['an added record', () => ({ 'records.jsonl': (all) => [...all, more(all[3] ?? '')] })],
      [
        'a record that is there twice',
        () => ({ 'records.jsonl': (all) => [...all.slice(0, 4), all[3] ?? '', ...all.slice(4)] }),
      ],
      [
        'an added record with a leaf',
        () => ({
          'records.jsonl': (all) => [...all.slice(0, 8), all[7] ?? '', ...all.slice(8)],
          'chain.csv': (all) => [
            ...all.slice(0, leafOf(november, 7)),
            all[leafOf(november, 7)] ?? '',
            ...all.slice(leafOf(november, 7)),
          ],
        }),
      ],
      [
        'two records in each other’s place',
        () => ({ 'records.jsonl': (all) => [...all.slice(0, 4), all[5] ?? '', all[4] ?? '', ...all.slice(6)] }),
      ],
      [
        'the leaf of another',
        () => ({
          'chain.csv': (all) => replaced(4, all, (line) => line.replace(/,[0-9a-f]{64},/, `,${'0'.repeat(64)},`)),
        }),
      ],
      [
        'what is left of a redacted record, changed',
        () => ({
          'records.jsonl': (all) =>
            all.map((line) => (line.includes('":redacted"') ? line.replace('POST', 'GET') : line)),
        }),
      ],
    ])('%s, also where somebody has stolen the key and signed it anew', async (_what, changes) => {
      for (const isResigned of [false, true]) {
        const path = newPath();
        tampered(november, path, changes(), isResigned);
        const { code, said } = await scripted(path);
        expect(code, said).toBe(1);
        expect(said).toMatch(
          isResigned
            ? /^NOT VERIFIED: (record )?\S+ \d+|^NOT VERIFIED: a (record|position)/
            : /^NOT VERIFIED: \S+ was changed/,
        );
      }
    });

    it('a changed CSV file, a changed manifest, and a manifest of another key', async () => {
      const changes: [Changes, RegExp][] = [
        [{ 'records.csv': (all) => [all.join('').replace(',200,', ',500,')] }, /records\.csv was changed/],
        [
          { 'manifest.json': (all) => all.map((line) => line.replace('"findings": 0', '"findings": 1')) },
          /InvalidSignature/,
        ],
        [{ 'manifest.sig': () => ['x'.repeat(64)] }, /InvalidSignature/],
      ];
      for (const [change, said] of changes) {
        const path = newPath();
        tampered(november, path, change, false);
        expect((await scripted(path)).said).toMatch(said);
      }
    });

    it('a record that was changed in the database before, which the manifest and the exit code say too', async () => {
      const [{ id, at } = {}] = await raw(
        `select id, at from audit_records where node_id = '${NODE}' and chain_index = 20`,
      );
      await raw(`update audit_records set status_code = 201 where id = '${id}'`);
      try {
        const { code, path, out } = await exported('--node', NODE);
        expect([code, manifestOf(path).verification.findings]).toEqual([1, 1]);
        expect(out).toContain('FAILED: audit verify finds 1 problem in this period: run it for the list.');
        expect(await scripted(path)).toMatchObject({
          code: 1,
          said: expect.stringMatching(/^NOT VERIFIED: \S+ 39, or a position since/),
        });
      } finally {
        await raw(`update audit_records set status_code = 200 where id = '${id}' and at = '${at}'`);
      }
    });
  });

  it('D8-11: takes the filter of audit list, and says what it has not proven', async () => {
    const one = await exported('--node', NODE, '--status', '404', '--json');
    expect(one.code).toBe(0);
    expect(JSON.parse(one.out)).toEqual(manifestOf(one.path));
    expect(records(one.path).every(({ status_code: status }) => status === 404)).toBe(true);
    expect((await scripted(one.path)).said).toBe('VERIFIED: 4 records by checkpoints, 0 only by the signature\n');
    for (const flags of [
      ['--path', '/v1/export*'],
      ['--subject', '=1+1'],
      ['--client', '@sum'],
    ]) {
      const { path } = await exported(...flags);
      expect([manifestOf(path).records, (await scripted(path)).code], flags.join(' ')).toEqual([4, 0]);
    }
    // Commands have sealed theirs in the database alone.
    const [commands] = await raw(`select count(*) as count from audit_records where method = 'CLI'`);
    const all = await exported();
    expect(all.out).toMatch(
      /^Not proven, because they are newer than the last checkpoint of their process; .*: 3 records\.$/m,
    );
    expect((await scripted(all.path)).said).toBe(
      `VERIFIED: 103 records by checkpoints, ${3 + Number(commands?.count)} only by the signature\n`,
    );
    const none = await exported('--node', NODE, '--until', '2020-01-01T00:00:00Z');
    expect([manifestOf(none.path).records, (await scripted(none.path)).code]).toEqual([0, 0]);
  });

  it('D8-11: has no cell in the CSV that a spreadsheet takes for a formula', () => {
    const cells =
      readFileSync(join(november, 'records.csv'), 'utf8').match(/(?<=^|,)("(?:[^"]|"")*"|[^",\r\n]*)/gm) ?? [];
    expect(cells.filter((cell) => /^"?[=+\-@\t\r]/.test(cell))).toEqual([]);
    expect(cells).toContain("'=1+1");
    expect(cells).toContain("'@sum");
  });

  it('D8-11: has records without a chain, and says that nothing proves them', async () => {
    const { id } = auditRecord();
    await raw(`insert into audit_records (at, id, correlation_id, method, path, status_code, elapsed, headers, remote_address,
      real_ip, request_bytes, response_bytes, is_api, node_id)
      values ('2026-01-01', '${id}', 'c', 'GET', '/', 200, 1, '{}', '::1', '::1', 0, 0, false, '${NODE}')`);
    try {
      const { path, out } = await exported('--node', NODE);
      expect(records(path).at(-1)).toMatchObject({ chain: null, index: null, id });
      expect(manifestOf(path)).toMatchObject({ records: 45, unchained: 1 });
      expect(out).toContain('Not proven, because they belong to no chain: 1 record.\n');
      expect(await scripted(path)).toMatchObject({ code: 0 });
    } finally {
      await raw(`delete from audit_records where id = '${id}'`);
    }
  });

  describe('that is interrupted', () => {
    /** Exports all records, and stops after so many pages; undefined where it comes to its end. */
    async function run(path: string, pages: number, filter: Record<string, string> = {}) {
      const stop = new AbortController();
      let left = pages;
      return exportAudit({
        ...{ db: database.db, keys: [SEAL_KEY], folder: path, signal: stop.signal },
        ...{ asked: { filter, by: 'ann', at: UNTIL }, filter: { until: UNTIL } },
        onProgress: () => {
          left -= 1;
          if (left <= 0) stop.abort();
        },
      });
    }
    const UNTIL = new Date(Date.now() + 3_600_000).toISOString();
    const FILES = ['records.jsonl', 'records.csv', 'chain.csv'];

    it('D8-11: continues where it was, whatever a killed run has written behind that, and has the same files at the end', async () => {
      const [whole, cut] = [newPath(), newPath()];
      await run(whole, Number.POSITIVE_INFINITY);
      let interruptions = 0;
      for (let isDone = false; !isDone; ) {
        isDone = await run(cut, 1).then(
          () => true,
          (error: Error) => {
            expect(error.message).toBe(`interrupted: repeat the command to continue the export in ${cut}`);
            return false;
          },
        );
        interruptions += isDone ? 0 : 1;
        expect(interruptions).toBeLessThan(20);
        if (!isDone) for (const name of FILES) appendFileSync(join(cut, name), 'half a li');
        if (interruptions === 4) isDone = (await run(cut, Number.POSITIVE_INFINITY)) !== undefined;
      }
      expect(interruptions).toBeGreaterThan(2);
      for (const name of FILES)
        expect(readFileSync(join(cut, name), 'utf8')).toBe(readFileSync(join(whole, name), 'utf8'));
      expect(existsSync(join(cut, 'progress.json'))).toBe(false);
      expect(await scripted(cut)).toMatchObject({ code: 0 });
    });

    it('D8-11: refuses another filter, a folder with other files, and a second run at the same time', async () => {
      const path = newPath();
      await expect(run(path, 1)).rejects.toThrow('interrupted');
      await expect(run(path, 1, { node: NODE })).rejects.toThrow(`${path} has an interrupted export of {}`);
      await expect(run(november, 1)).rejects.toThrow(
        `${november} has files, and is not an interrupted export: give a new folder`,
      );
      using _held = new ExportFolder(path, []);
      await expect(run(path, 1)).rejects.toThrow(`another run writes to ${path}`);
    });
  });

  it('D8-11: needs a key, and says so where the folder cannot be written', async () => {
    const env = { DATABASE_URL: database.url, NODE_ENV: 'test', DATA_DIR: newPath() };
    const keyless = await portcullis(['audit', 'export', '--out', newPath()], env);
    expect(keyless).toMatchObject({ code: 1, err: expect.stringMatching(/^portcullis: set AUDIT_SIGNING_KEY/) });
    const file = newPath();
    writeFileSync(file, '');
    const blocked = await portcullis(['audit', 'export', '--out', join(file, 'in')], {
      ...env,
      AUDIT_SIGNING_KEY: SIGNING_KEY,
    });
    expect(blocked).toMatchObject({ code: 1, err: expect.stringMatching(/^portcullis: cannot write to .* \(ENOTDIR/) });
  });
});

/** What the records of the tenant have besides, in turn: cells that spreadsheets calculate, and texts that are hard to repeat. */
const OWN: Partial<AuditRecord>[] = [
  {},
  {},
  { path: '/v1/export', query: null, request_body: null, elapsed: 1e-7 },
  {},
  {
    status_code: 404,
    headers: { 'x-é': 'ü\u2028"\\', b: ['\u0001', '\u007f'], a: '🔑' },
    response_body: '🔑\r\n\t"\\',
  },
  {},
  { subject: '=1+1', operation: '-1', correlation_id: '+1', elapsed: 12 },
  {},
  { client_id: '@sum', node_id: NODE, elapsed: 1e21, request_bytes: 2 ** 40, subject: null, operation: null },
];

describeReal(['postgres', 'python'], 'audit export of any history', () => {
  it('D8-11: is verified by the script where audit verify finds nothing, with records lost, refused, dropped and erased', async () => {
    await using database = await realDatabase();
    await using folder = await emptyFolder();
    await using verifier = await startVerifier();
    let count = 0;
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        await live(database, steps);
        const seals = join(folder.path, 'seals.ndjson');
        const stored = await database.db.unscoped('test').raw(
          (sql) => sql<{ body: string; signature: string }>`
            select body, encode(signature, 'hex') as signature from audit_seals order by position`,
        );
        writeFileSync(seals, stored.map((seal) => `${JSON.stringify(seal)}\n`).join(''));
        for (const filter of [{}, { statusCode: 418 }]) {
          const path = join(folder.path, `export-${++count}`);
          const run = (signal: AbortSignal) =>
            exportAudit({
              ...{ db: database.db, keys: [SEAL_KEY], folder: path, signal, onProgress: () => undefined },
              ...{ asked: { filter: {}, by: 'ann', at: '' }, filter: { ...filter, until: '2100-01-01' } },
            });
          // The first page, or the first of the verification.
          await expect(run(AbortSignal.abort())).rejects.toThrow('interrupted');
          expect((await run(new AbortController().signal)).verification.findings).toBe(0);
          expect(await verifier.verify(path, seals)).toMatchObject({ code: 0 });
        }
      }),
      { numRuns: RUNS },
    );
  });
});

describe('audit export on the embedded database', () => {
  it('D8-11: shows the leaves from the checkpoint before a record to the one after it', async () => {
    await using database = await embeddedDatabase();
    await using folder = await emptyFolder();
    const sealed: { kind: string; index: number; hash: string }[] = [];
    const seals = sealsIn(database.db, { sink: async ({ body }) => void sealed.push(JSON.parse(body)) });
    const process = auditProcess(database.db, join(folder.path, 'spool'), seals);
    for (let minute = 0; minute < 4; minute += 1) {
      process.spool(
        Array.from({ length: 3 }, (_, index) => auditRecord(minute + index === 3 ? { client_id: 'own' } : {})),
      );
      await process.drain();
      await process.checkpoint();
    }
    const exportTo = (name: string) =>
      exportAudit({
        ...{ db: database.db, keys: [SEAL_KEY], folder: join(folder.path, name), signal: new AbortController().signal },
        ...{
          asked: { filter: { client: 'own' }, by: 'ann', at: '' },
          filter: { clientId: 'own', until: '2100-01-01' },
        },
        onProgress: () => undefined,
      });
    const manifest = await exportTo('out');
    expect(manifest).toMatchObject({ records: 3, positions: 9, unsealed: 0, chains: [{ from: 3, to: 11 }] });
    const [, ...leaves] = readFileSync(join(folder.path, 'out/chain.csv'), 'utf8').trimEnd().split('\r\n');
    const [before, ...after] = sealed.filter(({ kind }) => kind === 'checkpoint');
    let hash = before?.hash ?? '';
    const places = leaves.map((line) => {
      const [, index = '', leaf = ''] = line.split(',');
      hash = createHash('sha256').update(`${hash}\t${leaf}`).digest('hex');
      return { index: Number(index), hash };
    });
    for (const { index, hash: at } of after) expect(places).toContainEqual({ index, hash: at });
    expect(places.map(({ index }) => index)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11]);
    await database.db
      .unscoped('test')
      .raw((sql) => sql`update audit_records set status_code = 201 where chain_index = 4`);
    expect((await exportTo('again')).verification.findings).toBe(1);
    await process.stop();
  });

  it.each([
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@sum', "'@sum"],
    ['a;=1', "a;'=1"],
    ['\t=1', `'\t'=1`],
    ['a=1', 'a=1'],
    ['a,b', '"a,b"'],
    ['=a"b\n', `"'=a""b\n"`],
    [null, ''],
    [true, 'true'],
    [-1.5, "'-1.5"],
    [{ a: '=' }, '"{""a"":""=""}"'],
  ])('D8-11: a CSV cell of %j is %j', (value, cell) => {
    expect(csvRecord([value, 'b'])).toBe(`${cell},b\r\n`);
  });
});
