import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CachedFiles,
  JSON_TEXT,
  KEPT,
  PAGE,
  REVALIDATED,
  SCRIPT,
  type ServedFiles,
  STYLE,
} from '../shared/served-files.ts';
import { IDS } from './examples.ts';

interface Source {
  path(): string | Promise<string>;
  type: string;
  cacheControl: string;
}

const UI = join(import.meta.dirname, 'ui');
const DOCUMENT = join(import.meta.dirname, '../../../schema/openapi.json');
const PNG = 'image/png';

/** The served files by the last segment of their paths. */
const SOURCES: ReadonlyMap<string, Source> = new Map([
  ['', own(join(UI, 'index.html'), PAGE)],
  ['initializer.js', own(join(UI, 'initializer.js'), SCRIPT)],
  ['openapi.json', own(DOCUMENT, JSON_TEXT)],
  ['swagger-ui-bundle.js', packaged('swagger-ui-bundle.js', SCRIPT)],
  ['swagger-ui.css', packaged('swagger-ui.css', STYLE)],
  ['favicon-32x32.png', packaged('favicon-32x32.png', PNG)],
  ['favicon-16x16.png', packaged('favicon-16x16.png', PNG)],
]);

/**
 * Returns the files of Swagger UI and the OpenAPI document.
 * @param publicUrl the server URL in the served document (`PUBLIC_URL`); undefined means the origin it was loaded from
 * @param ids the ids that exist, in the place of those of the examples
 */
export function swaggerFiles(publicUrl: string | undefined, ids: Readonly<Partial<typeof IDS>> = {}): ServedFiles {
  const policy = contentSecurityPolicy(publicUrl);
  return new CachedFiles((name) => {
    const source = SOURCES.get(name);
    return (
      source &&
      (async () => {
        const read = await readFile(await source.path());
        const bytes = name === 'openapi.json' ? documentOf(read, publicUrl, ids) : read;
        return { bytes, type: source.type, cacheControl: source.cacheControl, policy };
      })()
    );
  });
}

/**
 * Replaces the server URL, the paths of the token endpoint, which would be read without the path of that URL, and the ids
 * in the text of the document: every number stays exactly as it is written.
 */
function documentOf(document: Buffer, publicUrl: string | undefined, ids: Readonly<Partial<typeof IDS>>): Buffer {
  const base = JSON.stringify(publicUrl?.replace(/\/+$/, '') ?? '/');
  const path = URL.parse(publicUrl ?? '')?.pathname.replace(/\/+$/, '') ?? '';
  const text = document
    .toString('utf8')
    .replace(/(?<="servers": \[\s*\{\s*"url": )"\/"/, () => base)
    .replaceAll(/(?<="(?:token|refresh)Url": ")(?=\/)/g, () => path);
  return Buffer.from(
    Object.entries(IDS).reduce((made, [name, id]) => made.replaceAll(id, String(Reflect.get(ids, name) ?? id)), text),
  );
}

function own(path: string, type: string): Source {
  return { path: () => path, type, cacheControl: REVALIDATED };
}

function packaged(name: string, type: string): Source {
  const path = async () => {
    const { default: folder } = await import('swagger-ui-dist/absolute-path.js');
    return join(folder(), name);
  };
  return { path, type, cacheControl: KEPT };
}

/**
 * Returns a policy that allows scripts and styles of this origin only, none inline, and requests to this origin and the
 * public one.
 */
function contentSecurityPolicy(publicUrl: string | undefined): string {
  const origins = publicUrl === undefined ? ["'self'"] : ["'self'", new URL(publicUrl).origin];
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    `connect-src ${origins.join(' ')}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
