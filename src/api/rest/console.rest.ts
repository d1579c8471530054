import { notFound } from '../../platform/errors.ts';
import type { ServedFiles } from '../shared/served-files.ts';
import { sendEmpty } from './rest-call.ts';
import { route } from './route.ts';
import { serveFiles } from './serve-files.ts';

interface ConsoleServices {
  /** Undefined where there is no console. */
  console: ServedFiles | undefined;
  publicUrl: { readonly path: string };
}

/** Serves the console, which loads nothing from other origins. */
export const showConsole = route({
  method: 'GET',
  path: '/console/**',
  handlers: ({ console }: ConsoleServices) => [serveFiles(console)],
});

/** Leads to the page of the console. */
export const leadToConsole = route({
  method: 'GET',
  path: '/console',
  handlers: ({ console, publicUrl }: ConsoleServices) => [
    (_req, res) => {
      if (!console) throw notFound('CONSOLE is off');
      sendEmpty(res.location(`${publicUrl.path}/console/`), 308);
    },
  ],
});
