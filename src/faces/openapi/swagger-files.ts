import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { IDS } from './examples.ts';

/** A file as it is served. */
export interface ServedFile {
  bytes: Buffer;
  type: string;
  /** A strong entity tag, computed from the bytes, so that every process returns the same. */
  etag: string;
  cacheControl: string;
}

interface Source {
  path(): string | Promise<string>;
  type: string;
  cacheControl: string;
}

/** The `Cache-Control` that makes clients revalidate each time; they get 304 while the file is unchanged. */
const REVALIDATED = 'no-cache';
/** The `Cache-Control` of a package's files, which change only with a release. */
const KEPT = 'public, max-age=3600';

const UI = join(import.meta.dirname, 'ui');
const DOCUMENT = join(import.meta.dirname, '../../../schema/openapi.json');
const PNG = 'image/png';
const SCRIPT = 'text/javascript; charset=utf-8';

/** The served files by the last segment of their paths. */
const SOURCES: ReadonlyMap<string, Source> = new Map([
  ['', own(join(UI, 'index.html'), 'text/html; charset=utf-8')],
  ['initializer.js', own(join(UI, 'initializer.js'), SCRIPT)],
  ['openapi.json', own(DOCUMENT, 'application/json; charset=utf-8')],
  ['swagger-ui-bundle.js', packaged('swagger-ui-bundle.js', SCRIPT)],
  ['swagger-ui.css', packaged('swagger-ui.css', 'text/css; charset=utf-8')],
  ['favicon-32x32.png', packaged('favicon-32x32.png', PNG)],
  ['favicon-16x16.png', packaged('favicon-16x16.png', PNG)],
]);

/** Holds the files of Swagger UI and the OpenAPI document. Each is read on its first request, and cached. */
export class SwaggerFiles {
  /** The `Content-Security-Policy` that the files are served with. */
  readonly policy: string;
  readonly #publicUrl: string | undefined;
  readonly #ids: Readonly<Partial<typeof IDS>>;
  readonly #files = new Map<string, Promise<ServedFile>>();

  /**
   * @param publicUrl the server URL in the served document (`PUBLIC_URL`); undefined means the origin it was loaded
   * from
   * @param ids the ids that exist, in the place of those of the examples
   */
  constructor(publicUrl: string | undefined, ids: Readonly<Partial<typeof IDS>> = {}) {
    this.#publicUrl = publicUrl;
    this.#ids = ids;
    this.policy = contentSecurityPolicy(publicUrl);
  }

  /** Returns the file with a name; undefined if there is none. */
  find(name: string): Promise<ServedFile> | undefined {
    const source = SOURCES.get(name);
    if (!source) return undefined;
    const known = this.#files.get(name);
    if (known) return known;
    const reading = this.#read(name, source);
    this.#files.set(name, reading);
    reading.catch(() => this.#files.delete(name));
    return reading;
  }

  async #read(name: string, { path, type, cacheControl }: Source): Promise<ServedFile> {
    const read = await readFile(await path());
    const bytes = name === 'openapi.json' ? this.#ofHere(read) : read;
    const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`;
    return { bytes, type, etag, cacheControl };
  }

  /** Replaces the server URL and the ids in the text of the document: every number stays exactly as it is written. */
  #ofHere(document: Buffer): Buffer {
    const base = JSON.stringify(this.#publicUrl?.replace(/\/+$/, '') ?? '/');
    const text = document.toString('utf8').replace(/(?<="servers": \[\s*\{\s*"url": )"\/"/, () => base);
    return Buffer.from(
      Object.entries(IDS).reduce(
        (made, [name, id]) => made.replaceAll(id, String(Reflect.get(this.#ids, name) ?? id)),
        text,
      ),
    );
  }
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
