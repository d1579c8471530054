import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { AuditedOperation, Exchange } from '../../gateway/exchange/exchange.ts';

/** The content of a file that is served. */
export interface FileContent {
  bytes: Buffer;
  type: string;
  cacheControl: string;
  /** The `Content-Security-Policy` that it is served with; undefined for data that no page loads. */
  policy?: string;
}

/** A file as it is served. */
export interface ServedFile extends FileContent {
  /** A strong entity tag, computed from the bytes, so that every process returns the same. */
  etag: string;
  /** The compressed bytes, and their own entity tag. */
  zipped: { bytes: Buffer; etag: string };
}

const compress = promisify(gzip);

/** The `Cache-Control` that makes clients revalidate each time; they get 304 while the file is unchanged. */
export const REVALIDATED = 'no-cache';
/** The `Cache-Control` of a package's files, which change only with a release. */
export const KEPT = 'public, max-age=3600';
/** The `Cache-Control` of a file whose address names its content. */
export const IMMUTABLE = 'public, max-age=31536000, immutable';
export const SCRIPT = 'text/javascript; charset=utf-8';
export const STYLE = 'text/css; charset=utf-8';
export const PAGE = 'text/html; charset=utf-8';
export const JSON_TEXT = 'application/json; charset=utf-8';

/** Files that are served by their names. */
export interface Files {
  /** Returns the file with a name; undefined if there is none. */
  find(name: string): Promise<ServedFile | undefined>;
}

/** Holds files that are served by their names; each is read on its first request, and cached. */
export class ServedFiles implements Files {
  readonly #read: (name: string) => Promise<FileContent | undefined>;
  readonly #files = new Map<string, Promise<ServedFile | undefined>>();

  /** @param read reads the file with a name; undefined if there is none. */
  constructor(read: (name: string) => Promise<FileContent | undefined>) {
    this.#read = read;
  }

  /** Returns the file with a name; undefined if there is none. */
  async find(name: string): Promise<ServedFile | undefined> {
    const reading = this.#files.get(name) ?? this.#tagged(name);
    this.#files.set(name, reading);
    let file: ServedFile | undefined;
    try {
      file = await reading;
    } finally {
      if (!file) this.#files.delete(name);
    }
    return file;
  }

  async #tagged(name: string): Promise<ServedFile | undefined> {
    const content = await this.#read(name);
    if (!content) return undefined;
    const bytes = await compress(content.bytes, { level: 9 });
    const zipped = { bytes, etag: tagOf('gzip', content.bytes) };
    return { ...content, etag: tagOf('', content.bytes), zipped };
  }
}

/** Returns the entity tag of bytes in a content coding. */
function tagOf(coding: string, bytes: Buffer): string {
  return `"${createHash('sha256').update(coding).update(bytes).digest('base64url')}"`;
}

/** An `Accept-Encoding` that accepts gzip (RFC 9110, section 12.5.3). */
const ZIPPED = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i;

/**
 * Sends a file, compressed for clients that accept gzip, or 304 to a client that has the current version. All responses
 * share its bytes. The files are public, so the audit record contains only their length.
 */
export function sendFile({ req, res, audit }: Exchange, file: ServedFile): void {
  const { type, cacheControl, policy } = file;
  const isZipped = ZIPPED.test(String(req.headers['accept-encoding'] ?? ''));
  const { bytes, etag } = isZipped ? file.zipped : file;
  audit.operations = showLength;
  res.appendHeader('Vary', 'Accept-Encoding');
  const restrictions = {
    'Content-Security-Policy': policy ?? '',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
  };
  const headers = { 'Cache-Control': cacheControl, ETag: etag, ...(policy === undefined ? {} : restrictions) };
  res.setHeaders(new Map(Object.entries(headers)));
  // By weak comparison (RFC 9110, section 13.1.2).
  const tags = (req.headers['if-none-match'] ?? '').split(',').map((tag) => tag.trim());
  if (tags.some((tag) => ['*', etag, `W/${etag}`].includes(tag))) {
    res.statusCode = 304;
    res.end();
    return;
  }
  if (isZipped) res.setHeader('Content-Encoding', 'gzip');
  res.setHeader('Content-Type', type);
  res.setHeader('Content-Length', bytes.length);
  audit.capture.endShared(bytes);
}

function showLength(): AuditedOperation[] {
  return [{ request: {}, response: { text: '' } }];
}
