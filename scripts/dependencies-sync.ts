import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { reasonsIn, syncedPage } from './dependencies-page.ts';
import { lockedPackages, readManifest } from './lockfile.ts';

/** Brings docs/dependencies.md up to date; exit code 1 when a package has no reason to be there. */
function main(root: string): void {
  const path = join(root, 'docs/dependencies.md');
  const page = syncedPage(readFileSync(path, 'utf8'), readManifest(root), lockedPackages(root));
  writeFileSync(path, page);
  const without = Array.from(reasonsIn(page)).flatMap(([name, reason]) => (reason === '' ? [name] : []));
  for (const name of without) process.stderr.write(`docs/dependencies.md does not say what ${name} is for\n`);
  process.exitCode = without.length === 0 ? 0 : 1;
}

main(resolve(import.meta.dirname, '..'));
