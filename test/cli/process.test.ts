import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { realDatabase } from '../support/harness/databases.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { ROOT, runCli, spawnCli } from '../support/start/process.ts';

const PROGRAM = `"${process.execPath}" --disable-warning=ExperimentalWarning src/cli/portcullis.ts`;

it('D1-12: a command whose reader closes the pipe exits without an error', () => {
  // The reader has gone long before the first byte.
  const script = `{ ${PROGRAM} completion; echo "code $?" >&2; } | true`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { cwd: ROOT, encoding: 'utf8' });
  expect({ stdout, stderr }).toEqual({ stdout: '', stderr: 'code 0\n' });
});

it('D1-12: a command writes no escape sequence, even with FORCE_COLOR', async () => {
  const { code, stdout, stderr } = await spawnCli(['--help'], { FORCE_COLOR: '3' }).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).not.toContain('\u001b');
});

it.each(inTurn(['--help', 'completion', 'config check --json'], 3, 0))(
  'D1-12: %s writing to a full disk exits with 1 and one sentence',
  (command) => {
    const { status, stderr } = spawnSync('bash', ['-c', `${PROGRAM} ${command} >/dev/full`], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: 'portcullis: could not write the output (ENOSPC): it is incomplete\n',
    });
  },
);

it('D1-12: an unwritable standard error does not change the exit code', () => {
  const { status, stdout } = spawnSync('bash', ['-c', `${PROGRAM} nope 2>/dev/full`], { cwd: ROOT, encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
});

describeReal('postgres', 'a command on a database', () => {
  it('D1-12: a file with a read error is named in one sentence', async () => {
    await using folder = await emptyFolder();
    await using database = await realDatabase();
    const env = { DATA_DIR: folder.path, DATABASE_URL: database.url };
    const { code, stderr } = await runCli(['reference', 'load', '/proc/self/mem'], env);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'portcullis: /proc/self/mem cannot be read (EIO): give a readable file\n',
    });
  });
});
