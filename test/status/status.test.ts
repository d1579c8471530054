import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { expect, it, vi } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { message } from '../support/events/recorder.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { startOnRealServers, startPortcullis, startReplica } from '../support/harness.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal } from '../support/services/real.ts';
import { migratedFolder } from '../support/start/folders.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

const STATUS = ['status', '--json'];

async function statusOf(env: NodeJS.ProcessEnv) {
  const { code, out } = await portcullis(STATUS, env);
  return { code, status: JSON.parse(out) };
}

describeReal(['postgres', 'redis', 'kafka'], 'portcullis status on real servers', () => {
  it('D8-10: exits 0 where nothing needs a person, and names each process until it stops', async () => {
    await using p = await startOnRealServers();
    const waitFor = (processes: number) =>
      vi.waitFor(async () => {
        const answer = await statusOf(p.env);
        // A busy machine may take longer to read a source than its deadline: it is then reported as down.
        expect({ ...answer, status: answer.status.findings }).toEqual({ code: 0, status: [] });
        expect(answer.status.processes).toHaveLength(processes);
        return answer;
      });
    const { status } = await waitFor(1);
    expect(status.processes[0]).toMatchObject({ role: 'all', version: p.service.context.health.report().version });
    expect(status.parts).toMatchObject({
      database: { state: 'ok' },
      cache: { state: 'ok' },
      bus: { state: 'ok' },
      audit: { state: 'ok' },
    });
    expect(Date.parse(status.parts.cache.since)).toBeLessThanOrEqual(Date.now());
    expect(status.lag.map(({ topic }: { topic: string }) => topic)).toContain('transactions.admin');
    {
      await using _other = await startReplica(p, { env: { PORTCULLIS_ROLE: 'gateway' } });
      const two = await waitFor(2);
      expect(two.status.processes.map(({ role }: { role: string }) => role)).toEqual(['all', 'gateway']);
    }
    await waitFor(1);
  });

  it('D8-10: names the secrets of which a gateway does not accept the current value of another', async () => {
    await using p = await startOnRealServers();
    const differing = async () => (await statusOf(p.env)).status.differing_secrets;
    const { jwt, pepper } = p.service.context.secrets;
    const other = randomBytes(32).toString('hex');
    {
      // Another current value of both, one of which it accepts from before.
      const env = { JWT_SECRET_USER: other, SECRET_PEPPER: other, SECRET_PEPPER_PREVIOUS: pepper.current };
      await using _replica = await startReplica(p, { env: { ...env, PORTCULLIS_ROLE: 'gateway' } });
      await expect.poll(differing).toEqual(['JWT_SECRET_USER', 'SECRET_PEPPER']);
      const { code, out, err } = await portcullis(['status'], p.env);
      expect([code, out]).toEqual([
        1,
        expect.stringContaining('! gateways have different values of JWT_SECRET_USER\n'),
      ]);
      for (const secret of [jwt.user.current, pepper.current, other]) expect(out + err).not.toContain(secret);
    }
    {
      await using _worker = await startReplica(p, { env: { JWT_SECRET_USER: other, PORTCULLIS_ROLE: 'worker' } });
      await expect.poll(async () => (await statusOf(p.env)).status.processes.length).toBe(2);
      expect(await differing()).toEqual([]);
    }
  });

  it('D8-10: a database that takes no writes is down, and says nothing of processes, which cannot report to it', async () => {
    await using p = await startOnRealServers();
    const url = new URL(p.env.DATABASE_URL ?? '');
    url.searchParams.set('options', '-c default_transaction_read_only=on');
    const { code, status } = await statusOf({ ...p.env, DATABASE_URL: url.href });
    expect(code).toBe(1);
    expect(status.findings.map(({ what }: { what: string }) => what)).toContain('database is down (25006)');
    expect([status.processes, status.parts.database.state]).toEqual([null, 'down']);
  });

  it('D8-10: exits 1 for a dead letter of an hour, and says since when, who is hit, what to read and to type', async () => {
    await using p = await startPortcullis();
    const { bus, database } = p.service.context;
    await bus.publish([message('transactions.user.dlq', 'user-1')]);
    expect((await statusOf(p.env)).status.dead_letters).toContainEqual({
      ...{ topic: 'transactions.user', messages: 1, oldest_seconds: expect.any(Number) },
    });
    expect((await statusOf(p.env)).code).toBe(0);
    await database.db
      .unscoped('test')
      .raw(
        (sql) =>
          sql`update bus_messages set created_at = now() - interval '2 hours' where topic = 'transactions.user.dlq'`,
      );
    const { code, out } = await portcullis(['status'], p.env);
    expect(code).toBe(1);
    expect(out).toMatch(/^\S+Z {2}act on 1\n! 1 dead letters of transactions\.user wait for a decision, since \S+Z\n/);
    expect(out).toContain(
      '    read  docs/operations/kafka.md#there-are-dead-letters\n    type  portcullis dead-letters list\n',
    );
    const [, id = ''] = /^(\S+) /.exec((await portcullis(['dead-letters', 'list'], p.env)).out) ?? [];
    await portcullis(['dead-letters', 'discard', id, '--reason', 'a test'], p.env);
    expect((await statusOf(p.env)).code).toBe(0);
  });

  it('D8-10: a verification that found something is told until one finds nothing', async () => {
    await using p = await startPortcullis();
    await p.call('GET', '/health');
    await p.service.context.auditWriter.flush();
    expect(await portcullis(['audit', 'verify'], p.env)).toMatchObject({ code: 0 });
    const { status } = await statusOf(p.env);
    expect(status.audit.verified).toMatchObject({ problems: 0, seal: expect.any(Number) });
    const { db } = p.service.context.database;
    await db.unscoped('test').run((k) => k.insertInto('audit_verifications').values({ seal: '1', problems: 2 }));
    const failed = await statusOf(p.env);
    expect(failed.code).toBe(1);
    expect(failed.status.findings[0].what).toBe('the last verification of the audit found 2 problems');
  });

  it('D8-10: without its database it says so, and what else it can read', async () => {
    await using folder = await migratedFolder();
    const [port] = await freePorts(1);
    const env = { DATA_DIR: folder.path, DATABASE_URL: `postgres://me@127.0.0.1:${port}/none` };
    const { code, status } = await statusOf(env);
    expect(code).toBe(1);
    expect(status).toMatchObject({ parts: { database: { state: 'down' } }, processes: null, outbox: null });
    expect(status.findings[0]).toMatchObject({
      what: 'database is down',
      page: 'docs/operations/postgresql.md#the-database-is-down',
    });
    expect((await portcullis(['status'], env)).out).toContain('database       down\n');
  });
});

it('D8-10: where no process runs on the embedded database it says so', async () => {
  await using folder = await migratedFolder();
  const { code, status } = await statusOf({ DATA_DIR: folder.path });
  expect(code).toBe(1);
  expect(status.findings.map(({ what }: { what: string }) => what)).toEqual([
    'no worker has reported within the last minute',
    'no gateway has reported within the last minute',
  ]);
});

it('D8-10: /status of the admin port has counts and ids alone, and needs no token', async () => {
  await using p = await startPortcullis();
  await vi.waitFor(async () => {
    const response = await fetch(`${p.service.adminUrl}/status`);
    expect(response.status).toBe(200);
    const text = await response.text();
    const status = JSON.parse(text);
    expect(status).toMatchObject({ findings: [], parts: { database: { state: 'ok' } }, outbox: { messages: 0 } });
    expect(status.processes).toHaveLength(1);
    expect(text).not.toContain('"host"');
  }, 8_000);
  expect((await p.call('GET', '/status')).status).toBe(404);
});

it('D8-10: a part has since when it is in its state', async () => {
  await using p = await startPortcullis();
  const { health, cache } = p.service.context;
  const before = health.parts.cache?.since ?? '';
  vi.spyOn(cache, 'checkHealth').mockRejectedValue(new Error('away', { cause: new Error('OOM command not allowed') }));
  await vi.waitFor(() => expect(health.parts.cache?.state).toBe('down'));
  expect(health.parts.cache?.code).toBe('OOM');
  expect(Date.parse(health.parts.cache?.since ?? '')).toBeGreaterThan(Date.parse(before));
  vi.restoreAllMocks();
});

it('D8-10: a service that is unreachable, a file that is rejected, and a webhook that rejects everything are findings', async () => {
  const service = { at: 'http://127.0.0.1:9', breaker: { failures: 1 } };
  const endpoint = { methods: ['GET'], path: '/v1/prices', services: ['pricing'], visibility: 'public' };
  await using file = await gatewayFile({ pricing: service }, [endpoint]);
  const env = {
    GATEWAY_CONFIG: file.path,
    WEBHOOK_SIGNATURE: 'required',
    WEBHOOK_SIGNING_SECRET: `whsec_${Buffer.alloc(32).toString('base64')}`,
  };
  await using p = await startPortcullis({ env });
  const { health } = p.service.context;
  await vi.waitFor(() => expect(health.parts).toMatchObject({ 'service pricing': { state: 'ok' } }));
  expect((await p.call('GET', '/v1/prices')).status).toBe(502);
  const authorization = basic(p.webhook.username, p.webhook.password);
  for (let count = 0; count < 5; count += 1)
    await p.call('POST', '/v2/webhooks/custodial', { headers: { authorization }, json: notification() });
  await writeFile(file.path, 'endpoints: [');
  await p.service.reload();
  await vi.waitFor(() =>
    expect(health.parts).toMatchObject({
      'service pricing': { state: 'unreachable' },
      'gateway.yaml': { state: 'rejected' },
      webhook: { state: 'rejecting all notifications (incomplete)' },
    }),
  );
  const reader = await fetch(`${p.service.adminUrl}/status`);
  const { findings } = (await reader.json()) as { findings: { what: string }[] };
  expect(findings.map(({ what }) => what)).toEqual([
    'service pricing is unreachable',
    'gateway.yaml is rejected',
    'webhook is rejecting all notifications (incomplete)',
  ]);
  expect((await p.call('GET', '/health')).json.checks).not.toHaveProperty('webhook');
});
