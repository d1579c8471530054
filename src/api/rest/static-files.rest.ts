import type { RequestHandler } from 'express';
import { exchangeOf } from '../../gateway/exchange/exchange.ts';
import { notFound } from '../../platform/errors.ts';
import { type Files, sendFile } from '../shared/served-files.ts';
import { route, sendEmpty } from './route.ts';

interface PageServices {
  /** Undefined where there is no console. */
  console: Files | undefined;
  swagger: Files;
  publicUrl: { readonly path: string };
}

/** Makes the handler that serves the files whose names are the rest of the path; without files there is none. */
export function serveFiles(files: Files | undefined): RequestHandler {
  return async (req) => {
    const file = await files?.find(String(req.params.rest ?? ''));
    if (!file) throw notFound('there is no file with this name');
    sendFile(exchangeOf(req), file);
  };
}

/** Serves the console, which loads nothing from other origins. */
export const showConsole = route({
  method: 'GET',
  path: '/console/**',
  handlers: ({ console }: PageServices) => [serveFiles(console)],
});

/** Serves Swagger UI, which loads nothing from other origins, and the OpenAPI document (docs/contract.md, 4.9-04). */
export const showSwagger = route({
  method: 'GET',
  path: '/swagger/*',
  handlers: ({ swagger }: PageServices) => [serveFiles(swagger)],
});

/** The routes of the console and of Swagger UI, and those that lead to their pages. */
export const pageRoutes = [
  route({
    method: 'GET',
    path: '/console',
    handlers: ({ console, publicUrl }: PageServices) => [
      (req, res) => {
        if (!console) throw notFound('CONSOLE is off');
        const [, query = ''] = /^[^?]*(\?.*)$/.exec(req.originalUrl) ?? [];
        sendEmpty(res.location(`${publicUrl.path}/console/${query}`), 308);
      },
    ],
  }),
  showConsole,
  route({
    method: 'GET',
    path: '/swagger',
    handlers: ({ publicUrl }: PageServices) => [
      (_req, res) => sendEmpty(res.location(`${publicUrl.path}/swagger/`), 308),
    ],
  }),
  showSwagger,
];
