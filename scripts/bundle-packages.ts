import { globSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { Plugin } from 'rolldown';
import { type Bundle, lockSum } from '../src/lib/fast/module-resolution.ts';

const ROOT = resolve(import.meta.dirname, '..');
const FOLDER = join(ROOT, 'node_modules/.packages');

/** A static import or re-export unless it is of types only, and an import or `require` of one package by its name. */
const IMPORTS = /(?:^(?:import|export|\}) (?!type\b)(?:[^'\n;]* )?from |\b(?:import|require)\()'([^.'][^']*)'/gm;
/** Packages that find their own files by their paths, or that few processes load. */
const APART =
  /^(?:@electric-sql\/|@graphql-yoga\/render-graphiql$|@opentelemetry\/(?!api$)|node:|pino-pretty$|swagger-ui-dist\/)/;
/** What a package loads if it is there; it is not. */
const ABSENT = /^pg-native$/;

/** The names by which the product imports the packages that are bundled. */
export function bundledNames(): string[] {
  const texts = globSync('src/**/*.ts', { cwd: ROOT }).map((path) => readFileSync(join(ROOT, path), 'utf8'));
  const names = texts.flatMap((text) => Array.from(text.matchAll(IMPORTS), ([, name = '']) => name));
  return [...new Set(names)].filter((name) => !APART.test(name)).sort();
}

/** Bundles the packages of the product, unless the installed versions are bundled already or there is no bundler. */
export async function bundlePackages(): Promise<void> {
  const names = bundledNames();
  const files = Object.fromEntries(names.map((name) => [name, `${name.replaceAll('/', '_')}.mjs`]));
  const index = JSON.stringify({ lockSum: lockSum(), files } satisfies Bundle);
  // From now on it is newer than the lock file, and `npm start` does not ask again.
  if (read(join(FOLDER, 'index.json')) === index) return utimes(join(FOLDER, 'index.json'), new Date(), new Date());
  const bundler = await import('rolldown').catch(() => undefined);
  if (bundler === undefined) return;
  const made = `${FOLDER}-${process.pid}`;
  await mkdir(made, { recursive: true });
  const bundle = await bundler.rolldown({
    input: Object.fromEntries(names.map((name) => [basename(files[name] ?? '', '.mjs'), ENTRY + name])),
    cwd: ROOT,
    platform: 'node',
    external: [APART, ABSENT],
    // What Node takes, and not what is meant for bundlers.
    resolve: { conditionNames: ['node'], mainFields: ['main'] },
    // Each module runs, as in Node, whatever its package says of it.
    treeshake: { moduleSideEffects: true },
    plugins: [entries],
  });
  await bundle.write({ dir: made, format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: '[name].chunk.mjs' });
  await bundle.close();
  await writeFile(join(made, 'index.json'), index);
  await rm(FOLDER, { recursive: true, force: true });
  // Another process may have been faster.
  await rename(made, FOLDER).catch(() => rm(made, { recursive: true }));
}

const ENTRY = 'package:';

/** A module for each name, with the exports that Node finds in the package. */
const entries: Plugin = {
  name: 'entries',
  resolveId: (id) => (id.startsWith(ENTRY) ? `${join(ROOT, id)}.mjs` : undefined),
  async load(id) {
    const name = id.split(ENTRY)[1]?.replace(/\.mjs$/, '');
    if (name === undefined) return undefined;
    const exported = Object.keys(await import(name)).filter((key) => key !== '__esModule');
    // `require` returns what an export of that name says.
    const list = exported.map((key) => (key === 'module.exports' ? `default as '${key}'` : key));
    return `export { ${list.join(', ')} } from '${name}';`;
  },
};

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

// The product runs without it, and the folder may be read-only.
if (import.meta.main)
  await bundlePackages().catch((error) => process.stderr.write(`The packages are not bundled: ${error.message}\n`));
