import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { IDS } from '../../lib/example-ids.ts';
import { JSON_TEXT, KEPT, PAGE, REVALIDATED, SCRIPT, ServedFiles, STYLE } from '../shared/served-files.ts';

const UI = join(import.meta.dirname, 'ui');
const PNG = 'image/png';

/** The paths and types of the product's own files, by the last segment of the paths that they are served at. */
const OWN: ReadonlyMap<string, readonly [path: string, type: string]> = new Map([
  ['', [join(UI, 'index.html'), PAGE]],
  ['initializer.js', [join(UI, 'initializer.js'), SCRIPT]],
  ['openapi.json', [join(import.meta.dirname, '../../../schema/openapi.json'), JSON_TEXT]],
]);

/** The types of the files of the package, by their names there and in the paths that they are served at. */
const PACKAGED: ReadonlyMap<string, string> = new Map([
  ['swagger-ui-bundle.js', SCRIPT],
  ['swagger-ui.css', STYLE],
  ['favicon-32x32.png', PNG],
  ['favicon-16x16.png', PNG],
]);

/**
 * Returns the files of Swagger UI and the OpenAPI document.
 * @param publicUrl the server URL in the served document (`PUBLIC_URL`); undefined means the origin it was loaded from
 * @param ids ids that exist, which replace the ids of the examples
 */
export function swaggerFiles(publicUrl: string | undefined, ids: Readonly<Partial<typeof IDS>> = {}): ServedFiles {
  const policy = contentSecurityPolicy(publicUrl);
  return new ServedFiles(async (name) => {
    const own = OWN.get(name);
    if (own) {
      const [path, type] = own;
      const read = await readFile(path);
      const bytes = name === 'openapi.json' ? documentOf(read, publicUrl, ids) : read;
      return { bytes, type, cacheControl: REVALIDATED, policy };
    }
    const type = PACKAGED.get(name);
    if (type === undefined) return undefined;
    const { default: folder } = await import('swagger-ui-dist/absolute-path.js');
    return { bytes: await readFile(join(folder(), name)), type, cacheControl: KEPT, policy };
  });
}

/**
 * Replaces the server URL, the paths of the token endpoint, which would be read without the path of that URL, and the
 * ids in the text of the document: every number stays exactly as it is written.
 */
function documentOf(document: Buffer, publicUrl: string | undefined, ids: Readonly<Partial<typeof IDS>>): Buffer {
  const base = JSON.stringify(publicUrl?.replace(/\/+$/, '') ?? '/');
  const path = URL.parse(publicUrl ?? '')?.pathname.replace(/\/+$/, '') ?? '';
  const text = document
    .toString('utf8')
    .replace(/(?<="servers": \[\s*\{\s*"url": )"\/"/, () => base)
    .replaceAll(/(?<="(?:token|refresh)Url": ")(?=\/)/g, () => path);
  return Buffer.from(
    Object.entries(IDS).reduce(
      (rewritten, [name, id]) => rewritten.replaceAll(id, String(Reflect.get(ids, name) ?? id)),
      text,
    ),
  );
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
