import { type Dispatcher, Pool } from 'undici';
import { GatheredBytes } from '../lib/gathered-bytes.ts';

interface AgentOptions {
  /** How many requests are under way at once. */
  connections: number;
  /** How long a connection may take. */
  timeoutMs: number;
  /** The header of that name; undefined for none. */
  authorization: string | undefined;
}

interface AgentRequest {
  path: string;
  /** What to send by POST, as JSON; without it the request is a GET. */
  json?: string;
  /** Ends the request, its answer included: there is no other timeout. */
  signal: AbortSignal;
}

/** Asks one origin for JSON over a bounded pool of connections. Its redirects lead nowhere. */
export class HttpAgent {
  readonly #pool: Pool;
  readonly #headers: Record<string, string>;

  constructor(origin: string, { connections, timeoutMs, authorization }: AgentOptions) {
    this.#headers = {
      accept: 'application/json',
      'accept-encoding': 'identity',
      ...(authorization === undefined ? {} : { authorization }),
    };
    this.#pool = new Pool(origin, {
      connections,
      pipelining: 1,
      connect: { timeout: timeoutMs },
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Sends a request and returns the head of its answer, whose body is to be read or dumped. @throws what undici throws. */
  request({ path, json, signal }: AgentRequest): Promise<Dispatcher.ResponseData> {
    if (json === undefined) return this.#pool.request({ method: 'GET', path, headers: this.#headers, signal });
    const headers = { 'content-type': 'application/json', ...this.#headers };
    return this.#pool.request({ method: 'POST', path, headers, body: json, signal });
  }

  /** Breaks off what is under way. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

/** A body has more bytes than it may. */
export class BodyTooLongError extends Error {
  override name = 'BodyTooLongError';
}

/**
 * Returns all bytes of a body, at most so many.
 * @throws BodyTooLongError; what is left is not read.
 */
export async function bytesOf(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const gathered = new GatheredBytes();
  // Leaving the loop closes the connection.
  for await (const chunk of body) {
    gathered.push(chunk);
    if (gathered.length > maxBytes) throw new BodyTooLongError(`the body has more than ${maxBytes} bytes`);
  }
  return gathered.bytes;
}
