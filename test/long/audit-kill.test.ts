import { expect, it } from 'vitest';
import { killUnderAudit } from '../support/audit/kill-rounds.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';

const ANSWERS = 100_000;
const KILLS = 8;

describeReal(['postgres', 'redis', 'kafka'], 'audit records of an instance that is killed under load', () => {
  it('D2-07 D2-20: of 100,000 answered requests none is lost and none is recorded twice', async () => {
    await using folder = await emptyFolder();
    const startedAt = performance.now();
    const { disagreements, findings, ...report } = await killUnderAudit({
      spoolDir: folder.path,
      answers: ANSWERS,
      kills: KILLS,
    });
    expect(findings).toEqual([]);
    expect(disagreements).toEqual({ lost: [], twice: [], invented: [], untrue: [] });
    expect(report.answered).toBeGreaterThanOrEqual(ANSWERS);
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    process.stdout.write(`${JSON.stringify({ ...report, lost: 0, twice: 0, seconds })}\n`);
  });
});
