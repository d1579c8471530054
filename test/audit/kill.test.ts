import { readdir } from 'node:fs/promises';
import { expect, inject, it } from 'vitest';
import { Journal } from '../support/audit/kill-journal.ts';
import { killUnderAudit } from '../support/audit/kill-rounds.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';

const [ANSWERS, KILLS] = inject('isThorough') ? [100_000, 8] : [300, 1];
const AGREED = { lost: [], twice: [], invented: [], untrue: [] };

describeReal(['postgres', 'redis', 'kafka'], 'an instance that is killed under load', () => {
  it('D2-07 D2-20: has exactly one record of each answered request, across kills and outages of PostgreSQL', async () => {
    await using folder = await emptyFolder();
    const report = await killUnderAudit({ spoolDir: folder.path, answers: ANSWERS, kills: KILLS });
    expect(report.disagreements).toEqual(AGREED);
    expect(report.findings).toEqual([]);
    expect(report.answered).toBeGreaterThanOrEqual(ANSWERS);
    // There was something to replay, and it was replayed.
    for (const bytes of [report.spooled.killed[0], report.spooled.outage[0]]) expect(bytes).toBeGreaterThan(0);
    expect(await readdir(folder.path)).toEqual([]);
  });
});

it('the comparison reports missing, duplicate, invented and wrong records', () => {
  const journal = new Journal();
  const entries = ['lost', 'twice', 'untrue', 'right', 'batch', 'left', 'cut'].map((id) => journal.begin(id, 'x', 1));
  const [lost, twice, untrue, right, batch, left] = entries;
  if (!lost || !twice || !untrue || !right || !batch || !left) throw new Error('there are six');
  batch.most = 3;
  for (const entry of [lost, twice, untrue, right, batch]) journal.answer(entry, 200);
  journal.leave(left);
  journal.settle(Number.POSITIVE_INFINITY);
  const record = (id: string, status = 200) => ({ correlation_id: id, status_code: status, aborted: false });
  const ids = ['twice', 'twice', 'right', 'batch', 'batch', 'invented'];
  const found = journal.compare([...ids.map((id) => record(id)), record('untrue', 500)]);
  expect(found).toEqual({
    lost: [expect.stringMatching(/^lost /), expect.stringMatching(/^batch .*2 of 3/), expect.stringMatching(/^left /)],
    twice: [expect.stringMatching(/^twice /)],
    invented: ['invented'],
    untrue: [expect.stringMatching(/^untrue /)],
  });
});
