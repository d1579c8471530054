import type { ExecutionResult, GraphQLError } from 'graphql';
import type { FetchAPI, Plugin } from 'graphql-yoga';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import type { OperationAudits } from './audit-masking.ts';
import { type ErrorMask, formatted } from './error-masking.ts';
import type { OperationRequest } from './operation-context.ts';
import { ResultStream, sharedOf } from './shared-results.ts';
import type { SseStreams } from './sse.ts';

const SSE = 'text/event-stream';
const JSON_TYPES = ['application/json', 'application/graphql-response+json'] as const;
const WILDCARDS = new Set(['*/*', 'application/*']);
const DOCUMENT_FAULTS: ReadonlySet<unknown> = new Set([
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'OPERATION_RESOLUTION_FAILURE',
]);

/** Yoga plugin: renders results as JSON or as a stream of events, with the status that the errors ask for. */
export function useHttpResults(
  mask: ErrorMask,
  streams: SseStreams,
  audits: OperationAudits,
): Plugin<OperationRequest, OperationRequest> {
  const subscriptions = new WeakMap<Exchange, ResultStream>();
  return {
    // Yoga would put a stream of its own around it.
    onSubscribe: ({ args }) => ({
      onSubscribeResult({ result }) {
        if (result instanceof ResultStream) subscriptions.set(args.contextValue.exchange, result);
      },
    }),
    onResultProcess({ request, result, setResultProcessor, serverContext }) {
      const { exchange } = serverContext;
      const accepted = mediaTypes(request.headers.get('accept') ?? '*/*');
      const render = (fetchAPI: FetchAPI): Response => {
        if (Array.isArray(result)) {
          const texts = result.map((one) => text(mask.result(one, exchange)));
          audits.answered(exchange, texts);
          return json(fetchAPI, 200, `[${texts.join(',')}]`, accepted);
        }
        if (Symbol.asyncIterator in result) {
          return streamed(fetchAPI, subscriptions.get(exchange) ?? result[Symbol.asyncIterator](), accepted);
        }
        const masked = mask.result(result, exchange);
        const status = statusOf(masked, wantsOnly200(accepted));
        if (status === 200 && accepted[0] === SSE) return streamed(fetchAPI, once(masked), accepted);
        return json(fetchAPI, status, text(masked), accepted, masked.errors);
      };
      const streamed = (fetchAPI: FetchAPI, results: AsyncIterator<ExecutionResult>, types: readonly string[]) => {
        if (types.includes(SSE) || types.includes('*/*')) {
          return streams.respond(fetchAPI, { exchange, results, mask });
        }
        void results.return?.();
        return json(fetchAPI, 406, '{"errors":[{"message":"a subscription needs accept: text/event-stream"}]}', types);
      };
      setResultProcessor((_result, fetchAPI) => render(fetchAPI), JSON_TYPES[0]);
    },
  };
}

/** Returns the JSON of a result; it is made once where many subscribers share the result. */
export function text(result: { data?: unknown; errors?: readonly GraphQLError[] | undefined }): string {
  if (result.errors) return JSON.stringify({ ...result, errors: result.errors.map(formatted) });
  return sharedOf(result)?.text ?? JSON.stringify(result);
}

function json(
  fetchAPI: FetchAPI,
  status: number,
  body: string,
  accepted: readonly string[],
  errors: readonly GraphQLError[] = [],
): Response {
  const type = accepted.find((name) => WILDCARDS.has(name) || isJsonType(name));
  const contentType = type === JSON_TYPES[1] ? JSON_TYPES[1] : JSON_TYPES[0];
  const headers = Object.assign(
    { 'content-type': `${contentType}; charset=utf-8` },
    ...errors.map((e) => httpOf(e).headers),
  );
  return new fetchAPI.Response(body, { status, headers });
}

/**
 * 200 once the operation has run, whatever its fields say; before that the highest status that an error asks for, which for
 * a document that does not hold is 400, or 200 for `isOnly200`.
 */
function statusOf(result: ExecutionResult, isOnly200: boolean): number {
  const { errors } = result;
  if (!errors || 'data' in result) return 200;
  const isFaultOfDocument = errors.every(({ extensions }) => DOCUMENT_FAULTS.has(extensions.code));
  const asked = Math.max(0, ...errors.map((error) => httpOf(error).status ?? 0));
  if (asked > 0 && !(isOnly200 && isFaultOfDocument)) return asked;
  if (errors.some(({ extensions }) => extensions.code === 'INTERNAL_SERVER_ERROR')) return 500;
  // A subscription that could not begin has the path of its field.
  return isOnly200 || errors.some(({ path }) => path !== undefined) ? 200 : 400;
}

/**
 * Whether a caller asks for `application/json` by name: it takes another status than 200 for the answer of something on
 * the way (GraphQL over HTTP, appendix A). Whoever leaves the type open is told more by the status.
 */
function wantsOnly200(accepted: readonly string[]): boolean {
  const first = accepted.find((name) => name === SSE || WILDCARDS.has(name) || isJsonType(name));
  return first === JSON_TYPES[0];
}

function isJsonType(name: string): boolean {
  return name === JSON_TYPES[0] || name === JSON_TYPES[1];
}

function httpOf({ extensions }: GraphQLError): { status?: number; headers?: Record<string, string> } {
  const { http } = extensions;
  return typeof http === 'object' && http !== null ? http : {};
}

/** The media types of an Accept header, in the order of the caller; quality is left aside. */
function mediaTypes(accept: string): string[] {
  return accept.split(',').map((part) => (part.split(';')[0] ?? '').trim().toLowerCase());
}

async function* once(result: ExecutionResult): AsyncGenerator<ExecutionResult> {
  yield result;
}
