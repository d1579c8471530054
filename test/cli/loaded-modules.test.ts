import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { ROOT } from '../start/process.ts';

/** Tells at the third descriptor which packages a process has loaded. */
const TELLING = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  import { writeSync } from 'node:fs';
  const packages = new Set();
  registerHooks({
    load(url, context, next) {
      const name = /node_modules[/]((?:@[^/]+[/])?[^/]+)/.exec(url)?.[1];
      if (name) packages.add(name);
      return next(url, context);
    },
  });
  process.on('exit', () => writeSync(3, JSON.stringify([...packages])));
`)}`;

function packagesOf(command: string): string[] {
  const args = ['--import', TELLING, 'src/cli/portcullis.ts', ...command.split(' ')];
  const env = { PATH: process.env.PATH, PORT: 'http' };
  const script = '"$@" 3>&1 >/dev/null 2>&1 || true';
  return JSON.parse(
    execFileSync('sh', ['-c', script, 'sh', process.execPath, ...args], { cwd: ROOT, env, encoding: 'utf8' }),
  );
}

it.each(['--version', 'strat', 'start'])(
  'D1-12 D1-14: %s, refused or answered at once, waits for no store and no server',
  (command) => {
    const packages = packagesOf(command);
    for (const heavy of ['@mikro-orm/core', 'kysely', 'express', 'graphql', 'undici'])
      expect(packages).not.toContain(heavy);
  },
);

it('D1-12: a command on the database waits for the database alone', () => {
  const packages = packagesOf('client list');
  for (const heavy of ['express', 'graphql', 'undici']) expect(packages).not.toContain(heavy);
});
