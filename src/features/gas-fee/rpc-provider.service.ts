import { z } from 'zod';
import { parsedOrNone } from '../../lib/json.ts';
import { BodyTooLongError, bytesOf, HttpAgent } from '../../platform/http-agent.ts';
import { type GasPrices, gasPricesOf, lacksBaseFees, PERCENTILES, singlePriceOf } from './fee-history.rules.ts';

/**
 * Thrown when an RPC provider sends no response or no usable one. The message never contains its URL, which may carry a
 * key.
 */
export class RpcProviderError extends Error {
  override name = 'RpcProviderError';
  /** Whether the provider says that it does not have the method. */
  readonly isUnsupported: boolean;

  constructor(message: string, isUnsupported = false) {
    super(message);
    this.isUnsupported = isUnsupported;
  }
}

const TIMEOUT_MS = 2_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
const BLOCKS = 5;
const CONNECTIONS = 4;

const answerSchema = z.object({ jsonrpc: z.literal('2.0'), id: z.literal(1), result: z.unknown() });
/** The error's message is read but never shown: it may contain the provider's key. */
const errorSchema = z.object({ error: z.object({ code: z.int(), message: z.string().catch('') }) });

/** The codes for an unknown method (JSON-RPC 2.0) and an unsupported one (EIP-1474). */
const NO_METHOD: ReadonlySet<number> = new Set([-32_601, -32_004]);
/** Matches messages of providers that have no method, and report it with another code. */
const NAMES_METHOD = /\bmethod\b|\bmethods\b|eth_feeHistory|not (?:supported|implemented)|unsupported/i;

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
   * Fetches the current gas prices: from the fee history, or from `eth_gasPrice` if there is none.
   * @throws RpcProviderError when there is no response within 2 s, when it is longer than 1 MiB, an error or malformed,
   * or when the chain id differs from earlier responses.
   */
  async gasPrices(): Promise<GasPrices> {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const prices = await this.#prices(signal).catch((error: unknown) => {
      throw faultOf(error, signal);
    });
    if (!prices) throw new RpcProviderError('the response is malformed');
    this.#chainId ??= prices.chainId;
    if (prices.chainId !== this.#chainId) throw new RpcProviderError('the response is about another chain than before');
    return prices;
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }

  async #prices(signal: AbortSignal): Promise<GasPrices | undefined> {
    const [chainId, feeHistory] = await Promise.all([
      this.#call('eth_chainId', [], signal),
      this.#call('eth_feeHistory', [`0x${BLOCKS.toString(16)}`, 'latest', PERCENTILES], signal).catch(
        noneWithoutMethod,
      ),
    ]);
    if (!lacksBaseFees(feeHistory)) return gasPricesOf(chainId, feeHistory);
    const [gasPrice, blockNumber] = await Promise.all([
      this.#call('eth_gasPrice', [], signal),
      this.#call('eth_blockNumber', [], signal),
    ]);
    return singlePriceOf(chainId, gasPrice, blockNumber);
  }

  async #call(method: string, params: unknown[], signal: AbortSignal): Promise<unknown> {
    const json = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const { statusCode, body } = await this.#agent.request({ path: this.#path, json, signal });
    // Some providers send the error of an unknown method with a status of 4xx.
    if (statusCode !== 200 && (statusCode < 400 || statusCode >= 500)) {
      await body.dump({ limit: MAX_ANSWER_BYTES, signal });
      throw new RpcProviderError(`the response has status ${statusCode}`);
    }
    const bytes = Buffer.from(await bytesOf(body, MAX_ANSWER_BYTES));
    const value: unknown = parsedOrNone(() => JSON.parse(bytes.toString()));
    const { error } = errorSchema.safeParse(value).data ?? {};
    const isUnsupported = error !== undefined && (NO_METHOD.has(error.code) || NAMES_METHOD.test(error.message));
    if (statusCode !== 200) throw new RpcProviderError(`the response has status ${statusCode}`, isUnsupported);
    const answer = answerSchema.safeParse(value);
    if (answer.success && answer.data.result !== undefined) return answer.data.result;
    throw new RpcProviderError(
      error ? `the response is the error ${error.code}` : 'the response is not a result',
      isUnsupported,
    );
  }
}

/** Returns null in place of an error that says that the provider does not have the method. */
function noneWithoutMethod(error: unknown): null {
  if (error instanceof RpcProviderError && error.isUnsupported) return null;
  throw error;
}

function faultOf(error: unknown, signal: AbortSignal): RpcProviderError {
  if (error instanceof RpcProviderError) return error;
  if (signal.aborted) return new RpcProviderError('no response in time');
  if (error instanceof BodyTooLongError) return new RpcProviderError('the response has more than 1 MiB');
  if (!(error instanceof Error)) return new RpcProviderError('no answer');
  return new RpcProviderError(`no answer (${'code' in error && error.code !== undefined ? error.code : error.name})`);
}
