import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { ROOT } from '../support/start/process.ts';

/** Tells at the third descriptor which packages, and how many files of the product, a process has loaded. */
const TELLING = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  import { writeSync } from 'node:fs';
  const packages = new Set();
  let own = 0;
  registerHooks({
    load(url, context, next) {
      const [, bundled, name = bundled?.replace('_', '/')] = /node_modules[/](?:[.]packages[/][^/]+[/]([^/]+?)(?:[.]chunk)?[.]mjs|((?:@[^/]+[/])?[^/]+))/.exec(url) ?? [];
      if (name) packages.add(name);
      else own += url.startsWith('file:');
      return next(url, context);
    },
  });
  process.on('exit', () => writeSync(3, JSON.stringify({ packages: [...packages], own })));
`)}`;

function loadedBy(command: string): { packages: string[]; own: number } {
  const args = ['--import', TELLING, 'src/cli/portcullis.ts', ...command.split(' ')];
  const env = { PATH: process.env.PATH, PORT: 'http' };
  const script = '"$@" 3>&1 >/dev/null 2>&1 || true';
  return JSON.parse(
    execFileSync('sh', ['-c', script, 'sh', process.execPath, ...args], { cwd: ROOT, env, encoding: 'utf8' }),
  );
}

// What completes every command has loaded them all, as the help of each does with its own.
it.each(['completion', 'start'])(
  'D1-12 D1-14: %s loads no store, server or GraphQL package before it is rejected or answered',
  (command) => {
    const { packages } = loadedBy(command);
    for (const heavy of ['@mikro-orm/core', 'kysely', 'express', 'graphql', 'undici', 'kafkajs'])
      expect(packages).not.toContain(heavy);
  },
);

it.each(['--version', '--help', 'client --help', 'strat'])('D1-12: %s loads no package and few modules', (command) => {
  const { packages, own } = loadedBy(command);
  expect(packages).toEqual([]);
  expect(own).toBeGreaterThan(3);
  expect(own).toBeLessThan(15);
});

it('D1-12: a database command loads no server or GraphQL package', () => {
  const { packages } = loadedBy('client list');
  expect(packages).toEqual(expect.arrayContaining(['zod', 'prom-client']));
  for (const heavy of ['express', 'graphql', 'undici']) expect(packages).not.toContain(heavy);
});
