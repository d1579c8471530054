import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { findPackageJSON, stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type FileContent,
  type Files,
  IMMUTABLE,
  KEPT,
  PAGE,
  REVALIDATED,
  SCRIPT,
  ServedFiles,
  STYLE,
} from '../shared/served-files.ts';

const FOLDER = join(import.meta.dirname, '../../../console');
/** The path of the file that lists the operations of the console, in the format of `GRAPHQL_PERSISTED_FILE`. */
export const CONSOLE_OPERATIONS = join(FOLDER, '../schema/console-operations.json');
const MANIFEST = join(FOLDER, 'package.json');
/** The source of the client package, which the console uses: served as `client/`. */
const CLIENT = '../client/src/';
/** The names of the console's own files, without the page. */
const OWN = /^(?:client\/)?(?:[a-z-]+\/)?[a-z-]+\.(ts|css|svg)$/;
/** The names of modules of its packages. */
const PACKAGED = /^packages\/((?:@[a-z-]+\/)?[a-z-]+)\/((?:[\w-]+\/)*[\w.-]+\.m?js)$/;
/** An address that names the version of the console's own files before the name of one. */
const VERSIONED = /^v\/([\w-]+)\/(.+)$/;
/** The policy of everything but the page: nothing of it is a document. */
const NOTHING = "default-src 'none'; frame-ancestors 'none'";

/**
 * Returns the files of the console: its page, its modules and the client's, whose types are removed as they are served,
 * and files of its packages. The page refers to its modules below a folder that names their version, so that browsers
 * cache them. The folder of any other version, which an open page or another gateway may use, has the same files.
 * Undefined where its packages are not installed.
 */
export function consoleFiles(): Files | undefined {
  if (!existsSync(MANIFEST)) return undefined;
  const folders = new Map<string, string>();
  for (const name of Object.keys(JSON.parse(readFileSync(MANIFEST, 'utf8')).dependencies)) {
    const manifest = findPackageJSON(name, pathToFileURL(MANIFEST));
    if (manifest === undefined) return undefined;
    folders.set(name, dirname(manifest));
  }
  let reading: Promise<string> | undefined;
  const current = () => {
    reading ??= versionOf();
    return reading;
  };
  const files: Files = new ServedFiles(async (name) => {
    if (name === '') return page(await current(), files);
    const [, extension] = OWN.exec(name) ?? [];
    const [, packageName = '', file = ''] = PACKAGED.exec(name) ?? [];
    const folder = extension === undefined ? folders.get(packageName) : FOLDER;
    const path = folder && join(folder, extension === undefined ? file : name.replace(/^client\//, CLIENT));
    if (path === undefined || !existsSync(path)) return undefined;
    if (extension !== undefined) return own(path, extension);
    return { bytes: await readFile(path), type: SCRIPT, cacheControl: KEPT, policy: NOTHING };
  });
  return {
    find: async (address) => {
      const [, version, name = address] = VERSIONED.exec(address) ?? [];
      const file = await files.find(name);
      return file && version === (await current()) ? { ...file, cacheControl: IMMUTABLE } : file;
    },
  };
}

/** Returns a hash of the console's own files. */
async function versionOf(): Promise<string> {
  const hash = createHash('sha256');
  const names = await Array.fromAsync(
    glob(['**/*.{ts,css,svg}', `${CLIENT}**/*.ts`], { cwd: FOLDER, exclude: ['node_modules/**'] }),
  );
  for (const name of names.sort()) hash.update(await readFile(join(FOLDER, name)));
  return hash.digest('base64url').slice(0, 16);
}

/** The modules that a first visit needs, with all that they import: the start, and the view that opens first. */
const FIRST = ['main.ts', 'views/overview.ts'];
const IMPORT = /(?:^|[;}])\s*(?:import|export)[^'"();]*?from\s*["']([^"']+)["']/gm;

/** Returns links by which the page requests the modules of a first visit together, and not import by import. */
async function preloads(page: string, files: Files): Promise<string> {
  const { imports } = JSON.parse(importMapOf(page));
  const names = new Set<string>();
  // The start comes before the view: all of it is needed to sign in.
  for (const first of FIRST) {
    names.add(first);
    for (const name of names) {
      for (const [, specifier = ''] of String((await files.find(name))?.bytes).matchAll(IMPORT)) {
        names.add(join(imports[specifier] ? '' : dirname(name), imports[specifier] ?? specifier));
      }
    }
  }
  return Array.from(names, (name) => `<link rel="modulepreload" href="${name}">\n`).join('');
}

async function page(version: string, files: Files): Promise<FileContent> {
  const source = await readFile(join(FOLDER, 'index.html'), 'utf8');
  const written = source.replace('<script type="module"', `${await preloads(source, files)}$&`);
  const html = written.replaceAll(/((?:src|href)="|"\.\/(?=client\/))(?!packages\/)/g, `$1v/${version}/`);
  return { bytes: Buffer.from(html), type: PAGE, cacheControl: REVALIDATED, policy: contentSecurityPolicy(html) };
}

const TYPES: Readonly<Record<string, string>> = { ts: SCRIPT, css: STYLE, svg: 'image/svg+xml' };

async function own(path: string, extension: string): Promise<FileContent> {
  const source = await readFile(path, 'utf8');
  const bytes = Buffer.from(extension === 'ts' ? stripTypeScriptTypes(source) : source);
  return { bytes, type: TYPES[extension] ?? '', cacheControl: REVALIDATED, policy: NOTHING };
}

/**
 * Returns a policy that allows scripts and styles of this origin only, and inline only the import map of the page, by
 * its hash.
 */
function contentSecurityPolicy(html: string): string {
  const hash = createHash('sha256').update(importMapOf(html)).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

/** @throws Error for a page without an import map. */
function importMapOf(html: string): string {
  const map = /<script type="importmap">([\s\S]*?)<\/script>/.exec(html)?.[1];
  if (map === undefined) throw new Error('the page of the console has no import map');
  return map;
}
