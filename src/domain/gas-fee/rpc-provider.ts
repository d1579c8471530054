import { z } from 'zod';
import { parsedOrNone } from '../../lib/json.ts';
import { BodyTooLongError, bytesOf, HttpAgent } from '../../platform/http-agent.ts';
import { type GasPrices, gasPricesOf, PERCENTILES } from './fee-history.rules.ts';

/**
 * Thrown when an RPC provider sends no response or no usable one. The message never contains its URL, which may carry a
 * key.
 */
export class RpcProviderError extends Error {
  override name = 'RpcProviderError';
}

const TIMEOUT_MS = 2_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
const BLOCKS = 5;
const CONNECTIONS = 4;

const answerSchema = z.object({ jsonrpc: z.literal('2.0'), id: z.literal(1), result: z.unknown() });
/** Reads only the error's code: its message may contain the provider's key. */
const errorSchema = z.object({ error: z.object({ code: z.int() }) });

/** A client for an Ethereum-compatible RPC provider: JSON-RPC over HTTP. */
export class RpcProvider {
  readonly #path: string;
  readonly #agent: HttpAgent;
  #chainId: number | undefined;

  constructor(url: string) {
    const { origin, pathname, search, username, password } = new URL(url);
    this.#path = pathname + search;
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    const authorization = credentials === ':' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`;
    this.#agent = new HttpAgent(origin, { connections: CONNECTIONS, timeoutMs: TIMEOUT_MS, authorization });
  }

  /**
   * Fetches the current gas prices.
   * @throws RpcProviderError when there is no response within 2 s, when it is longer than 1 MiB, an error or malformed,
   * or when the chain id differs from earlier responses.
   */
  async gasPrices(): Promise<GasPrices> {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const [chainId, feeHistory] = await Promise.all([
      this.#call('eth_chainId', [], signal),
      this.#call('eth_feeHistory', [`0x${BLOCKS.toString(16)}`, 'latest', PERCENTILES], signal),
    ]).catch((error: unknown) => {
      throw faultOf(error, signal);
    });
    const prices = gasPricesOf(chainId, feeHistory);
    if (!prices) throw new RpcProviderError('the response is malformed');
    this.#chainId ??= prices.chainId;
    if (prices.chainId !== this.#chainId) throw new RpcProviderError('the response is about another chain than before');
    return prices;
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }

  async #call(method: string, params: unknown[], signal: AbortSignal): Promise<unknown> {
    const json = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const { statusCode, body } = await this.#agent.request({ path: this.#path, json, signal });
    if (statusCode !== 200) {
      await body.dump({ limit: MAX_ANSWER_BYTES, signal });
      throw new RpcProviderError(`the response has status ${statusCode}`);
    }
    const bytes = Buffer.from(await bytesOf(body, MAX_ANSWER_BYTES));
    const value: unknown = parsedOrNone(() => JSON.parse(bytes.toString()));
    const answer = answerSchema.safeParse(value);
    if (answer.success && answer.data.result !== undefined) return answer.data.result;
    const failed = errorSchema.safeParse(value);
    throw new RpcProviderError(
      failed.success ? `the response is the error ${failed.data.error.code}` : 'the response is not a result',
    );
  }
}

function faultOf(error: unknown, signal: AbortSignal): RpcProviderError {
  if (error instanceof RpcProviderError) return error;
  if (signal.aborted) return new RpcProviderError('no response in time');
  if (error instanceof BodyTooLongError) return new RpcProviderError('the response has more than 1 MiB');
  if (!(error instanceof Error)) return new RpcProviderError('no answer');
  return new RpcProviderError(`no answer (${'code' in error && error.code !== undefined ? error.code : error.name})`);
}
