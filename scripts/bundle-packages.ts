import { randomUUID } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Plugin } from 'rolldown';
import { type Bundle, lockSum } from '../src/lib/fast/module-resolution.ts';

const ROOT = resolve(import.meta.dirname, '..');
const FOLDER = join(ROOT, 'node_modules/.packages');
const INDEX = join(FOLDER, 'index.json');

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

/**
 * Bundles the packages of the product, unless the installed versions are bundled already or there is no bundler. Each
 * bundle has a folder of its own, which is complete as soon as it is there, and the index is replaced as a whole: another
 * process may load the packages meanwhile, or write the same bundle.
 */
export async function bundlePackages(): Promise<void> {
  const names = bundledNames();
  // `npm install --no-save` changes what is installed, and not the lock file.
  const installed = read(join(ROOT, 'node_modules/.package-lock.json'));
  const name = crc32(JSON.stringify([lockSum(), installed, read(import.meta.filename), names])).toString(16);
  const files = Object.fromEntries(names.map((each) => [each, `${name}/${each.replaceAll('/', '_')}.mjs`]));
  const index = JSON.stringify({ lockSum: lockSum(), files } satisfies Bundle);
  const before = read(INDEX);
  const folder = join(FOLDER, name);
  if (existsSync(folder)) {
    // From now on it is newer than what it is made of, and `npm start` does not ask again.
    if (before === index) return utimes(INDEX, new Date(), new Date());
  } else if (!(await writeBundle(names, folder))) return;
  await renamed(INDEX, (path) => writeFile(path, index));
  await removeOldBundles([index, before ?? '']);
}

/** Writes a bundle to a folder. Returns false if there is no bundler. */
async function writeBundle(names: readonly string[], folder: string): Promise<boolean> {
  const bundler = await import('rolldown').catch(() => undefined);
  if (bundler === undefined) return false;
  await mkdir(FOLDER, { recursive: true });
  await renamed(folder, async (dir) => {
    const bundle = await bundler.rolldown({
      input: Object.fromEntries(names.map((name) => [name.replaceAll('/', '_'), ENTRY + name])),
      cwd: ROOT,
      platform: 'node',
      external: [APART, ABSENT],
      // What Node takes, and not what is meant for bundlers.
      resolve: { conditionNames: ['node'], mainFields: ['main'] },
      // Each module runs, as in Node, whatever its package says of it.
      treeshake: { moduleSideEffects: true },
      plugins: [entries],
    });
    await bundle.write({ dir, format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: '[name].chunk.mjs' });
    await bundle.close();
  }).catch((error) => {
    // Another process may have been faster.
    if (!existsSync(folder)) throw error;
  });
  return true;
}

/** Writes a file or a folder by another name, and renames it once it is complete; removes what could not be written. */
async function renamed(path: string, write: (made: string) => Promise<void>): Promise<void> {
  const made = `${path}-${randomUUID()}`;
  try {
    await write(made);
    await rename(made, path);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

/** How long a process may take to write a bundle, in ms. */
const WRITE_MS = 600_000;

/** Removes what no index of these names: older bundles, and what a process has left that was killed while it wrote. */
async function removeOldBundles(indexes: readonly string[]): Promise<void> {
  for (const entry of await readdir(FOLDER)) {
    const isNamed = entry === 'index.json' || indexes.some((index) => index.includes(`"${entry}/`));
    const { mtimeMs } = await stat(join(FOLDER, entry)).catch(() => ({ mtimeMs: Date.now() }));
    if (!isNamed && mtimeMs < Date.now() - WRITE_MS) await rm(join(FOLDER, entry), { recursive: true, force: true });
  }
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
