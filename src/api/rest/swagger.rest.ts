import type { ServedFiles } from '../shared/served-files.ts';
import { sendEmpty } from './rest-call.ts';
import { route } from './route.ts';
import { serveFiles } from './serve-files.ts';

/** Serves Swagger UI, which loads nothing from other origins, and the OpenAPI document (specification section 4.9). */
export const showSwagger = route({
  method: 'GET',
  path: '/swagger/*',
  handlers: ({ swagger }: { swagger: ServedFiles }) => [serveFiles(swagger)],
});

/** Leads to the page of Swagger UI. */
export const leadToSwagger = route({
  method: 'GET',
  path: '/swagger',
  handlers: ({ publicUrl }: { publicUrl: { readonly path: string } }) => [
    (_req, res) => sendEmpty(res.location(`${publicUrl.path}/swagger/`), 308),
  ],
});
