import { createRequire } from 'node:module';
import type * as Undici from 'undici';
import { GatheredBytes } from '../lib/gathered-bytes.ts';

const require = createRequire(import.meta.url);

/**
 * Creates a pool of connections to an origin; it opens none before its first request. undici is loaded with the first
 * pool of the process, since a process that asks no other service needs none of it.
 */
export function newPool(origin: string, options: Undici.Pool.Options): Undici.Pool {
  const { Pool }: typeof Undici = require('undici');
  return new Pool(origin, options);
}

/** Requests JSON from one origin over a bounded pool of connections. Redirects are not followed. */
export class HttpAgent {
  readonly #pool: Undici.Pool;
  readonly #headers: Record<string, string>;

  constructor(
    origin: string,
    {
      connections,
      timeoutMs,
      authorization,
    }: {
      /** The number of connections, each of which carries one request at a time. */
      connections: number;
      /** How long opening a connection may take, in milliseconds. */
      timeoutMs: number;
      /** The value of the `Authorization` header; undefined to send none. */
      authorization: string | undefined;
    },
  ) {
    this.#headers = {
      accept: 'application/json',
      'accept-encoding': 'identity',
      ...(authorization === undefined ? {} : { authorization }),
    };
    this.#pool = newPool(origin, {
      connections,
      pipelining: 1,
      connect: { timeout: timeoutMs },
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * Sends a request and returns the head of its response, whose body the caller must read or dump.
   * @throws what undici throws.
   */
  request({
    path,
    json,
    signal,
  }: {
    path: string;
    /** The JSON text to send by POST; without it the request is a GET. */
    json?: string;
    /** Aborts the request, also while its response is being read. There is no other timeout. */
    signal: AbortSignal;
  }): Promise<Undici.Dispatcher.ResponseData> {
    if (json === undefined) return this.#pool.request({ method: 'GET', path, headers: this.#headers, signal });
    const headers = { 'content-type': 'application/json', ...this.#headers };
    return this.#pool.request({ method: 'POST', path, headers, body: json, signal });
  }

  /** Closes all connections and aborts the requests in progress. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

/** Thrown when a body is longer than the limit. */
export class BodyTooLongError extends Error {
  override name = 'BodyTooLongError';
}

/**
 * Returns all bytes of a body of at most `maxBytes` bytes.
 * @throws BodyTooLongError as soon as the body is longer; the rest is not read.
 */
export async function bytesOf(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const gathered = new GatheredBytes();
  // Leaving the loop early closes the connection.
  for await (const chunk of body) {
    gathered.push(chunk);
    if (gathered.length > maxBytes) throw new BodyTooLongError(`the body has more than ${maxBytes} bytes`);
  }
  return gathered.bytes;
}
