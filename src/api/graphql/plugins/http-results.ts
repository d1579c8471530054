import type { ExecutionResult } from 'graphql';
import { type Plugin, processRegularResult } from 'graphql-yoga';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import { errorEnvelope, statusOf } from '../../../gateway/exchange/refusals.ts';
import { SLICE_LENGTH } from '../../../lib/json-slices.ts';
import { Refusal } from '../../../platform/errors.ts';
import { heldMemory } from '../../../platform/waiting-request.ts';
import { acceptedTypes, GRAPHQL_TYPE, JSON_TYPE, SSE } from '../execution/accepted-types.ts';
import { type ErrorMask, MAX_RESULT_BYTES, textOfResult } from '../execution/error-masking.ts';
import type { OperationRequest } from '../execution/operation-request.ts';
import { once } from '../execution/shared-results.ts';
import type { SseStreams } from '../execution/sse-streams.ts';
import { reasonIn } from '../kit/graphql-errors.ts';
import type { OperationAudits } from './audit-masking.ts';

/**
 * Creates the Yoga plugin that masks results and says what Yoga's own rendering cannot know: the status of results
 * without data, and event streams. A client that names no JSON type gets `application/json` with the status that
 * `application/graphql-response+json` has, because the operation may have changed something and must be answered.
 */
export function useHttpResults(
  mask: ErrorMask,
  streams: SseStreams,
  audits: OperationAudits,
): Plugin<OperationRequest, OperationRequest> {
  const subscriptions = new WeakMap<Exchange, AsyncIterable<ExecutionResult>>();
  return {
    // Yoga would make a result of the error that ends a stream, so the original is stored.
    onSubscribe: ({ args }) => ({
      onSubscribeResult({ result }) {
        if (Symbol.asyncIterator in result) subscriptions.set(args.contextValue.exchange, result);
      },
    }),
    async onResultProcess({ request, result, setResult, setResultProcessor, serverContext: { exchange } }) {
      const stream = (results: AsyncIterator<ExecutionResult>) =>
        setResultProcessor((_result, fetchAPI) => streams.respond(fetchAPI, { exchange, results, mask }), SSE);
      const accepted = acceptedTypes(request.headers.get('accept') ?? undefined);
      if (Array.isArray(result)) {
        const masked: ExecutionResult[] = [];
        const texts: string[] = [];
        let bytesLeft = MAX_RESULT_BYTES;
        for (const operationResult of result) {
          const maskedResult = await mask.result(operationResult, exchange, bytesLeft);
          const text = textOfResult(maskedResult);
          bytesLeft = Math.max(0, bytesLeft - Buffer.byteLength(text));
          masked.push(maskedResult);
          texts.push(text);
        }
        heldMemory()?.lowerTo(MAX_RESULT_BYTES - bytesLeft);
        audits.recordResults(exchange, texts);
        setResult(masked.map((maskedResult, index) => ({ ...maskedResult, stringify: () => texts[index] ?? '' })));
      } else {
        if (Symbol.asyncIterator in result) {
          const results = (subscriptions.get(exchange) ?? result)[Symbol.asyncIterator]();
          if (accepted.takesStream) return stream(results);
          void results.return?.();
          return setResultProcessor(notAcceptable, JSON_TYPE);
        }
        const maskedResult = await mask.result(result, exchange);
        heldMemory()?.lowerTo(maskedResult.stringify?.().length ?? SLICE_LENGTH);
        const masked = withStatus(maskedResult);
        if (masked.errors) exchange.audit.reason = reasonIn(masked.errors);
        setResult(masked);
        const isOk = !masked.errors?.some(({ extensions }) => extensions.http);
        if (isOk && accepted.prefersStream) return stream(once(masked));
      }
      if (accepted.json) setResultProcessor(processRegularResult, accepted.json);
      else setResultProcessor(asPlainJson, JSON_TYPE);
    },
  };
}

/**
 * Gives the errors of a result without data the HTTP status for Yoga to send, unless they have one or the operation had
 * begun: a subscription that could not begin has the path of its field. A limit is a 400 for every client, though Yoga
 * takes what is thrown while parsing for a syntax error.
 */
function withStatus(result: ExecutionResult): ExecutionResult {
  if ('data' in result) return result;
  for (const { path, extensions } of result.errors ?? []) {
    if (extensions.code === 'INTERNAL_SERVER_ERROR') extensions.http = { status: 500 };
    else if (extensions.code === 'LIMIT_EXCEEDED') extensions.http = { status: 400 };
    else if (path === undefined) extensions.http ??= { status: 400, spec: true };
  }
  return result;
}

/** Returns the 406 for a subscription whose client accepts no event stream. */
function notAcceptable(...[, fetchAPI]: Parameters<typeof processRegularResult>): Response {
  const refusal = new Refusal('not_acceptable');
  const headers = { 'content-type': `${JSON_TYPE}; charset=utf-8` };
  return new fetchAPI.Response(JSON.stringify(errorEnvelope(refusal)), { status: statusOf(refusal), headers });
}

function asPlainJson(...[result, fetchAPI]: Parameters<typeof processRegularResult>): Response {
  const response = processRegularResult(result, fetchAPI, GRAPHQL_TYPE);
  response.headers.set('content-type', `${JSON_TYPE}; charset=utf-8`);
  return response;
}
