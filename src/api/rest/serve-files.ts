import type { RequestHandler } from 'express';
import { exchangeOf } from '../../gateway/exchange/exchange.ts';
import { notFound } from '../../platform/errors.ts';
import { type ServedFiles, sendFile } from '../shared/served-files.ts';

/** Makes the handler that serves the files whose names are the rest of the path; without files there is none. */
export function serveFiles(files: ServedFiles | undefined): RequestHandler {
  return async (req) => {
    const file = await files?.find([req.params.rest ?? []].flat().join('/'));
    if (!file) throw notFound('no file has this name');
    sendFile(exchangeOf(req), file);
  };
}
