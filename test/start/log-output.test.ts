import { type ChildProcess, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { PATIENCE_MS } from '../support/harness/deadlines.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { onFreePorts } from '../support/services/ports.ts';
import { startedFolder } from '../support/start/folders.ts';
import { ROOT, SHORT_LIFE } from '../support/start/process.ts';

/** More than a pipe and the process hold, in lines of 8,000 characters. */
const REQUESTS = 300;
const MAIN = ['src/main.ts'];
const PROGRAM = ['src/cli/portcullis.ts', 'start'];
type Case = [output: string, args: string[], stdout: () => 'pipe' | number, begin?: (child: ChildProcess) => unknown];
const GONE: Case[] = [
  ['whose reader has gone', MAIN, () => 'pipe', ({ stdout }) => stdout?.destroy()],
  ['of bin/portcullis whose reader has gone', PROGRAM, () => 'pipe', ({ stdout }) => stdout?.destroy()],
];
const CASES: Case[] = [
  ...inTurn(GONE, 2, 0),
  ['that nobody reads', MAIN, () => 'pipe'],
  ['on a full disk', MAIN, () => openSync('/dev/full', 'w')],
];

it.each(CASES)(
  'D1-13: an instance with a log %s answers, and SIGTERM stops it',
  async (_output, args, stdout, begin) => {
    await using folder = await startedFolder();
    await onFreePorts(2, undefined, async ([port = 0, adminPort = 0]) => {
      const env = { PATH: process.env.PATH, DATA_DIR: folder.path, PORT: `${port}`, ADMIN_PORT: `${adminPort}` };
      const child = spawn(process.execPath, [...SHORT_LIFE, ...args], {
        cwd: ROOT,
        env,
        stdio: ['ignore', stdout(), 'inherit'],
      });
      try {
        begin?.(child);
        const ask = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status;
        await expect.poll(() => ask('/health').catch(() => 0)).toBe(200);
        for (let asked = 0; asked < REQUESTS; asked += 1) await ask(`/${asked}${'x'.repeat(8_000)}`);
        expect(await ask('/health')).toBe(200);
        child.kill('SIGTERM');
        await expect.poll(() => child.exitCode ?? child.signalCode).toBe(0);
      } finally {
        child.kill('SIGKILL');
      }
    });
  },
);

it('a log that is not read holds little, and its reader gets whole lines once it reads', async () => {
  const program = `
    const { pinoLog } = await import('./src/platform/telemetry/process-log.ts');
    const log = await pinoLog('info');
    for (let line = 0; line < 20_000; line += 1) log.info({}, 'x'.repeat(1_000));
    log.flush();
    process.stderr.write(String(process.stdout.writableLength));`;
  // The length is printed after the last line, and before anything is read.
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: ROOT,
    timeout: PATIENCE_MS,
  });
  const held = Number(await new Promise((told) => child.stderr.once('data', told)));
  const lines = (await text(child.stdout)).trim().split('\n');
  expect(held).toBeGreaterThan(0);
  expect(held).toBeLessThan(2 * 1024 * 1024);
  expect(lines.length).toBeLessThan(20_000);
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(lines.map(() => 'x'.repeat(1_000)));
});
