import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { passwordsAtOnce, widenThreadPool } from '../../src/lib/thread-pool.ts';

const SOURCE = join(resolve(import.meta.dirname, '../../src'), 'lib/thread-pool.ts');
const PROGRAM = `
import { widenThreadPool } from ${JSON.stringify(SOURCE)};
widenThreadPool(process.env);
const { pbkdf2 } = await import('node:crypto');
const { readdirSync, readFileSync } = await import('node:fs');
const jobs = Array.from({ length: 8 }, () => new Promise((resolve) => pbkdf2('a', 'b', 1000, 32, 'sha256', resolve)));
await Promise.all(jobs);
const names = readdirSync('/proc/self/task').map((id) => readFileSync('/proc/self/task/' + id + '/comm', 'utf8').trim());
process.stdout.write(String(names.filter((name) => name === 'libuv-worker').length));
`;

it.runIf(process.platform === 'linux')(
  'the thread pool has the four threads of libuv and one for each concurrent password hash',
  async () => {
    const { UV_THREADPOOL_SIZE: _, ...env } = process.env;
    const args = ['--input-type=module', '--disable-warning=ExperimentalWarning', '-e', PROGRAM];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    expect(Number(stdout)).toBe(4 + passwordsAtOnce());
  },
);

it('a pool size that is already set is not changed', () => {
  const env = { UV_THREADPOOL_SIZE: '2' };
  widenThreadPool(env);
  expect(env).toEqual({ UV_THREADPOOL_SIZE: '2' });
});
