import { type ExecutionResult, getOperationAST } from 'graphql';
import { type FetchAPI, type GraphQLParams, type Plugin, processRegularResult } from 'graphql-yoga';
import { type Exchange, readBytes } from '../../../gateway/exchange/exchange.ts';
import { errorEnvelope, refusalHeaders, statusOf } from '../../../gateway/exchange/refusals.ts';
import { heapWeight } from '../../../lib/heap-weight.ts';
import {
  type ChargedWorker,
  ExactNumber,
  isObject,
  JsonLimitError,
  type KnownMembers,
  parsedOr,
  parseInput,
  readInput,
} from '../../../lib/json.ts';
import { runCooperatively, SLICE_LENGTH } from '../../../lib/yielding.ts';
import { invalidRequest, Refusal } from '../../../platform/errors.ts';
import { heldMemory } from '../../../platform/held-memory.ts';
import { acceptedTypes, bringsForm, GRAPHQL_TYPE, JSON_TYPE, SSE } from '../execution/accepted-types.ts';
import { badRequest, KNOWN_MEMBERS, limitError, type OperationRequest } from '../execution/documents.ts';
import { type ErrorMask, MAX_RESULT_BYTES, reasonIn, textOfResult } from '../execution/error-masking.ts';
import { once } from '../execution/shared-results.ts';
import type { SseStreams } from '../execution/sse-streams.ts';
import { type UploadDependencies, UploadForm } from '../execution/upload-form.ts';
import type { OperationAudits } from './audit-masking.ts';
import { MAX_BATCH, type OperationParams } from './document-limits.ts';

/** Matches the Content-Type of operations that are sent as JSON, not as a form with a file. */
const JSON_BODY = /^application\/json\s*(?:;|$)/i;

/** A GraphQL request over HTTP, as far as it was read before its operations begin. */
export interface GraphqlHttpRequest extends OperationRequest {
  /** The body of a POST with JSON. */
  body?: Buffer;
  /** The operation of a GET, or of a form, with the file as the value of its variable. */
  params?: GraphQLParams;
  /** The form, read up to its file. */
  form?: UploadForm;
}

/**
 * Creates the Yoga plugin that parses operations: one of a query string or a form, one or a batch from a JSON body.
 * Numbers in variables keep every digit. If a form turns out to be malformed after its operation began, the plugin
 * responds with the form's refusal.
 */
export function useHttpRequests(
  audits: OperationAudits,
): Plugin<OperationParams & Partial<GraphqlHttpRequest>, GraphqlHttpRequest> {
  return {
    onRequestParse({ setRequestParser, serverContext }) {
      const { exchange, body = Buffer.alloc(0), params: read } = serverContext;
      setRequestParser(async () => {
        const params = read ?? (await parseParams(body, exchange.held));
        audits.recordRequest(exchange, params);
        if (Array.isArray(params)) {
          if (exchange.req.headers['idempotency-key'] !== undefined) {
            throw badRequest('Idempotency-Key is for a single operation, not for a batch');
          }
          Object.assign(serverContext, { isLater: true, batch: { cost: 0, isBegun: false } });
        }
        return params;
      });
    },
    // Each operation of a batch has a turn.
    onParams: () => runCooperatively(() => undefined, heldMemory(), { isBegun: true }),
    onValidate({ params: { documentAST }, context: { form, params } }) {
      if (!form) return;
      const operation = getOperationAST(documentAST, params.operationName);
      if (operation && operation.operation !== 'mutation') throw limitError('only a mutation may have a file');
    },
    onResponse({ serverContext: { form, exchange }, fetchAPI, setResponse }) {
      if (!form) return;
      const { refusal } = form;
      form.stop();
      if (!exchange.req.complete && !exchange.res.headersSent) exchange.res.setHeader('Connection', 'close');
      if (!refusal) return;
      setResponse(refusalResponse(refusal, fetchAPI));
    },
  };
}

/**
 * Reads the operation of a GET or of a form, up to its file, or the JSON body of another POST, up to `maxBytes`.
 * @throws Refusal 406 if the client accepts no type of result; its rate or quota refusal, unless the body is a batch; 413 for a body
 * that is too long; 400 for one that is neither JSON nor a valid upload, and for a GET whose `variables` or
 * `extensions` are not JSON.
 */
export async function readRequest(
  exchange: Exchange,
  maxBytes: number,
  upload: UploadDependencies,
): Promise<Pick<GraphqlHttpRequest, 'body' | 'params' | 'form'>> {
  const {
    req,
    state: { limitRefusal },
  } = exchange;
  // An operation must not begin if its result cannot be sent.
  if (acceptedTypes(req.headers.accept).isNone) throw new Refusal('not_acceptable');
  if (req.method !== 'POST' || bringsForm(req)) {
    // Neither brings a batch.
    if (limitRefusal) throw limitRefusal;
    if (req.method !== 'POST') {
      const params = paramsOf(new URL(req.url ?? '', 'http://localhost').searchParams);
      exchange.held?.charge(heapWeight(params));
      return { params };
    }
    const opened = await UploadForm.open(exchange, upload);
    exchange.audit.isBodyRead = true;
    return opened;
  }
  if (!limitRefusal) return { body: await readBody(exchange, maxBytes) };
  const body = await readBody(exchange, maxBytes).catch(() => undefined);
  // What is parsed is not kept, so that the request is not to be charged.
  const params = body && (await parseParams(body, exchange.held?.unstoppable).catch(() => undefined));
  if (body && Array.isArray(params)) return { body };
  // The body was not used, so the audit record leaves it out.
  exchange.audit.isBodyRead = false;
  throw limitRefusal;
}

/** Returns the operation in a query string; Yoga checks the types of its members. */
function paramsOf(parameters: URLSearchParams): GraphQLParams {
  const entries = ['query', 'operationName', 'documentId', 'variables', 'extensions'].flatMap((name) => {
    const text = parameters.get(name);
    if (!text) return [];
    return [[name, name === 'variables' || name === 'extensions' ? jsonOf(name, text) : text]];
  });
  return Object.fromEntries(entries);
}

const OBJECT = 'must be a JSON object with each member once';

function jsonOf(name: string, json: string): unknown {
  const rejection = (message: string) => invalidRequest([{ path: name, message }]);
  const value = parsedOr(
    () => parseInput(json, (KNOWN_MEMBERS as Record<string, KnownMembers>)[name]),
    (fault) => rejection(fault instanceof JsonLimitError ? fault.message : OBJECT),
  );
  // A number is an object here, which holds it exactly.
  if (value === null || (isObject(value) && !(value instanceof ExactNumber))) return value;
  throw rejection(OBJECT);
}

async function readBody(exchange: Exchange, maxBytes: number): Promise<Buffer> {
  if (!JSON_BODY.test(exchange.req.headers['content-type'] ?? '')) {
    throw invalidRequest([{ path: 'Content-Type', message: 'must be application/json' }]);
  }
  return readBytes(exchange, maxBytes);
}

/** Parses one operation or a batch; Yoga reports any other value. */
async function parseParams(body: Buffer, worker: ChargedWorker | undefined): Promise<GraphQLParams | GraphQLParams[]> {
  const params = (await readInput(
    body,
    (fault) => (fault instanceof JsonLimitError ? limitError : badRequest)(`the body ${fault.message}`),
    worker,
    KNOWN_MEMBERS,
  )) as GraphQLParams | GraphQLParams[];
  // A number is an object here, which holds it exactly; Yoga refuses all other values that are not objects.
  const parts = [params]
    .flat()
    .flatMap((operation): unknown[] => [operation, operation?.variables, operation?.extensions]);
  if (parts.some((value) => value instanceof ExactNumber)) {
    throw badRequest('operations, their variables and extensions must be objects');
  }
  if (!Array.isArray(params)) return params;
  if (params.length === 0) throw badRequest('the batch is empty');
  if (params.length > MAX_BATCH) {
    throw limitError(`the batch has ${params.length} operations; at most ${MAX_BATCH} are allowed`);
  }
  return params;
}

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
          return setResultProcessor(
            (_result, fetchAPI) => refusalResponse(new Refusal('not_acceptable'), fetchAPI),
            JSON_TYPE,
          );
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

/** Returns the response to a refusal, with the error envelope of REST. */
function refusalResponse(refusal: Refusal, fetchAPI: FetchAPI): Response {
  const headers = { 'content-type': `${JSON_TYPE}; charset=utf-8`, ...refusalHeaders(refusal) };
  return new fetchAPI.Response(JSON.stringify(errorEnvelope(refusal)), { status: statusOf(refusal), headers });
}

function asPlainJson(...[result, fetchAPI]: Parameters<typeof processRegularResult>): Response {
  const response = processRegularResult(result, fetchAPI, GRAPHQL_TYPE);
  response.headers.set('content-type', `${JSON_TYPE}; charset=utf-8`);
  return response;
}
