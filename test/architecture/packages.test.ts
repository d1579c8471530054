import { globSync, readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageFaults } from '../../scripts/packages.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { ROOT } from '../support/start/process.ts';

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** The faults of a product of two files, which import all that package.json names, changed by `change`. */
async function faultsOf(change: (root: string) => Promise<void>): Promise<string[]> {
  await using product = await emptyFolder();
  const importing = (names: object) => Object.keys(names).map((name) => `import '${name}';\n`);
  await Promise.all(['src', 'test'].map((folder) => mkdir(join(product.path, folder))));
  await writeFile(join(product.path, 'package.json'), JSON.stringify(manifest));
  await writeFile(join(product.path, 'src/all.ts'), importing(manifest.dependencies));
  await writeFile(join(product.path, 'test/all.ts'), importing(manifest.devDependencies));
  expect(packageFaults(product.path)).toEqual([]);
  await change(product.path);
  return packageFaults(product.path);
}

async function replaceEverywhere(folder: string, from: RegExp, to: string): Promise<void> {
  for (const file of globSync('**/*.ts', { cwd: folder })) {
    const path = join(folder, file);
    const text = await readFile(path, 'utf8');
    if (text.search(from) >= 0) await writeFile(path, text.replaceAll(from, to));
  }
}

async function name(root: string, list: string, packages: Record<string, string>): Promise<void> {
  const path = join(root, 'package.json');
  const named = JSON.parse(await readFile(path, 'utf8'));
  await writeFile(path, JSON.stringify({ ...named, [list]: { ...named[list], ...packages } }));
}

it('the chosen packages, package.json and the imports agree', () => {
  expect(packageFaults(ROOT)).toEqual([]);
});

it('a missing entry is reported for each chosen package', async () => {
  const chosen = [
    'jose',
    'express',
    'kafkajs',
    'redis',
    'graphql',
    'graphql-yoga',
    '@pothos/core',
    '@pothos/plugin-zod',
  ];
  const all = [...chosen, '@mikro-orm/core', '@mikro-orm/postgresql', '@envelop/core'];
  const specifier = new RegExp(`(['"])(?:${all.join('|')})(?:/[^'"]*)?\\1`, 'g');
  const faults = await faultsOf((root) => replaceEverywhere(join(root, 'src'), specifier, "'./gone.ts'"));
  for (const name of all) {
    expect(faults).toContain(`${name} is chosen and src does not import it`);
    expect(faults).toContain(`${name} is a dependency and src does not import it`);
  }
});

it('a test that does not use vitest is reported', async () => {
  const faults = await faultsOf(async (root) => {
    await replaceEverywhere(join(root, 'test'), /'vitest'/g, "'node:test'");
  });
  expect(faults).toContain('vitest is chosen and test does not import it');
});

it('a dependency that nothing imports is reported', async () => {
  const faults = await faultsOf(async (root) => {
    await name(root, 'dependencies', { 'left-pad': '1.0.0' });
    await name(root, 'devDependencies', { sinon: '1.0.0', '@types/sinon': '1.0.0' });
  });
  expect(faults).toEqual([
    'left-pad is a dependency and src does not import it',
    'sinon is a devDependency and nothing imports it',
    '@types/sinon is a devDependency and nothing imports it',
  ]);
});

it.each([
  ["import pad from 'left-pad';"],
  ["import type { Pad } from 'left-pad/types';"],
  ["import 'left-pad';"],
  ["import {\n  pad,\n} from 'left-pad';"],
  ["export { pad } from 'left-pad';"],
  ["export const { pad } = await import('left-pad');"],
])('an import of a package that is not listed is reported: %j', async (line) => {
  const faults = await faultsOf((root) => writeFile(join(root, 'src/bad.ts'), `${line}\n`));
  expect(faults).toEqual(['src imports left-pad, which is no dependency']);
});

it('a source file that imports a test-only package is reported', async () => {
  const faults = await faultsOf((root) => writeFile(join(root, 'src/bad.ts'), "import fc from 'fast-check';\n"));
  expect(faults).toEqual(['src imports fast-check, which is no dependency']);
});
