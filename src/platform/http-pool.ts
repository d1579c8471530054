import { createRequire } from 'node:module';
import type * as Undici from 'undici';

const require = createRequire(import.meta.url);

/**
 * Creates a pool of connections to an origin; it opens none before its first request. undici is loaded with the first
 * pool of the process, since a process that asks no other service needs none of it.
 */
export function newPool(origin: string, options: Undici.Pool.Options): Undici.Pool {
  const { Pool }: typeof Undici = require('undici');
  return new Pool(origin, options);
}
