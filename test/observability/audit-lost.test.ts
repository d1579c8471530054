import { expect, it } from 'vitest';
import { startPortcullis } from '../support/harness.ts';
import { scrape } from '../support/observability/scrape.ts';

it('a lost audit record is counted, by whether the database or the spool failed to store it', async () => {
  await using p = await startPortcullis();
  const { spool } = p.service.context;
  const lost = async () => {
    const told = await scrape(p.service);
    const of = (reason: string) => told.value('portcullis_audit_records_lost_total', { reason });
    return { database: of('database'), spool: of('spool') };
  };
  expect(await lost()).toEqual({ database: 0, spool: 0 });
  spool.append(JSON.stringify({ time: 'no time' }));
  await expect.poll(lost).toEqual({ database: 1, spool: 0 });
  spool.close();
  expect((await p.call('GET', '/health')).status).toBe(200);
  expect(await lost()).toEqual({ database: 1, spool: 1 });
});
