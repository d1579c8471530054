import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { findPackageJSON, stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type FileContent, KEPT, PAGE, REVALIDATED, SCRIPT, ServedFiles, STYLE } from '../shared/served-files.ts';

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
/** The policy of everything but the page: nothing of it is a document. */
const NOTHING = "default-src 'none'; frame-ancestors 'none'";

/**
 * Returns the files of the console: its page, its modules and the client's, whose types are removed as they are served,
 * and files of its packages. Undefined where its packages are not installed.
 */
export function consoleFiles(): ServedFiles | undefined {
  if (!existsSync(MANIFEST)) return undefined;
  const folders = new Map<string, string>();
  for (const name of Object.keys(JSON.parse(readFileSync(MANIFEST, 'utf8')).dependencies)) {
    const manifest = findPackageJSON(name, pathToFileURL(MANIFEST));
    if (manifest === undefined) return undefined;
    folders.set(name, dirname(manifest));
  }
  return new ServedFiles(async (name) => {
    if (name === '') return page();
    const [, extension] = OWN.exec(name) ?? [];
    const [, packageName = '', file = ''] = PACKAGED.exec(name) ?? [];
    const folder = extension === undefined ? folders.get(packageName) : FOLDER;
    const path = folder && join(folder, extension === undefined ? file : name.replace(/^client\//, CLIENT));
    if (path === undefined || !existsSync(path)) return undefined;
    return extension === undefined ? packaged(path) : own(path, extension);
  });
}

async function page(): Promise<FileContent> {
  const bytes = await readFile(join(FOLDER, 'index.html'));
  return { bytes, type: PAGE, cacheControl: REVALIDATED, policy: contentSecurityPolicy(bytes.toString('utf8')) };
}

const TYPES: Readonly<Record<string, string>> = { ts: SCRIPT, css: STYLE, svg: 'image/svg+xml' };

async function own(path: string, extension: string): Promise<FileContent> {
  const source = await readFile(path, 'utf8');
  const bytes = Buffer.from(extension === 'ts' ? stripTypeScriptTypes(source) : source);
  return { bytes, type: TYPES[extension] ?? '', cacheControl: REVALIDATED, policy: NOTHING };
}

async function packaged(path: string): Promise<FileContent> {
  return { bytes: await readFile(path), type: SCRIPT, cacheControl: KEPT, policy: NOTHING };
}

/**
 * Returns a policy that allows scripts and styles of this origin only, and inline only the import map of the page, by
 * its hash.
 * @throws Error for a page without an import map.
 */
function contentSecurityPolicy(html: string): string {
  const map = /<script type="importmap">([\s\S]*?)<\/script>/.exec(html)?.[1];
  if (map === undefined) throw new Error('the page of the console has no import map');
  const hash = createHash('sha256').update(map).digest('base64');
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
