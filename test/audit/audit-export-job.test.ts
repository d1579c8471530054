import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../src/audit/audit-record.ts';
import { AuditRedaction } from '../../src/audit/verification/redaction.ts';
import { AuditExports } from '../../src/features/audit-records/audit-records.service.ts';
import { silentLog } from '../../src/lib/log.ts';
import { EraseUserDocument } from '../graphql/generated/graphql.ts';
import { addUser, auditProcess, auditRecord, NODE } from '../support/audit/chain-fixture.ts';
import {
  download,
  endedExport,
  readyExport,
  requestExport,
  type ShownExport,
  shownExport,
  unpacked,
} from '../support/audit/export-jobs.ts';
import { SIGNING_KEY, sealsTo, verifiedByScript } from '../support/audit/exports.ts';
import { operate } from '../support/graphql/administration.ts';
import { SEAL_KEY, sealsIn } from '../support/harness/audit-seals.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { type Portcullis, startEmbedded, startPortcullis } from '../support/harness.ts';
import { addClient, rows, updateClient } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { migrationsOf, newUser, SINGLE } from '../support/user-migrations/calls.ts';

/** In every text of a record of another tenant. */
const FOREIGN = 'foreign';

describeReal('python', 'an audit export as a job', () => {
  let p: Portcullis;
  const folder = beforeTests(emptyFolder);
  let checkpoints: string;
  let token: string;
  let auditor: Awaited<ReturnType<typeof addClient>>;
  let stranger: string;
  let otherNode: string;

  const linesOf = (path: string, name: string) => readFileSync(join(path, name), 'utf8').trimEnd().split('\n');
  const chunks = async (id: unknown) =>
    (await rows(p).raw((sql) => sql`select from audit_export_chunks where export_id = ${id}`)).length;
  const set = (id: unknown, assignments: string) =>
    rows(p).raw((sql) => sql`update audit_exports set ${sql.raw(assignments)} where id = ${id}`);
  /** An instance that nothing starts, on the database of the service. */
  const jobs = (more: { keys?: []; nowMs?: () => number } = {}) => {
    const { database, log, nowMs } = p.service.context;
    return new AuditExports({ db: database.db, log, nowMs, keys: [SEAL_KEY], downloadPath: () => '', ...more });
  };

  beforeAll(async () => {
    checkpoints = join(folder.path, 'seals.ndjson');
    const env = { AUDIT_SIGNING_KEY: SIGNING_KEY, AUDIT_CHECKPOINTS: `file:${checkpoints}` };
    p = await startPortcullis({ env });
    auditor = await addClient(p, { scopes: ['audit:read'] });
    token = await p.clientToken(auditor);
    otherNode = randomUUID();
    await rows(p).run((k) => k.insertInto('nodes').values({ id: otherNode, name: FOREIGN }));
    stranger = await p.clientToken(await addClient(p, { node_id: otherNode, scopes: ['audit:read'] }));
    const { db } = p.service.context.database;
    const process = auditProcess(db, join(folder.path, 'spool'), sealsTo(db, checkpoints));
    for (let minute = 0; minute < 3; minute += 1) {
      process.spool(Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? own(index) : foreign())));
      await process.drain();
      await process.checkpoint();
    }
    await process.stop();
  });
  afterAll(async () => {
    await p[Symbol.asyncDispose]();
  });

  const own = (index: number): AuditRecord =>
    auditRecord({ node_id: p.demo.node_id, path: '/v1/own', subject: `own-${index}` });
  const foreign = (): AuditRecord =>
    auditRecord({
      ...{ node_id: otherNode, path: `/v1/${FOREIGN}`, query: FOREIGN, subject: FOREIGN, client_id: FOREIGN },
      ...{ headers: { host: FOREIGN }, request_body: FOREIGN, response_body: FOREIGN, correlation_id: FOREIGN },
    });

  it('D8-18: has the files of the command, which the script of the page verifies, with records of its tenant alone', async () => {
    const filter = { pathPrefix: '/v1/own', statusCode: 200, changesOnly: true };
    const ready = await readyExport(p, token, filter);
    expect(ready).toMatchObject({
      ...{ records: 150, total: 150, problems: 0, requestedBy: auditor.client_id },
      asked: { node: p.demo.node_id, pathPrefix: '/v1/own', statusCode: '200', changesOnly: 'true' },
    });
    expect(Date.parse(`${ready.expiresAt}`) - Date.parse(`${ready.finishedAt}`)).toBe(24 * 3_600_000);
    const response = await download(p, token, ready.downloadPath);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/zip']);
    expect(response.headers.get('content-disposition')).toBe(`attachment; filename="audit-export-${ready.id}.zip"`);
    const path = await unpacked(response, folder.path);
    expect(readdirSync(path).sort()).toEqual([
      ...['chain.csv', 'manifest.json', 'manifest.sig', 'records.csv', 'records.jsonl'],
    ]);
    const manifest = JSON.parse(readFileSync(join(path, 'manifest.json'), 'utf8'));
    expect(manifest).toMatchObject({
      ...{ filter: ready.asked, asked_by: auditor.client_id, asked_at: ready.createdAt },
      ...{ records: 150, positions: 300, unsealed: 0, verification: { findings: 0 } },
    });
    for (const name of readdirSync(path)) expect(readFileSync(join(path, name), 'utf8')).not.toContain(FOREIGN);
    const { bytes } = ready;
    const sizes = readdirSync(path).map((name) => readFileSync(join(path, name)).length);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(bytes);
    expect((await verifiedByScript(path, checkpoints, folder.path)).said).toBe(
      'VERIFIED: 150 records by checkpoints, 0 only by the signature\n',
    );
  });

  it('D8-18: writes a record of each request and of each download, without the archive', async () => {
    const ready = await readyExport(p, token, { pathPrefix: '/v1/own' });
    await (await download(p, token, ready.downloadPath)).arrayBuffer();
    await p.service.context.auditWriter.flush();
    const records = await rows(p).raw<Record<string, unknown>>(
      (sql) => sql`
        select operation, status_code, subject, request_body, response_body, response_bytes > 1000 as "isLong" from audit_records
        where node_id = ${p.demo.node_id} and subject = ${auditor.client_id} and operation ~ 'requestAuditExport|/audit-exports/'
        order by at desc limit 2`,
    );
    expect(records).toMatchObject([
      ...[{ operation: '/graphql/audit-exports/{id}/{key}', status_code: 200, response_body: null, isLong: true }],
      ...[{ operation: 'requestAuditExport', request_body: expect.stringContaining('"pathPrefix":"/v1/own"') }],
    ]);
  });

  it('D8-18: can be downloaded once by each path, by the tenant alone, while the caller has audit:read', async () => {
    const ready = await readyExport(p, token, { pathPrefix: '/v1/own' });
    const plain = await p.clientToken(await addClient(p, { scopes: ['accounts:read'] }));
    const refused = await requestExport(p, plain);
    expect(refused).toMatchObject({ __typename: 'ForbiddenError', permission: 'audit:read' });
    expect((await download(p, plain, ready.downloadPath)).status).toBe(403);
    expect((await fetch(`${p.url}${ready.downloadPath}`)).status).toBe(401);
    for (const path of [
      ...[ready.downloadPath, `/graphql/audit-exports/${ready.id}/${randomUUID()}`],
      ...[`/graphql/audit-exports/${ready.id}/x`, `/graphql/audit-exports/${randomUUID()}/${randomUUID()}`],
    ])
      expect((await download(p, stranger, path)).status, path ?? '').toBe(404);
    expect(await shownExport(p, stranger, ready.id)).toBeNull();
    const both = await Promise.all([1, 2].map(() => download(p, token, ready.downloadPath)));
    expect(both.map(({ status }) => status).sort()).toEqual([200, 404]);
    for (const response of both) await response.arrayBuffer();
    const { downloadPath } = await shownExport(p, token, ready.id);
    expect(downloadPath).not.toBe(ready.downloadPath);
    await updateClient(p, auditor.client_id, { scopes: ['accounts:read'] });
    const narrowed = await p.clientToken(auditor);
    expect((await download(p, narrowed, downloadPath)).status).toBe(403);
    await updateClient(p, auditor.client_id, { scopes: ['audit:read'] });
    await p.call('POST', '/v2/oauth/revoke', { json: { ...auditor, token } });
    expect((await download(p, token, downloadPath)).status).toBe(401);
    token = await p.clientToken(auditor);
    const again = await download(p, token, downloadPath);
    expect(readdirSync(await unpacked(again, folder.path))).toHaveLength(5);
  });

  it('D8-18: a tenant has one export at a time; the export of a process that has died is made by another one', async () => {
    const mine = await requestExport(p, token, { pathPrefix: '/v1/own' });
    await endedExport(p, token, mine.id);
    await set(
      mine.id,
      `status = 'running', state = null, records = 0, lease_owner = '${randomUUID()}', lease_until = 'infinity'`,
    );
    await rows(p).raw((sql) => sql`delete from audit_export_chunks where export_id = ${mine.id}`);
    expect(await requestExport(p, token)).toMatchObject({
      ...{ __typename: 'PreconditionError', message: expect.stringContaining('another export of this tenant') },
    });
    expect(await requestExport(p, stranger, {})).toMatchObject({ __typename: 'AuditExport', status: 'WAITING' });
    expect(await shownExport(p, token, mine.id)).toMatchObject({ status: 'RUNNING', downloadPath: null });
    await set(mine.id, 'lease_until = now()');
    const ended = await endedExport(p, token, mine.id);
    expect(ended).toMatchObject({ status: 'READY', records: 150 });
  });

  it('D8-18: continues where it was, when another process takes it over in its midst', async () => {
    const whole = await readyExport(p, token, { pathPrefix: '/v1/own' });
    const expected = await unpacked(await download(p, token, whole.downloadPath), folder.path);
    const { id } = await arranged({ asked: whole.asked, filter: { pathPrefix: '/v1/own' } });
    let parts = 0;
    for (; (await shownExport(p, token, id)).status !== 'READY'; parts += 1) {
      expect(parts).toBeLessThan(10);
      // Each stops after a page.
      await jobs().iterate(parts < 3 ? AbortSignal.abort() : new AbortController().signal);
      if (parts < 3) expect(await shownExport(p, token, id)).toMatchObject({ status: 'RUNNING', total: 150 });
    }
    expect(parts).toBe(4);
    const path = await unpacked(await download(p, token, (await shownExport(p, token, id)).downloadPath), folder.path);
    for (const name of ['records.jsonl', 'records.csv', 'chain.csv'])
      expect(linesOf(path, name)).toEqual(linesOf(expected, name));
    expect(await verifiedByScript(path, checkpoints, folder.path)).toMatchObject({ code: 0 });
  });

  it('D8-18: ends without the records that arrive once it has begun, although they are of its period', async () => {
    const { db } = p.service.context.database;
    const process = auditProcess(db, join(folder.path, 'late'), sealsTo(db, checkpoints));
    const arrive = async (count: number) => {
      const at = new Date(Date.now() - 60_000).toISOString();
      process.spool(Array.from({ length: count }, () => ({ ...own(0), at, path: '/v1/late' })));
      await process.drain();
    };
    await arrive(3);
    const { id } = await arranged({ filter: { pathPrefix: '/v1/late' } });
    await jobs().iterate(AbortSignal.abort());
    expect(await shownExport(p, token, id)).toMatchObject({ status: 'RUNNING', total: 3 });
    await arrive(2);
    await jobs().iterate(AbortSignal.timeout(10_000));
    expect(await shownExport(p, token, id)).toMatchObject({ status: 'READY', records: 3 });
    await process.stop();
  });

  /** Stores an export that the service does not take, for jobs that the test runs. */
  async function arranged({ asked, filter, more = '' }: { asked?: unknown; filter: object; more?: string }) {
    const { context } = p.service;
    await context.auditExports.stop();
    const row = await jobs().request(p.demo.node_id, {
      ...{ asked: { ...(asked as Record<string, string>) }, filter, by: auditor.client_id },
    });
    if (more) await set(row.id, more);
    return row;
  }

  describe('that the service does not take', () => {
    afterAll(() => p.service.context.auditExports.start());

    it('D8-18: fails with a reason when its files would take more than 1 GiB, and when there is no key', async () => {
      const long = await arranged({ filter: { pathPrefix: '/v1/own' }, more: `bytes = ${1024 ** 3}` });
      await jobs().iterate(new AbortController().signal);
      expect(await shownExport(p, token, long.id)).toMatchObject({
        ...{ status: 'FAILED', reason: expect.stringMatching(/more than 1 GiB: choose a shorter period/) },
      });
      expect(await chunks(long.id)).toBe(0);
      const keyless = await arranged({ filter: {} });
      await jobs({ keys: [] }).iterate(new AbortController().signal);
      expect(await shownExport(p, token, keyless.id)).toMatchObject({
        ...{ status: 'FAILED', reason: expect.stringContaining('AUDIT_SIGNING_KEY') },
      });
    });

    it('D8-18: is deleted after 24 hours, or when four newer ones are ready', async () => {
      const made: ShownExport[] = [];
      for (let count = 0; count < 5; count += 1) {
        const { id } = await arranged({ filter: { subject: 'own-2' } });
        await jobs().iterate(new AbortController().signal);
        made.push(await shownExport(p, token, id));
      }
      const [first, second] = made;
      await jobs().iterate(new AbortController().signal);
      expect(await shownExport(p, token, first?.id ?? '')).toMatchObject({ status: 'EXPIRED', downloadPath: null });
      expect([await chunks(first?.id), await chunks(second?.id)]).toEqual([0, expect.any(Number)]);
      await set(second?.id, 'expires_at = now()');
      expect(await shownExport(p, token, second?.id ?? '')).toMatchObject({ status: 'EXPIRED', downloadPath: null });
      expect((await download(p, token, second?.downloadPath)).status).toBe(404);
      await jobs().iterate(new AbortController().signal);
      expect(await chunks(second?.id)).toBe(0);
      const inAMonth = () => Date.now() + 31 * 24 * 3_600_000;
      await jobs({ nowMs: inAMonth }).iterate(new AbortController().signal);
      expect(await shownExport(p, token, second?.id ?? '')).toBeNull();
    });
  });

  it('D8-18 D7-10: is deleted when a user whom its records have noted is erased, also while it is downloaded or written', async () => {
    const admin = await p.clientToken();
    const migrate = await migrationsOf(p, admin);
    const { json: user } = await migrate.one(newUser());
    const noted = await readyExport(p, token, { subject: p.demo.client.client_id });
    const other = await readyExport(p, token, { pathPrefix: '/v1/own' });
    const running = await arranged({
      filter: { subject: p.demo.client.client_id },
      more: `status = 'running', lease_owner = '${randomUUID()}', lease_until = 'infinity'`,
    });
    const archive = await p.service.context.auditExports.download(
      p.demo.node_id,
      noted.id,
      `${noted.downloadPath}`.split('/').at(-1) ?? '',
    );
    const parts = archive[Symbol.asyncIterator]();
    await parts.next();
    await operate(p, admin, EraseUserDocument, { id: user.id });
    await expect(
      (async () => {
        while (!(await parts.next()).done);
      })(),
    ).rejects.toThrow('withdrawn');
    for (const { id } of [noted, running])
      expect(await shownExport(p, token, id)).toMatchObject({
        ...{ status: 'FAILED', reason: 'a user in its records was erased: ask for it again', downloadPath: null },
      });
    expect([await chunks(noted.id), (await chunks(other.id)) > 0]).toEqual([0, true]);
    expect(await shownExport(p, token, other.id)).toMatchObject({ status: 'READY' });
    p.service.context.auditExports.start();
  });
});

describeReal('postgres', 'an audit export as a job, where the owner of the tables redacts', () => {
  it('D8-18: is deleted, whatever its filter', async () => {
    await using database = await realDatabase();
    await using folder = await emptyFolder();
    const { db } = database;
    await addUser(db);
    const process = auditProcess(db, join(folder.path, 'spool'), sealsIn(db));
    process.spool([auditRecord({ path: '/v1/secret' })]);
    await process.drain();
    const log = { ...silentLog, error: (fields: object) => expect(fields).toBeUndefined() };
    const jobs = new AuditExports({ db, log, nowMs: Date.now, keys: [SEAL_KEY], downloadPath: () => '' });
    const { id } = await jobs.request(NODE, { asked: {}, filter: { method: 'POST' }, by: 'ann' });
    await jobs.iterate(new AbortController().signal);
    const redaction = new AuditRedaction({ db, seals: sealsIn(db), filter: { pathPrefix: '/v1/secret' } });
    const statuses = () =>
      db.unscoped('test').raw(
        (sql) => sql`
          select status, reason, (select count(*)::integer from audit_export_chunks where export_id = e.id) as chunks
          from audit_exports e where id = ${id}`,
      );
    expect(await statuses()).toEqual([{ status: 'ready', reason: null, chunks: 5 }]);
    expect(await redaction.redact({ by: 'ann', reason: 'r', filter: {} }, () => undefined)).toBe(1);
    const reason = 'records were redacted: ask for it again';
    expect(await statuses()).toEqual([{ status: 'failed', reason, chunks: 0 }]);
    await process.stop();
  });
});

describeEmbedded('an audit export as a job on the embedded database', () => {
  it('D8-18: is made beside requests, and lists its newest first', async () => {
    await using p = await startEmbedded();
    const token = await p.clientToken();
    const first = await readyExport(p, token);
    const second = await readyExport(p, token, { statusClass: 5 });
    expect(second).toMatchObject({ records: 0, total: 0, problems: 0 });
    const query = '{ auditExports { totalCount edges { node { id status records } } } }';
    const { json } = await p.call('POST', '/graphql', { token, json: { query } });
    expect(json.data.auditExports).toMatchObject({
      totalCount: 2,
      edges: [{ node: { id: second.id } }, { node: { id: first.id, status: 'READY', records: first.total } }],
    });
    const response = await download(p, token, first.downloadPath);
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(500);
    expect((await download(p, token, first.downloadPath)).status).toBe(404);
    const { json: user } = await (await migrationsOf(p, token)).one(newUser());
    const { id } = await readyExport(p, token, { path: SINGLE });
    await operate(p, token, EraseUserDocument, { id: user.id });
    expect(await shownExport(p, token, id)).toMatchObject({ status: 'FAILED' });
    expect(await shownExport(p, token, second.id)).toMatchObject({ status: 'READY' });
  });
});
