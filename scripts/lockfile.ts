import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What of an entry of package-lock.json (npm's documentation, "package-lock.json", "packages") is read here. */
export interface LockEntry {
  /** The name, if it differs from the name of the folder. */
  name?: string;
  /** Whether it is a link to a folder of the repository, which has its own entry. */
  link?: boolean;
  version: string;
  integrity?: string;
  license?: string;
  dev?: boolean;
  devOptional?: boolean;
  optional?: boolean;
  hasInstallScript?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

/** A package of the tree. */
export interface LockedPackage extends LockEntry {
  /** Where it lies, `node_modules/a/node_modules/b`. */
  path: string;
  name: string;
  /** SPDX: what its own package.json says, or what its LICENSE does where that names none. */
  licence: string;
  /** Whether the image has it: the product or the console needs it, and not as an option. */
  isProduction: boolean;
}

export const LISTS = ['dependencies', 'optionalDependencies', 'devDependencies'] as const;

export interface Manifest extends Record<(typeof LISTS)[number], Record<string, string>> {
  name: string;
  version: string;
  description: string;
  license: string;
  allowScripts: Record<string, boolean>;
}

/** Packages whose package.json has no SPDX expression, by what their LICENSE says. */
const BY_LICENSE_FILE: Readonly<Record<string, string>> = {
  '@modelcontextprotocol/inspector': 'Apache-2.0 AND MIT',
};

export function readManifest(root: string): Manifest {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
}

/** Every package of package-lock.json but the product. */
export function lockedPackages(root: string): LockedPackage[] {
  const lock: { packages: Record<string, LockEntry> } = JSON.parse(
    readFileSync(join(root, 'package-lock.json'), 'utf8'),
  );
  const ofConsole = needed(lock.packages, 'console');
  return Object.entries(lock.packages)
    .filter(([path, { link }]) => path !== '' && !link)
    .map(([path, entry]) => {
      const name = entry.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
      const isProduction = ofConsole.has(path) || !(entry.dev || entry.devOptional || entry.optional);
      return { ...entry, path, name, licence: BY_LICENSE_FILE[name] ?? entry.license ?? 'none', isProduction };
    });
}

/** The paths of the packages that what lies at `path` needs, and those need; all of the console's lie at the top. */
function needed(packages: Readonly<Record<string, LockEntry>>, path: string, found = new Set<string>()): Set<string> {
  for (const name of Object.keys(packages[path]?.dependencies ?? {})) {
    const at = `node_modules/${name}`;
    if (!found.has(at)) needed(packages, at, found.add(at));
  }
  return found;
}

/** The package that `name` resolves to from `path`: in its own folder, or in the folder of one around it. */
export function resolved(
  packages: ReadonlyMap<string, LockedPackage>,
  path: string,
  name: string,
): LockedPackage | undefined {
  for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const found = packages.get(`${folder === '' ? '' : `${folder}/`}node_modules/${name}`);
    if (found !== undefined || folder === '') return found;
  }
}
