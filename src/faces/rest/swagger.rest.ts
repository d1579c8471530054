import type { Request, Response } from 'express';
import { type AuditedOperation, exchangeOf } from '../../gateway/exchange/exchange.ts';
import { notFound } from '../../platform/errors.ts';
import type { ServedFile, SwaggerFiles } from '../openapi/swagger-files.ts';
import { sendEmpty } from './rest-call.ts';
import { route } from './route.ts';

interface SwaggerServices {
  swagger: SwaggerFiles;
}

/** Serves Swagger UI, which loads nothing from other origins, and the OpenAPI document (specification section 4.9). */
export const showSwagger = route({
  method: 'GET',
  path: '/swagger/*',
  handlers: ({ swagger }: SwaggerServices) => [
    async (req, res) => {
      // The gateway's pattern allows one segment, which may be empty.
      const file = await swagger.find([req.params.rest ?? []].flat().join('/'));
      if (!file) throw notFound('no file has this name');
      // The files are public, so the audit record contains only their length.
      exchangeOf(req).audit.operations = showLength;
      res.setHeader('Content-Security-Policy', swagger.policy);
      send(req, res, file);
    },
  ],
});

function showLength(): AuditedOperation[] {
  return [{ request: {}, response: { text: '' } }];
}

/** Leads to the page of Swagger UI. */
export const leadToSwagger = route({
  method: 'GET',
  path: '/swagger',
  handlers: () => [(_req, res) => sendEmpty(res.location('/swagger/'), 308)],
});

/** Sends a file, or 304 to a client that has the current version. */
function send(req: Request, res: Response, { bytes, type, etag, cacheControl }: ServedFile): void {
  res.setHeader('Cache-Control', cacheControl);
  res.setHeader('ETag', etag);
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
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
