import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { expect, it, vi } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { asOwner } from '../support/harness/database-roles.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { startedFolder } from '../support/start/folders.ts';
import { spawnCli } from '../support/start/process.ts';

const SECRET = 'correct-horse-battery-staple';
const { privateKey } = generateKeyPairSync('ed25519');
const AUDIT_SIGNING_KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

/** A request with the secret in its path, query, headers and body. */
async function leak(p: Portcullis): Promise<string> {
  const id = randomUUID();
  const headers = {
    'x-correlation-id': id,
    referer: `https://example.com/${SECRET}`,
    'content-type': 'application/json',
  };
  await p.call('POST', `/v1/wallets/${SECRET}/rules?hint=${SECRET}`, {
    headers,
    json: { name: SECRET },
    token: await p.clientToken(),
  });
  return id;
}

function ownerUrl({ env }: Portcullis): string {
  const { username, password } = new URL(serviceAddress('postgres'));
  return Object.assign(new URL(env.DATABASE_URL ?? ''), { username, password }).href;
}

/** A connection of its own; disposing ends it. */
async function connectedTo(connectionString: string): Promise<Client & AsyncDisposable> {
  const client = new Client({ connectionString });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

async function settled(p: Portcullis): Promise<void> {
  await p.service.context.auditWriter.flush();
}

const stored = async (p: Portcullis, id: string) => {
  const found = await rows(p).run((k) => k.selectFrom('audit_records').selectAll().where('correlation_id', '=', id));
  expect(found).toHaveLength(1);
  return found[0];
};

describeReal('postgres', 'audit redact on PostgreSQL', () => {
  const p = beforeTests(() => startPortcullis({ env: { AUDIT_SIGNING_KEY } }));
  const redact = (env: Record<string, string>, ...flags: string[]) =>
    portcullis(['audit', 'redact', ...flags, '--reason', 'a key in a body, INC-7'], { ...p.env, ...env });
  const verify = async () => {
    await settled(p);
    const { code, out } = await portcullis(['audit', 'verify', '--json'], p.env);
    return { code, report: JSON.parse(out) };
  };

  it('D1-18: removes what the caller wrote, keeps digests and verifies; its seal states who, when, why and how many', async () => {
    const owner = { MIGRATE_DATABASE_URL: ownerUrl(p) };
    const [first, other] = [await leak(p), await leak(p)];
    await settled(p);
    const before = await stored(p, first);
    expect(JSON.stringify(before)).toContain(SECRET);
    const counted = await redact(owner, '--correlation-id', first, '--json');
    expect(JSON.parse(counted.out)).toMatchObject({ matching: 1, redacted: 0 });
    expect(JSON.stringify(await stored(p, first))).toContain(SECRET);
    const done = await redact(owner, '--correlation-id', first, '--yes', '--json');
    expect([done.code, JSON.parse(done.out)]).toMatchObject([0, { matching: 1, redacted: 1 }]);
    const after = await stored(p, first);
    expect(JSON.stringify(after)).not.toContain(SECRET);
    expect(after).toMatchObject({
      path: '***',
      query: null,
      request_body: null,
      response_body: null,
      salts: null,
      status_code: before?.status_code,
    });
    expect(after?.digests).toHaveLength(3);
    expect(JSON.stringify(await stored(p, other))).toContain(SECRET);
    const { code, report } = await verify();
    expect([code, report.findings]).toEqual([0, []]);
    const filter = { 'correlation-id': first };
    expect(report.redactions).toEqual([
      { at: expect.any(String), by: expect.any(String), reason: 'a key in a body, INC-7', filter, records: 1 },
    ]);
    const again = await redact(owner, '--correlation-id', first, '--yes', '--json');
    expect(JSON.parse(again.out)).toMatchObject({ matching: 0, redacted: 0 });
    const { out } = await portcullis(['audit', 'verify'], p.env);
    expect(out).toMatch(/^REDACTED: 1 record, --correlation-id \S+, by \S+ at \S+: a key in a body, INC-7$/m);
  });

  it('D1-18: redacts in batches, and a record that is altered afterwards is reported', async () => {
    for (let count = 0; count < 120; count += 1) await p.call('GET', `/v1/redacted/${count}?x=${SECRET}`);
    await settled(p);
    const done = await redact({ MIGRATE_DATABASE_URL: ownerUrl(p) }, '--path', '/v1/redacted/*', '--yes', '--json');
    expect(JSON.parse(done.out)).toMatchObject({ matching: 120, redacted: 120 });
    const { code, report } = await verify();
    expect([code, report.redactions.at(-1).records]).toEqual([0, 120]);
    await asOwner(p, (door) =>
      door.raw(
        (sql) =>
          sql`update audit_records set status_code = 200 where path = '***' and status_code = 404 and id = (select min(id::text)::uuid from audit_records where path = '***' and status_code = 404)`,
      ),
    );
    expect((await verify()).report.findings).toMatchObject([{ kind: 'changed' }]);
    await asOwner(p, (door) =>
      door.raw((sql) => sql`update audit_records set status_code = 404 where path = '***' and status_code = 200`),
    );
  });

  it('D1-18: after a kill between two batches the audit verifies, and another run completes it with its own seals', async () => {
    for (let count = 0; count < 120; count += 1) await p.call('GET', `/v1/killed/${count}?x=${SECRET}`);
    await settled(p);
    const owner = { ...p.env, MIGRATE_DATABASE_URL: ownerUrl(p) };
    const flags = [
      'audit',
      'redact',
      '--path',
      '/v1/killed/*',
      '--reason',
      'a key in a body, INC-7',
      '--yes',
      '--json',
    ];
    const redacted = async () => {
      const all = await rows(p).raw(
        (sql) => sql<{ left: string }>`select count(*)::text as left from audit_records where path like '/v1/killed/%'`,
      );
      return 120 - Number(all[0]?.left);
    };
    await using holder = await connectedTo(ownerUrl(p));
    await holder.query('begin');
    // The second batch waits for its last record.
    await holder.query(
      `select 1 from audit_records where id =
        (select id from audit_records where path like '/v1/killed/%' order by at, id offset 119 limit 1) for update`,
    );
    {
      await using command = spawnCli(flags, owner);
      await vi.waitFor(async () => expect(await redacted()).toBe(100), { timeout: 60_000, interval: 50 });
      await vi.waitFor(async () => {
        const { rows: waiting } = await holder.query(
          "select 1 from pg_locks where not granted and locktype = 'transactionid'",
        );
        expect(waiting).toHaveLength(1);
      });
      expect((await command.kill('SIGKILL')).signal).toBe('SIGKILL');
    }
    await holder.query('rollback');
    const killed = await verify();
    expect([await redacted(), killed.code, killed.report.findings]).toEqual([100, 0, []]);
    expect(killed.report.redactions.at(-1)).toMatchObject({ records: 100, filter: { path: '/v1/killed/*' } });
    const done = await portcullis(flags, owner);
    expect([done.code, JSON.parse(done.out)]).toMatchObject([0, { matching: 20, redacted: 20 }]);
    const { code, report } = await verify();
    expect([await redacted(), code, report.findings]).toEqual([120, 0, []]);
    expect(report.redactions.slice(-2).map(({ records }: { records: number }) => records)).toEqual([100, 20]);
  });

  it('D1-18: the service role cannot redact, and a blanked body without a seal is reported', async () => {
    const id = await leak(p);
    await settled(p);
    const refused = await redact({}, '--correlation-id', id, '--yes');
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('does not own the audit records') });
    expect(JSON.stringify(await stored(p, id))).toContain(SECRET);
    const seal = () =>
      rows(p).raw((sql) => sql`insert into audit_seals (position, kind, body) values (99999, 'redaction', '{}')`);
    await expect(seal()).rejects.toThrow(/permission denied/);
    await expect(rows(p).raw((sql) => sql`select add_audit_seal('{}'::json, array['redaction'])`)).rejects.toThrow(
      /permission denied/,
    );
    await asOwner(p, (door) =>
      door.raw(
        (sql) =>
          sql`update audit_records set request_body = null, query = null, response_body = null, salts = null, digests = array['a','b','c'] where correlation_id = ${id}`,
      ),
    );
    const { code, report } = await verify();
    expect(code).toBe(1);
    expect(report.findings.map(({ kind }: { kind: string }) => kind)).toContain('erased');
  });

  it('D1-18: requires a filter, a reason and the signing key', async () => {
    expect(await redact({}, '--yes')).toMatchObject({
      code: 2,
      err: expect.stringContaining('give at least one of --node'),
    });
    const { AUDIT_SIGNING_KEY: _key, ...keyless } = p.env;
    const env = { ...keyless, MIGRATE_DATABASE_URL: ownerUrl(p) };
    const unsigned = await portcullis(['audit', 'redact', '--status', '404', '--reason', 'x', '--yes'], env);
    expect(unsigned).toMatchObject({ code: 1, err: expect.stringContaining('set AUDIT_SIGNING_KEY') });
  });
});

describeEmbedded('audit redact on the embedded database', () => {
  it('D1-18 D8-20: audit redact works beside a running embedded instance, and on a stopped one', async () => {
    await using folder = await startedFolder();
    const env = { DATA_DIR: folder.path };
    let id = '';
    {
      await using p = await startPortcullis({ dataDir: folder.path });
      id = await leak(p);
      const running = await portcullis(['audit', 'redact', '--correlation-id', id, '--reason', 'x', '--json'], env);
      expect([running.code, JSON.parse(running.out)]).toEqual([0, { matching: 1, redacted: 0, spooled: [] }]);
    }
    const done = await portcullis(['audit', 'redact', '--correlation-id', id, '--reason', 'x', '--yes', '--json'], env);
    expect([done.code, JSON.parse(done.out)]).toEqual([0, { matching: 1, redacted: 1, spooled: [] }]);
    const verified = await portcullis(['audit', 'verify', '--json'], env);
    expect(JSON.parse(verified.out)).toMatchObject({ findingCount: 0, redactions: [{ records: 1 }] });
    expect(readFileSync(join(folder.path, 'secrets.json'), 'utf8')).toContain('{');
  });
});
