import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { auditProcess, auditRecord, verified } from '../support/audit/chain-fixture.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';

const RECORDS = 1_000_000;
const AT_ONCE = 2_000;
const CHAINS = 4;
/** What a thousandth of the records and what is made of them take, many times over. */
const MOST_BYTES = 150 * 1024 * 1024;

describeReal('postgres', 'audit verify', () => {
  it('verifies a million records in bounded memory, and finds the altered one', async () => {
    await using database = await realDatabase();
    await using folder = await emptyFolder();
    for (let chain = 0; chain < CHAINS; chain += 1) {
      const process = auditProcess(database.db, folder.path);
      for (let count = 0; count < RECORDS / CHAINS; count += AT_ONCE) {
        process.spool(Array.from({ length: AT_ONCE }, () => auditRecord({ correlation_id: randomUUID() })));
        await process.drain();
      }
      await process.stop();
    }
    const raw = (statement: string) => database.db.unscoped('test').raw((sql) => sql<object>`${sql.raw(statement)}`);
    await raw(`update audit_records set status_code = 500
      where chain_index = ${RECORDS / CHAINS - 7} and chain_id = (select max(chain_id::text)::uuid from audit_records)`);
    let mostBytes = 0;
    const before = process.memoryUsage.rss();
    const startedAt = performance.now();
    const report = await verified(database.db, {
      onProgress: () => {
        mostBytes = Math.max(mostBytes, process.memoryUsage.rss() - before);
      },
    });
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    expect(report).toMatchObject({ records: RECORDS, chains: CHAINS, findingCount: 1 });
    expect(report.findings[0]?.message).toContain(`record ${RECORDS / CHAINS - 7} of chain`);
    expect(mostBytes).toBeLessThan(MOST_BYTES);
    process.stdout.write(
      `${JSON.stringify({ records: RECORDS, seconds, mebibytes: Math.round(mostBytes / 2 ** 20) })}\n`,
    );
  });
});
