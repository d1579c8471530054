import { readFileSync } from 'node:fs';

const path = new URL('./pglite.wasm', import.meta.resolve('@electric-sql/pglite'));

/**
 * The code of PGlite, which compiles on other threads from the moment on at which this file is loaded. It is read at
 * once, since a program that is being loaded leaves no turn to callbacks.
 */
export const pgliteCode: Promise<WebAssembly.Module> = WebAssembly.compile(readFileSync(path));
