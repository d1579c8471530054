import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { emptyFolder } from '../support/start/folders.ts';
import { ROOT } from '../support/start/process.ts';

const SOURCE = "import { parse } from 'yaml';\nexport const parsed = parse('1');\n";

/** A checkout with one package, and the bundler if it `isWhole`. */
async function checkout(isWhole = true) {
  const folder = await emptyFolder();
  const path = (name: string) => join(folder.path, name);
  for (const name of ['scripts', 'src/lib/fast', 'node_modules']) await mkdir(path(name), { recursive: true });
  for (const name of [
    'package.json',
    'package-lock.json',
    'scripts/bundle-packages.ts',
    'src/lib/fast/module-resolution.ts',
  ])
    await cp(join(ROOT, name), path(name));
  for (const name of ['yaml', ...(isWhole ? ['rolldown'] : [])])
    await symlink(join(ROOT, 'node_modules', name), path(`node_modules/${name}`));
  await writeFile(path('node_modules/.package-lock.json'), '{}');
  await writeFile(path('src/main.ts'), SOURCE);
  const run = (command: string, args: string[]) => promisify(execFile)(command, args, { cwd: folder.path });
  return {
    path,
    bundle: () => run(process.execPath, ['scripts/bundle-packages.ts']),
    /** Does what `npm start` does before the start, with the Node of the test. */
    prestart: async () => {
      const { scripts } = JSON.parse(await readFile(path('package.json'), 'utf8'));
      return run('sh', [
        '-c',
        scripts.prestart.replace('npm run -s bundle', `${process.execPath} scripts/bundle-packages.ts`),
      ]);
    },
    /** The entries of a folder; none if it does not exist. */
    entries: (name: string) => readdir(path(name)).catch(() => []),
    /** Which file the package is loaded from, and when it was written. */
    async bundled() {
      const { files } = JSON.parse(await readFile(path('node_modules/.packages/index.json'), 'utf8'));
      const file = `node_modules/.packages/${files.yaml}`;
      const { ino, mtimeMs } = await stat(path(file));
      return { file, ino, mtimeMs };
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const PACKAGES = 'node_modules/.packages';

it('a process that bundles the packages leaves a bundle in place that another has written meanwhile', async () => {
  await using tree = await checkout();
  const both = [tree.bundle(), tree.bundle()];
  await Promise.race(both);
  const first = await tree.bundled();
  await Promise.all(both);
  expect(await tree.bundled()).toEqual(first);
  expect(await tree.entries(PACKAGES)).toHaveLength(2);
});

it('a bundle that cannot be written leaves nothing, and says why', async () => {
  await using tree = await checkout();
  await writeFile(tree.path('src/main.ts'), "import { nothing } from 'absent-package';\n");
  const { stderr } = await tree.bundle();
  expect(stderr).toMatch(/^The packages are not bundled: .*absent-package/s);
  expect((await tree.entries('node_modules')).filter((name) => name.startsWith('.packages-'))).toEqual([]);
  expect(await tree.entries(PACKAGES)).toEqual([]);
});

it('what a process has left that was killed while it wrote is removed, and so are older bundles', async () => {
  await using tree = await checkout();
  await tree.bundle();
  const old = await tree.bundled();
  const longAgo = new Date(Date.now() - 3_600_000);
  for (const name of ['1', '1-killed']) {
    await mkdir(tree.path(`${PACKAGES}/${name}`));
    await utimes(tree.path(`${PACKAGES}/${name}`), longAgo, longAgo);
  }
  await writeFile(tree.path('node_modules/.package-lock.json'), '{ "of": "another version" }');
  await tree.bundle();
  const { file } = await tree.bundled();
  // The bundle before is kept for processes that still run from it.
  expect(await tree.entries(PACKAGES)).toEqual(
    [...new Set([file, old.file].map((path) => path.split('/')[2])), 'index.json'].sort(),
  );
});

it.each([
  [
    'package that is installed without a change of the lock file',
    'node_modules/.package-lock.json',
    '{ "of": "another version" }',
  ],
  ['lock file', 'package-lock.json', '{ "lockfileVersion": 3 }'],
  ['name of a package in the source', 'src/other.ts', "export { parse } from 'yaml/util';\n"],
])('npm start bundles the packages again after a change of a %s', async (_, name, text) => {
  await using tree = await checkout();
  await tree.prestart();
  const first = await tree.bundled();
  await tree.prestart();
  expect(await tree.bundled()).toEqual(first);
  await writeFile(tree.path(name), text);
  await tree.prestart();
  expect((await tree.bundled()).file).not.toBe(first.file);
});

it('without the bundler nothing is written, and nothing reported', async () => {
  await using tree = await checkout(false);
  expect(await tree.bundle()).toEqual({ stdout: '', stderr: '' });
  expect(await tree.entries(PACKAGES)).toEqual([]);
});
