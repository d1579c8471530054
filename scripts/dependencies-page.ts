import { LISTS, type LockedPackage, type Manifest } from './lockfile.ts';

const TITLES: Record<(typeof LISTS)[number], string> = {
  dependencies: 'Production',
  optionalDependencies: 'Optional',
  devDependencies: 'Development',
};

const ROW = /^\| `(?<name>[^`]+)` \| [^|]* \| (?<reason>[^|]*?) *\|$/gm;

/**
 * docs/dependencies.md with the counts, the packages and the licences as they are; why a package is there is what the page says.
 * A package that is new to it has no reason.
 */
export function syncedPage(page: string, manifest: Manifest, packages: readonly LockedPackage[]): string {
  const reasons = reasonsIn(page);
  const licences = new Map(packages.map(({ path, licence }) => [path, licence]));
  const tables = LISTS.map((list) => {
    const rows = Object.keys(manifest[list]).map(
      (name) => `| \`${name}\` | ${licences.get(`node_modules/${name}`) ?? 'none'} | ${reasons.get(name) ?? ''} |`,
    );
    return `## ${TITLES[list]}\n\n| package | licence | what for |\n|---|---|---|\n${rows.join('\n')}\n`;
  });
  const start = page.indexOf('## Count');
  const end = page.indexOf('## Licences');
  return `${page.slice(0, start)}${counts(manifest, packages)}\n${tables.join('\n')}\n${page.slice(end)}`;
}

/** Why each package is there, by its name. */
export function reasonsIn(page: string): Map<string, string> {
  return new Map(Array.from(page.matchAll(ROW), ({ groups }) => [groups?.name ?? '', groups?.reason ?? '']));
}

function counts(manifest: Manifest, packages: readonly LockedPackage[]): string {
  const production = packages.filter(({ isProduction }) => isProduction);
  const direct = LISTS.map((list) => Object.keys(manifest[list]).length);
  return `## Count

| | direct | with what they need |
|---|---|---|
| in the image | ${direct[0]} | ${production.length} |
| all | ${direct.reduce((sum, count) => sum + count)} | ${packages.length} |
`;
}
