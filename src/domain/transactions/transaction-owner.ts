import { BodyTooLongError, bytesOf, HttpAgent } from '../../platform/http-agent.ts';
import { type NewTransaction, PoisonError, parseRegistration } from './notification.input.ts';

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

/** The service that owns the transactions. */
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
   * What the owner says of an id; undefined where it does not know it.
   * @throws OwnerError where it does not answer in time, at most 64 KiB, as agreed; the signal's reason.
   */
  async find(id: string, signal: AbortSignal): Promise<NewTransaction | undefined> {
    // No encoding keeps them: on the way they would lead elsewhere.
    if (id === '.' || id === '..') return undefined;
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    try {
      return await this.#ask(id, AbortSignal.any([signal, timeout]));
    } catch (error) {
      signal.throwIfAborted();
      if (timeout.aborted) throw new OwnerError('no answer in time');
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
