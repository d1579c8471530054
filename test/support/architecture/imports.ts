import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { ROOT } from '../start/process.ts';

/** An import of one file of `src` by another, both named from `src`; types count like values. */
export type Import = readonly [importer: string, imported: string];

/** A static import or a re-export, an import for its effect, and an import in an expression. */
const FORMS =
  /^(?:import|export)\s+[^'";]*?\s*\bfrom\s+'(\.[^']+)'|^import\s+'(\.[^']+)'|\bimport\(\s*'(\.[^']+)'\s*\)/gm;

/** Returns every file of `src`, named from `src`. */
export function sourceFiles(): string[] {
  return globSync('**/*.ts', { cwd: join(ROOT, 'src') }).sort();
}

/** Returns the imports of the sources as they are. */
export function sourceImports(): Import[] {
  return sourceFiles().flatMap((file) => importsOf(file, readFileSync(join(ROOT, 'src', file), 'utf8')));
}

/** Returns what a file with this text imports of `src`. */
export function importsOf(file: string, text: string): Import[] {
  return Array.from(text.matchAll(FORMS), ([, from, effect, expression]) => {
    return [file, normalize(join(dirname(file), from ?? effect ?? expression ?? ''))];
  });
}

/** Returns the groups of files that import one another in a circle, types included. */
export function fileCycles(imports: readonly Import[]): string[][] {
  const below = new Map<string, Set<string>>();
  for (const [importer, imported] of imports) {
    below.set(importer, (below.get(importer) ?? new Set()).add(imported));
  }
  return circles(below);
}

/** Returns the groups of folders that import one another in a circle, at each depth of folders; empty where there are none. */
export function folderCycles(imports: readonly Import[]): string[][] {
  const deepest = Math.max(...imports.flatMap(([, file]) => file.split('/').length - 1));
  const found = Array.from({ length: deepest }, (_, depth) => circles(folded(imports, depth + 1)));
  return [...new Map(found.flat().map((folders) => [folders.join(' '), folders])).values()];
}

/** A file's folder, cut to a depth; a file of `src` itself stands for itself. */
function folderOf(file: string, depth: number): string {
  const folders = file.split('/').slice(0, -1);
  return folders.length === 0 ? file : folders.slice(0, depth).join('/');
}

function folded(imports: readonly Import[], depth: number): ReadonlyMap<string, ReadonlySet<string>> {
  const below = new Map<string, Set<string>>();
  for (const [importer, imported] of imports) {
    const [from, to] = [folderOf(importer, depth), folderOf(imported, depth)];
    if (from !== to) below.set(from, (below.get(from) ?? new Set()).add(to));
  }
  return below;
}

/** The folders that reach one another, in groups of at least two. */
function circles(below: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const reached = new Map(Array.from(below.keys(), (folder) => [folder, reachedFrom(folder, below)]));
  const groups = Array.from(reached, ([folder, ends]) =>
    [...ends].filter((end) => reached.get(end)?.has(folder)).sort(),
  ).filter((group) => group.length > 1);
  return [...new Map(groups.map((group) => [group.join(' '), group])).values()];
}

function reachedFrom(start: string, below: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  const reached = new Set<string>();
  const waiting = [start];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const next of below.get(folder) ?? []) {
      if (reached.has(next)) continue;
      reached.add(next);
      waiting.push(next);
    }
  }
  return reached;
}
