import type { Request, RequestHandler, Response } from 'express';
import { type AuditedOperation, exchangeOf } from '../../gateway/exchange/exchange.ts';
import { notFound } from '../../platform/errors.ts';
import type { ServedFile, ServedFiles } from '../shared/served-files.ts';

/** Makes the handler that serves the files whose names are the rest of the path; without files there is none. */
export function serveFiles(files: ServedFiles | undefined): RequestHandler {
  return async (req, res) => {
    const file = await files?.find([req.params.rest ?? []].flat().join('/'));
    if (!file) throw notFound('no file has this name');
    // The files are public, so the audit record contains only their length.
    exchangeOf(req).audit.operations = showLength;
    send(req, res, file);
  };
}

function showLength(): AuditedOperation[] {
  return [{ request: {}, response: { text: '' } }];
}

/** Sends a file, or 304 to a client that has the current version. */
function send(req: Request, res: Response, { bytes, type, etag, cacheControl, policy }: ServedFile): void {
  res.setHeader('Content-Security-Policy', policy);
  res.setHeader('Cache-Control', cacheControl);
  res.setHeader('ETag', etag);
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
  res.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
  if (hasTag(req.headers['if-none-match'], etag)) {
    res.status(304).end();
    return;
  }
  res.setHeader('Content-Type', type);
  res.setHeader('Content-Length', bytes.length);
  res.end(bytes);
}

/** Checks whether an `If-None-Match` header names an entity tag, by weak comparison (RFC 9110, section 13.1.2). */
function hasTag(header: string | undefined, etag: string): boolean {
  return (header ?? '').split(',').some((tag) => ['*', etag, `W/${etag}`].includes(tag.trim()));
}
