import { Pool } from 'undici';
import { BodyTooLongError, bytesOf } from '../../lib/gathered-bytes.ts';
import { PoisonError, parseRegistration } from './registration.input.ts';
import type { NewTransaction } from './transactions.service.ts';

/** Where the service is that owns the transactions, and how it is asked. */
interface OwnerSettings {
  /** Without a slash at its end; the percent-encoded id follows after one. */
  url: string;
  /** From the request to the last byte of the answer. */
  timeoutMs: number;
  bearer: string | undefined;
  connections: number;
}

/** The owner gave no answer, or none that counts; the message holds nothing that it has sent but a status. */
export class OwnerError extends Error {
  override name = 'OwnerError';
}

const MAX_ANSWER_BYTES = 64 * 1024;

/** The service that owns the transactions. It is asked over a bounded pool, its redirects lead nowhere. */
export class TransactionOwner {
  readonly #settings: OwnerSettings;
  readonly #prefix: string;
  readonly #pool: Pool;

  constructor(settings: OwnerSettings) {
    const { origin, pathname } = new URL(settings.url);
    this.#settings = settings;
    this.#prefix = pathname === '/' ? '' : pathname;
    this.#pool = new Pool(origin, {
      connections: settings.connections,
      pipelining: 1,
      connect: { timeout: settings.timeoutMs },
      allowH2: false,
      // One time for all of it is set at each request.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * What the owner says of an id; undefined where it does not know it.
   * @throws OwnerError where it does not answer in time, at most 64 KiB, as agreed; the signal's reason.
   */
  async find(id: string, signal: AbortSignal): Promise<NewTransaction | undefined> {
    // No encoding keeps them: on the way they would lead elsewhere.
    if (id === '.' || id === '..') return undefined;
    const timeout = AbortSignal.timeout(this.#settings.timeoutMs);
    try {
      return await this.#ask(id, AbortSignal.any([signal, timeout]));
    } catch (error) {
      signal.throwIfAborted();
      if (timeout.aborted) throw new OwnerError('no answer in time');
      throw faultOf(error);
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #ask(id: string, signal: AbortSignal): Promise<NewTransaction | undefined> {
    const { bearer } = this.#settings;
    const { statusCode, body } = await this.#pool.request({
      method: 'GET',
      path: `${this.#prefix}/${encodeURIComponent(id)}`,
      headers: {
        accept: 'application/json',
        'accept-encoding': 'identity',
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      },
      signal,
    });
    const answer = await bytesOf(body, MAX_ANSWER_BYTES);
    if (statusCode === 404) return undefined;
    if (statusCode !== 200) throw new OwnerError(`the answer is ${statusCode}`);
    const registration = parseRegistration(answer);
    if (registration.id !== id) throw new OwnerError('the answer is about another id');
    return registration;
  }
}

function faultOf(error: unknown): OwnerError {
  if (error instanceof OwnerError) return error;
  if (error instanceof BodyTooLongError) return new OwnerError(error.message);
  if (error instanceof PoisonError) return new OwnerError('the answer is no registration');
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unexpected';
  return new OwnerError(`no answer (${code})`);
}
