import { type Request, type Response, Router } from 'express';
import { notFound } from '../errors/app-error.ts';
import { exchangeOf } from '../gateway/exchange.ts';
import { type ServedFile, SwaggerFiles } from './swagger-files.ts';

/**
 * GET /swagger/ (Swagger UI, which needs nothing from elsewhere) and /swagger/openapi.json (specification section 4.9).
 * `publicUrl` is `PUBLIC_URL`, where that is set.
 */
export function swaggerRouter(publicUrl: string | undefined): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const files = new SwaggerFiles(publicUrl);
  const policy = contentSecurityPolicy(publicUrl);

  async function answer(name: string, req: Request, res: Response): Promise<void> {
    const file = await files.find(name);
    if (!file) throw notFound();
    // What everybody can read is recorded by its length.
    exchangeOf(req).auditedOperations = () => [{ request: {}, response: { text: '' } }];
    res.setHeader('Content-Security-Policy', policy);
    send(req, res, file);
  }

  // The gateway lets one segment through, empty or not.
  router.get('/swagger/{*name}', (req, res) => answer(req.params.name?.join('/') ?? '', req, res));
  return router;
}

/** Sends a file, or 304 to one who has it. */
function send(req: Request, res: Response, { bytes, type, etag, cacheControl }: ServedFile): void {
  res.setHeader('Cache-Control', cacheControl);
  res.setHeader('ETag', etag);
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
  if (hasTag(req.headers['if-none-match'], etag)) {
    res.statusCode = 304;
    res.end();
    return;
  }
  res.setHeader('Content-Type', type);
  res.setHeader('Content-Length', bytes.length);
  res.end(bytes);
}

/** Whether an `If-None-Match` header names an entity tag, compared weakly (RFC 9110 section 13.1.2). */
function hasTag(header: string | undefined, etag: string): boolean {
  return (header ?? '').split(',').some((tag) => ['*', etag, `W/${etag}`].includes(tag.trim()));
}

/** Scripts and styles of this origin alone, none inside of the page; calls go to this instance under either of its names. */
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
