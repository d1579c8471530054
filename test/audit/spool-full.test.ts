import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { AuditSpool } from '../../src/audit/spool.ts';
import { recordOf } from '../support/audit/records.ts';
import { sendRaw } from '../support/gateway/raw.ts';
import { closeSockets, openSocket } from '../support/graphql/sockets.ts';
import { usePortcullis } from '../support/harness.ts';
import { scrape } from '../support/observability/scrape.ts';

it('D8-01: a full spool accepts requests again below 80 %, not after the first batch', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'spool-'));
  const spool = AuditSpool.open({ dir, maxBytes: 3_200, segmentBytes: 100 });
  const line = 'x'.repeat(90);
  while (!spool.isFull) spool.append(line);
  expect([spool.bytesOnDisk, await spool.bytesUntilFull()]).toEqual([3_000, 0]);
  const seen: [bytes: number, isFull: boolean][] = [];
  await spool.drain(async () => void seen.push([spool.bytesOnDisk, spool.isFull]), { batchSize: 1 });
  expect(seen.filter(([bytes, isFull]) => isFull !== bytes >= 2_560)).toEqual([]);
  expect(seen.at(-1)).toEqual([100, false]);
  for (let count = 0; count < 29; count += 1) spool.append(line);
  expect(spool.isFull).toBe(false);
  expect(await spool.bytesUntilFull()).toBe(100);
  spool.close();
  rmSync(dir, { recursive: true });
});

describe('a process whose spool is full', () => {
  const p = usePortcullis();
  const METRIC = 'portcullis_audit_unrecorded_requests_total';

  afterEach(() => {
    vi.restoreAllMocks();
    closeSockets();
  });

  const counts = async () => {
    const told = await scrape(p.service);
    return ['refused', 'served'].map((outcome) => told.value(METRIC, { outcome }) ?? 0);
  };

  it('D8-01: answers 503 to health checks and /readyz, naming the spool, until the spool is no longer full', async () => {
    const full = vi.spyOn(p.service.context.spool, 'isFull', 'get').mockReturnValue(true);
    const health = await p.call('GET', '/health');
    const ready = await fetch(`${p.service.adminUrl}/readyz`);
    expect([health.status, ready.status]).toEqual([503, 503]);
    const checks = { database: 'ok', cache: 'ok', bus: 'ok', audit: 'full' };
    expect(health.json).toMatchObject({ status: 'down', checks });
    expect(await ready.json()).toEqual({ status: 'down', checks });
    full.mockRestore();
    expect((await p.call('GET', '/health')).json).toMatchObject({ status: 'ok', checks: { audit: 'ok' } });
    expect((await fetch(`${p.service.adminUrl}/readyz`)).status).toBe(200);
  });

  it('D2-07 D8-01: rejects requests, counts them as refused and not as lost, and keeps the remaining space for earlier requests', async () => {
    const { spool } = p.service.context;
    const token = await p.clientToken();
    const socket = await openSocket(p, token);
    const [refused = 0, served = 0] = await counts();
    const append = vi.spyOn(spool, 'append').mockImplementation(() => {
      throw new Error('there is no room');
    });
    vi.spyOn(spool, 'isFull', 'get').mockReturnValue(true);
    const answers = [
      await p.call('GET', '/v1/accounts', { token }),
      await p.call('GET', '/nowhere'),
      await p.call('POST', '/v2/webhooks/custodial'),
      await p.call('OPTIONS', '/v1/accounts'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 500, 503]);
    expect((await sendRaw(p.url, 'GET /x HTTP/1.1\r\nno header\r\n\r\n')).status).toBe(400);
    const [message] = await socket.messagesOf({ query: '{ accounts { totalCount } }' });
    expect(message).toMatchObject({ type: 'error', payload: [{ extensions: { code: 'SERVICE_UNAVAILABLE' } }] });
    await p.call('GET', '/health');
    expect(await counts()).toEqual([refused + 6, served + 1]);
    expect(append).not.toHaveBeenCalled();
    const told = await scrape(p.service);
    expect(told.value('portcullis_audit_records_lost_total', { reason: 'spool' })).toBe(0);
    vi.restoreAllMocks();
    expect((await socket.messagesOf({ query: '{ accounts { totalCount } }' })).map(({ type }) => type)).toEqual([
      'next',
      'complete',
    ]);
    const headers = { 'x-correlation-id': 'after the full spool' };
    await p.call('GET', '/health', { headers });
    expect(await recordOf(p, 'after the full spool')).toMatchObject({ status_code: 200 });
  });
});
