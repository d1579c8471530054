import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { ROOT, spawnCli } from '../start/process.ts';

const PROGRAM = `"${process.execPath}" --disable-warning=ExperimentalWarning src/cli/portcullis.ts`;

it('D1-12: whoever stops reading ends a command without a complaint', () => {
  // The reader has gone long before the first byte.
  const script = `{ ${PROGRAM} completion zsh; echo "code $?" >&2; } | true`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { cwd: ROOT, encoding: 'utf8' });
  expect({ stdout, stderr }).toEqual({ stdout: '', stderr: 'code 0\n' });
});

it('D1-12: a command that nothing colours writes no escape sequence, whatever the terminal', async () => {
  const { code, stdout, stderr } = await spawnCli(['--help'], { FORCE_COLOR: '3' }).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).not.toContain('\u001b');
});
