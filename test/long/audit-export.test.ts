import { randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { exportAudit } from '../../src/audit/export/record-export.ts';
import { auditProcess, auditRecord, NODE } from '../support/audit/chain-fixture.ts';
import { sealsTo, verifiedByScript } from '../support/audit/exports.ts';
import { SEAL_KEY } from '../support/harness/audit-seals.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';

const RECORDS = 1_000_000;
const AT_ONCE = 2_000;
const OTHER = 'bbbbbbbb-0000-4000-8000-000000000002';
/** What a thousandth of the records and what is made of them take, many times over. */
const MOST_BYTES = 150 * 1024 * 1024;

describeReal(['postgres', 'python'], 'audit export', () => {
  it('D8-11: exports a million records in bounded memory, is interrupted and continued, and verifies', async () => {
    await using database = await realDatabase();
    await using folder = await emptyFolder();
    const seals = join(folder.path, 'seals.ndjson');
    const writer = auditProcess(database.db, join(folder.path, 'spool'), sealsTo(database.db, seals));
    for (let count = 0; count < RECORDS; count += AT_ONCE) {
      const made = (index: number) =>
        auditRecord({ correlation_id: randomUUID(), node_id: index % 4 === 0 ? OTHER : NODE });
      writer.spool(Array.from({ length: AT_ONCE }, (_, index) => made(index)));
      await writer.drain();
      await writer.checkpoint();
    }
    await writer.stop();
    const out = join(folder.path, 'out');
    let mostBytes = 0;
    const before = process.memoryUsage.rss();
    const run = (stopAt: number) => {
      const stop = new AbortController();
      return exportAudit({
        ...{ db: database.db, keys: [SEAL_KEY], folder: out, signal: stop.signal },
        ...{ asked: { filter: { node: NODE }, by: 'ann', at: '' }, filter: { nodeId: NODE, until: '2100-01-01' } },
        onProgress: ({ done }) => {
          mostBytes = Math.max(mostBytes, process.memoryUsage.rss() - before);
          if (done >= stopAt) stop.abort();
        },
      });
    };
    const startedAt = performance.now();
    await expect(run(RECORDS / 2)).rejects.toThrow('interrupted');
    const manifest = await run(Number.POSITIVE_INFINITY);
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    expect(manifest).toMatchObject({ records: (RECORDS * 3) / 4, positions: RECORDS, unsealed: 0 });
    expect(manifest.verification).toMatchObject({ findings: 0, records: RECORDS });
    expect(mostBytes).toBeLessThan(MOST_BYTES);
    const checkedAt = performance.now();
    const { code, said } = await verifiedByScript(out, seals, folder.path);
    expect([code, said]).toEqual([
      0,
      `VERIFIED: ${(RECORDS * 3) / 4} records by checkpoints, 0 only by the signature\n`,
    ]);
    const script = Math.round((performance.now() - checkedAt) / 1_000);
    const mebibytes = (bytes: number) => Math.round(bytes / 2 ** 20);
    const sizes = Object.keys(manifest.files).map((name) => [name, mebibytes(statSync(join(out, name)).size)]);
    expect(readFileSync(join(out, 'manifest.json')).length).toBeLessThan(10_000);
    process.stdout.write(
      `${JSON.stringify({ records: RECORDS, seconds, script, memory: mebibytes(mostBytes), files: Object.fromEntries(sizes) })}\n`,
    );
  });
});
