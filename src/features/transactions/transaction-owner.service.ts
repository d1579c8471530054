import { PoisonError } from '../../events/bus/dead-letters.ts';
import { BodyTooLongError, bytesOf, HttpAgent } from '../../platform/http-agent.ts';
import { type NewTransaction, parseRegistration } from './notification.input.ts';

/** The connection settings of the owner of transactions. */
interface OwnerSettings {
  /** The base URL, without a slash at its end; a slash and the percent-encoded id follow it. */
  url: string;
  /** The timeout, in ms, from the request to the last byte of the response. */
  timeoutMs: number;
  bearer: string | undefined;
  connections: number;
}

/**
 * Thrown when the owner sends no response or no usable one. The message contains nothing of the response but its
 * status.
 */
export class OwnerError extends Error {
  override name = 'OwnerError';
}

const MAX_ANSWER_BYTES = 64 * 1024;

/** A client for the owner, the service that owns transactions. */
export class TransactionOwner {
  readonly #timeoutMs: number;
  readonly #prefix: string;
  readonly #agent: HttpAgent;

  constructor({ url, timeoutMs, bearer, connections }: OwnerSettings) {
    const { origin, pathname } = new URL(url);
    this.#timeoutMs = timeoutMs;
    this.#prefix = pathname === '/' ? '' : pathname;
    const authorization = bearer === undefined ? undefined : `Bearer ${bearer}`;
    this.#agent = new HttpAgent(origin, { connections, timeoutMs, authorization });
  }

  /**
   * Fetches the registration of an id; returns undefined when the owner does not know the id.
   * @throws OwnerError when there is no valid response of at most 64 KiB within the timeout.
   * @throws the signal's reason when the signal aborts.
   */
  async find(id: string, signal: AbortSignal): Promise<NewTransaction | undefined> {
    // As a path segment these two would change the path, and no encoding prevents that.
    if (id === '.' || id === '..') return undefined;
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    try {
      return await this.#ask(id, AbortSignal.any([signal, timeout]));
    } catch (error) {
      signal.throwIfAborted();
      if (timeout.aborted) throw new OwnerError('no response in time');
      throw faultOf(error);
    }
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }

  async #ask(id: string, signal: AbortSignal): Promise<NewTransaction | undefined> {
    const path = `${this.#prefix}/${encodeURIComponent(id)}`;
    const { statusCode, body } = await this.#agent.request({ path, signal });
    const answer = await bytesOf(body, MAX_ANSWER_BYTES);
    if (statusCode === 404) return undefined;
    if (statusCode !== 200) throw new OwnerError(`the response has status ${statusCode}`);
    const registration = parseRegistration(answer);
    if (registration.id !== id) throw new OwnerError('the response is about another id');
    return registration;
  }
}

function faultOf(error: unknown): OwnerError {
  if (error instanceof OwnerError) return error;
  if (error instanceof BodyTooLongError) return new OwnerError(error.message);
  if (error instanceof PoisonError) return new OwnerError('the response is not a registration');
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unexpected';
  return new OwnerError(`no answer (${code})`);
}
