import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bundledNames } from '../../scripts/bundle-packages.ts';
import { lockSum } from '../../src/lib/fast/module-resolution.ts';
import { inPlainNode } from '../support/architecture/plain-node.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { ROOT } from '../support/start/process.ts';

const OWN = 'src/lib/fast/module-resolution.ts';
const LIBRARY = 'test/support/fast/library/module-resolution.ts';

/** Loads the whole service, and tells the files that were loaded, with their formats. */
const LOAD = `
  import { registerHooks } from 'node:module';
  const { resolveFast } = await import(process.cwd() + '/' + process.argv[1]);
  const loaded = [];
  registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:')) loaded.push([url.slice(url.indexOf(process.cwd()) + process.cwd().length), context.format]);
      return next(url, context);
    },
  });
  resolveFast();
  await import(process.cwd() + '/src/app/service.ts');
  process.stdout.write(JSON.stringify(loaded.sort()), () => process.exit());`;

type Loaded = [path: string, format: string][];

const within = (folder: string, loaded: Loaded) => loaded.filter(([path]) => path.startsWith(folder));

it('D1-03: a start loads the same files of the product as by Node alone, in the same formats, and few of packages', async () => {
  const own = (await inPlainNode(LOAD, [OWN])) as Loaded;
  const library = (await inPlainNode(LOAD, [LIBRARY])) as Loaded;
  expect(within('/src/', own)).toEqual(within('/src/', library));
  expect(within('/src/', own).length).toBeGreaterThan(200);
  expect(within('/node_modules/', library).length).toBeGreaterThan(500);
  expect(within('/node_modules/', own).length).toBeLessThan(60);
  expect(within('/node_modules/.packages/', own)).toEqual(within('/node_modules/', own));
});

/** Tells the exports of each package, by `import` and by `require`, and the kind of each. */
const EXPORTS = `
  import { createRequire } from 'node:module';
  const { resolveFast } = await import(process.cwd() + '/' + process.argv[1]);
  resolveFast();
  const require = createRequire(process.cwd() + '/src/main.ts');
  const kindsOf = (exported) => Object.keys(exported).filter((key) => key !== '__esModule').sort().map((key) => key + ' ' + typeof exported[key]);
  const names = process.argv.slice(2);
  const answer = {};
  for (const name of names) answer[name] = kindsOf(await import(name));
  for (const name of names.filter((name) => answer[name].includes('module.exports object') || answer[name].includes('module.exports function')))
    answer['require ' + name] = kindsOf(require(name));
  process.stdout.write(JSON.stringify(answer), () => process.exit());`;

it('a bundled package has the exports that Node finds, a CommonJS package for `require` too', async () => {
  const names = bundledNames();
  expect(names).toEqual(expect.arrayContaining(['graphql', 'jose/errors', 'kafkajs/src/cluster/index.js', 'undici']));
  const own = await inPlainNode(EXPORTS, [OWN, ...names]);
  expect(own).toEqual(await inPlainNode(EXPORTS, [LIBRARY, ...names]));
});

/** Tells where a package is. */
const WHERE = `
  const { resolveFast } = await import(process.argv[1]);
  resolveFast();
  process.stdout.write(JSON.stringify(import.meta.resolve('zod')));`;

it.each([
  [
    'is used for the versions of the lock file',
    (sum: number) => JSON.stringify({ lockSum: sum, files: { zod: 'z.mjs' } }),
    true,
  ],
  [
    'of other versions is left alone',
    (sum: number) => JSON.stringify({ lockSum: sum + 1, files: { zod: 'z.mjs' } }),
    false,
  ],
  ['that was written in part is left alone', () => '{"lockSum":', false],
])('a bundle %s', async (_, index, isUsed) => {
  await using folder = await emptyFolder();
  const packages = join(folder.path, 'node_modules/.packages');
  await mkdir(packages, { recursive: true });
  for (const file of ['package-lock.json', OWN]) await cp(join(ROOT, file), join(folder.path, file));
  await writeFile(join(packages, 'index.json'), index(lockSum()));
  const where = await inPlainNode(WHERE, [join(folder.path, OWN)]);
  expect(String(where).endsWith(isUsed ? '/node_modules/.packages/z.mjs' : '/node_modules/zod/index.js')).toBe(true);
});
