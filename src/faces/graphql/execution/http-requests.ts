import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { GraphQLError } from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { readBytes } from '../../../gateway/exchange/body.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import { decodeUtf8, JsonLimitError, parseJson } from '../../../lib/json.ts';
import { invalidRequest } from '../../../platform/errors.ts';
import { limitError, MAX_BATCH } from './document-limits.ts';
import type { OperationRequest } from './operation-context.ts';
import type { UploadRequest } from './uploads.ts';

/** The content type of operations, which a file alone comes without. */
export const JSON_TYPE: RegExp = /^application\/json\s*(?:;|$)/i;

const FORM_TYPE = /^multipart\/form-data\s*(?:;|$)/i;

/** Whether a request brings a form, as uploads do. */
export function bringsForm({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  return method === 'POST' && FORM_TYPE.test(headers['content-type'] ?? '');
}

/**
 * Whether a request can be no forgery by another site's page, which can send neither a JSON content type nor an
 * Authorization header without asking first (Fetch standard, CORS-safelisted request headers).
 */
export function passesCsrfCheck(headers: IncomingHttpHeaders): boolean {
  return headers.authorization !== undefined || JSON_TYPE.test(headers['content-type'] ?? '');
}

/** A request over HTTP: the body of a POST, or a form that was read up to its file. */
export interface GraphqlHttpRequest extends OperationRequest {
  body: Buffer | undefined;
  upload?: UploadRequest | undefined;
}

/** Yoga plugin: parses the operation of a GET from its query; numbers in variables keep every digit. */
export function useQueryParameters(): Plugin<object, GraphqlHttpRequest> {
  return {
    onRequestParse({ request, setRequestParser }) {
      if (request.method === 'GET') setRequestParser(({ url }) => paramsOf(new URL(url).searchParams));
    },
  };
}

function paramsOf(parameters: URLSearchParams): GraphQLParams {
  const given = (name: string) => parameters.get(name) || undefined;
  const objectOf = (name: string) => parseJson(given(name) ?? 'null') as Record<string, unknown> | null;
  const [query, operationName, documentId] = [given('query'), given('operationName'), given('documentId')];
  return {
    ...(query === undefined ? {} : { query }),
    ...(operationName === undefined ? {} : { operationName }),
    ...(documentId === undefined ? {} : { documentId }),
    variables: objectOf('variables') ?? {},
    extensions: objectOf('extensions') ?? {},
  };
}

/** Yoga plugin: parses one operation, or a batch, from the body that was read before. */
export function useJsonBody(): Plugin<object, GraphqlHttpRequest> {
  return {
    onRequestParse({ request, setRequestParser, serverContext }) {
      if (request.method !== 'POST') return;
      setRequestParser(() => {
        const params = parseParams(serverContext.body ?? Buffer.alloc(0));
        if (Array.isArray(params)) Object.assign(serverContext, { isLater: true, batch: { cost: 0 } });
        return params;
      });
    },
  };
}

/**
 * The body of a POST: JSON, up to the endpoint's limit; nothing for a GET, whose parameters must be JSON.
 * @throws what a limit of the client refuses the request with, before anything else, unless it brings a batch.
 */
export async function readRequestBody(exchange: Exchange, maxBytes: number): Promise<Buffer | undefined> {
  const { limitRefusal } = exchange.found;
  if (!limitRefusal) return readBody(exchange, maxBytes);
  const body = await readBody(exchange, maxBytes).catch(() => undefined);
  if (body && isBatch(body)) return body;
  // Nothing came of what it sent.
  exchange.audit.isBodyRead = false;
  throw limitRefusal;
}

async function readBody(exchange: Exchange, maxBytes: number): Promise<Buffer | undefined> {
  const { req, target } = exchange;
  if (req.method !== 'POST') {
    refuseBrokenParameters(new URLSearchParams(target?.query));
    return undefined;
  }
  if (!JSON_TYPE.test(req.headers['content-type'] ?? '')) {
    throw invalidRequest([{ path: 'Content-Type', message: 'must be application/json' }]);
  }
  return readBytes(exchange, maxBytes);
}

function refuseBrokenParameters(parameters: URLSearchParams): void {
  for (const name of ['variables', 'extensions']) {
    if (!isJsonObject(parameters.get(name) ?? '{}')) {
      throw invalidRequest([{ path: name, message: 'must be a JSON object' }]);
    }
  }
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return value === null || (typeof value === 'object' && !Array.isArray(value));
  } catch {
    return false;
  }
}

function isBatch(body: Buffer): boolean {
  try {
    return Array.isArray(parseParams(body));
  } catch {
    return false;
  }
}

function parseParams(body: Buffer): GraphQLParams | GraphQLParams[] {
  const params = parseBody(body);
  if (typeof params !== 'object' || params === null)
    throw httpError(400, 'the body must be an object or a batch of them');
  if (!Array.isArray(params)) return params;
  if (params.length === 0) throw httpError(400, 'the batch is empty');
  if (params.length > MAX_BATCH) {
    throw limitError(`the batch has ${params.length} operations, at most ${MAX_BATCH} are allowed`);
  }
  return params;
}

function parseBody(body: Buffer): unknown {
  try {
    return parseJson(decodeUtf8(body));
  } catch (error) {
    if (error instanceof JsonLimitError) throw limitError(`the body ${error.message}`);
    throw httpError(400, 'the body must be JSON in UTF-8');
  }
}

function httpError(status: number, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status } } });
}
