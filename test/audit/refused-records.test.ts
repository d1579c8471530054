import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { asOwner } from '../support/harness/database-roles.ts';
import { startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { scrape } from '../support/observability/scrape.ts';

const MINUTE_MS = 60_000;

const p = beforeTests(() => startPortcullis({ overrides: { nowMs: () => nowMs } }));
let nowMs = Date.now();
let file: string;
/** How many records were lost before the test. */
let lostBefore: number;

beforeAll(async () => {
  file = join(p.dataDir, 'audit', 'refused.ndjson');
});
beforeEach(async () => {
  lostBefore = await lostInAll();
});
afterEach(async () => {
  await refuse('XX000', 'false');
  await settled();
  nowMs += MINUTE_MS;
  await p.service.context.auditRefused.retry();
});

/** Lets the table refuse records with this SQLSTATE: all, or those of a path. */
async function refuse(state: string, condition = "new.path = '/refused'"): Promise<void> {
  const body = `begin if ${condition} then raise exception 'no' using errcode = '${state}'; end if; return new; end`;
  await asOwner(p, async (door) => {
    await door.raw(
      (sql) => sql`create or replace function refuse_record() returns trigger language plpgsql as ${sql.lit(body)}`,
    );
    await door.raw(
      (sql) =>
        sql`create or replace trigger refuse before insert on audit_records for each row execute function refuse_record()`,
    );
  });
}

async function written(id: string): Promise<number> {
  return (await rows(p).run((k) => k.selectFrom('audit_records').select('id').where('correlation_id', '=', id))).length;
}

async function ask(path: string): Promise<string> {
  const id = randomUUID();
  await p.call('GET', path, { headers: { 'x-correlation-id': id } });
  return id;
}

async function lostInAll(): Promise<number> {
  const told = await scrape(p.service);
  return told.value('portcullis_audit_records_lost_total', { reason: 'refused' }) ?? 0;
}

async function lost(): Promise<number> {
  return (await lostInAll()) - lostBefore;
}

/** Which of these records are in the file. */
function inFile(ids: readonly string[]): string[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line).correlation_id).filter((id) => ids.includes(id));
}

async function settled(): Promise<void> {
  await vi.waitFor(() => expect(p.service.context.spool.pendingBytes).toBe(0));
}

describe('a record that the database rejects while it accepts others', () => {
  it.each(['XX000', '42501', '40001', '57014'])(
    'D2-07: does not block later records, and is written to a file after ten minutes: SQLSTATE %s',
    async (state) => {
      await refuse(state);
      const ids = await Promise.all([ask('/a'), ask('/refused'), ask('/b'), ask('/refused'), ask('/c')]);
      await settled();
      expect(await Promise.all(ids.map(written))).toEqual([1, 0, 1, 0, 1]);

      const { auditRefused } = p.service.context;
      nowMs += 10 * MINUTE_MS - 1;
      await auditRefused.retry();
      expect([inFile(ids), await lost()]).toEqual([[], 0]);
      nowMs += 1;
      await auditRefused.retry();
      await auditRefused.retry();
      expect(inFile(ids).sort()).toEqual([ids[1], ids[3]].sort());
      expect([statSync(file).mode & 0o777, await lost()]).toEqual([0o600, 2]);
    },
  );

  it('D2-07: is stored if a retry within ten minutes succeeds', async () => {
    await refuse('XX000');
    const id = await ask('/refused');
    await settled();
    await refuse('XX000', 'false');
    nowMs += MINUTE_MS;
    await p.service.context.auditRefused.retry();
    expect([await written(id), inFile([id]), await lost()]).toEqual([1, [], 0]);
  });

  it('D2-07: does not block later records even when its whole batch is rejected', async () => {
    await refuse('XX000');
    await Promise.all(Array.from({ length: 40 }, () => ask('/refused')));
    await settled();
    const id = await ask('/after');
    await settled();
    expect(await written(id)).toBe(1);
  });
});

describe('a database outage', () => {
  it('D2-07: discards nothing: while the database rejects every record, records wait however long it lasts', async () => {
    await refuse('XX000');
    const early = await ask('/refused');
    await settled();
    await refuse('42501', 'true');
    const id = await ask('/a');
    await vi.waitFor(() => expect(p.service.context.auditWriter.isFailing).toBe(true));
    nowMs += 60 * MINUTE_MS;
    await p.service.context.auditRefused.retry();
    const { pendingBytes } = p.service.context.spool;
    expect([pendingBytes > 0, inFile([early, id]), await lost()]).toEqual([true, [], 0]);
    await refuse('42501', 'false');
    await settled();
    await p.service.context.auditRefused.retry();
    expect([await written(id), await written(early)]).toEqual([1, 1]);
  });
});
