import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { GraphQLError, getOperationAST } from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { readBytes } from '../../../gateway/exchange/body.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import { decodeUtf8, JsonLimitError, parseJson } from '../../../lib/json.ts';
import { errorEnvelope, invalidRequest } from '../../../platform/errors.ts';
import type { OperationAudits } from './audit-masking.ts';
import { limitError, MAX_BATCH, type OperationParams } from './document-limits.ts';
import type { OperationRequest } from './runtime.ts';
import { UploadForm, type UploadLimits } from './upload-form.ts';

/** Matches the Content-Type of operations that are sent as JSON, not as a form with a file. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

const FORM_TYPE = /^multipart\/form-data\s*(?:;|$)/i;

/** Checks whether a request carries a multipart form, as uploads do. */
export function bringsForm({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  return method === 'POST' && FORM_TYPE.test(headers['content-type'] ?? '');
}

/**
 * Checks that a request cannot have been forged by another site's page: a browser sends a JSON content type or an
 * Authorization header across origins only after a preflight (Fetch standard, CORS-safelisted request headers).
 */
export function passesCsrfCheck(headers: IncomingHttpHeaders): boolean {
  return headers.authorization !== undefined || JSON_TYPE.test(headers['content-type'] ?? '');
}

/** A GraphQL request over HTTP, with the body of a POST or with a form that was read up to its file. */
export interface GraphqlHttpRequest extends OperationRequest {
  body?: Buffer | undefined;
  /** The form, and its operation with the file in the place of its variable; undefined if the request is not a form. */
  upload?: { form: UploadForm; params: GraphQLParams } | undefined;
}

/**
 * Creates the Yoga plugin that parses operations: of a GET from the query string, otherwise one operation or a batch
 * from the body, or one from a form. Numbers in variables keep every digit. If a form turns out to be malformed after
 * its operation began, the plugin responds with the form's refusal.
 */
export function useHttpRequests(
  audits: OperationAudits,
): Plugin<OperationParams & Partial<GraphqlHttpRequest>, GraphqlHttpRequest> {
  return {
    onRequestParse({ request: { method }, setRequestParser, serverContext }) {
      const { exchange, body = Buffer.alloc(0), upload } = serverContext;
      if (method !== 'GET' && method !== 'POST') return;
      setRequestParser(({ url }) => {
        const params = method === 'GET' ? paramsOf(new URL(url).searchParams) : (upload?.params ?? parseParams(body));
        audits.came(exchange, params);
        if (Array.isArray(params)) Object.assign(serverContext, { isLater: true, batch: { cost: 0 } });
        return params;
      });
    },
    onValidate({ params: { documentAST }, context: { upload, params } }) {
      if (!upload) return;
      const operation = getOperationAST(documentAST, params.operationName);
      if (operation && operation.operation !== 'mutation') throw limitError('only a mutation may bring a file');
    },
    onResponse({ serverContext: { upload, exchange }, fetchAPI, setResponse }) {
      if (!upload) return;
      const { refusal } = upload.form;
      upload.form.stop();
      if (!exchange.req.complete && !exchange.res.headersSent) exchange.res.setHeader('Connection', 'close');
      if (!refusal) return;
      const headers = { 'content-type': 'application/json; charset=utf-8', ...refusal.headers };
      const body = JSON.stringify(errorEnvelope(refusal));
      setResponse(new fetchAPI.Response(body, { status: refusal.status, headers }));
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

/**
 * Reads a form up to its file, or the JSON body of another POST, up to `maxBytes`. Of a GET it checks that `variables`
 * and `extensions` are JSON.
 * @throws AppError the client's rate or quota refusal, before anything else unless the body is a batch; 413 for a body
 * that is too long; 400 for one that is neither JSON nor a valid upload.
 */
export async function readRequest(
  exchange: Exchange,
  maxBytes: number,
  uploadLimits: UploadLimits,
): Promise<Pick<GraphqlHttpRequest, 'body' | 'upload'>> {
  const { limitRefusal } = exchange.found;
  if (bringsForm(exchange.req)) {
    // A form brings one operation, never a batch.
    if (limitRefusal) throw limitRefusal;
    const upload = await UploadForm.open(exchange, uploadLimits);
    exchange.audit.isBodyRead = true;
    return { upload };
  }
  if (!limitRefusal) return { body: await readBody(exchange, maxBytes) };
  const body = await readBody(exchange, maxBytes).catch(() => undefined);
  if (body && isBatch(body)) return { body };
  // The body was not used, so the audit record leaves it out.
  exchange.audit.isBodyRead = false;
  throw limitRefusal;
}

async function readBody(exchange: Exchange, maxBytes: number): Promise<Buffer | undefined> {
  const { req, target } = exchange;
  if (req.method !== 'POST') {
    const parameters = new URLSearchParams(target?.query);
    for (const name of ['variables', 'extensions']) {
      if (!isJsonObject(parameters.get(name) ?? '{}')) {
        throw invalidRequest([{ path: name, message: 'must be a JSON object' }]);
      }
    }
    return undefined;
  }
  if (!JSON_TYPE.test(req.headers['content-type'] ?? '')) {
    throw invalidRequest([{ path: 'Content-Type', message: 'must be application/json' }]);
  }
  return readBytes(exchange, maxBytes);
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
  if (typeof params !== 'object' || params === null) throw badRequest('the body must be an object or a batch of them');
  if (!Array.isArray(params)) return params;
  if (params.length === 0) throw badRequest('the batch is empty');
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
    throw badRequest('the body must be JSON in UTF-8');
  }
}

function badRequest(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status: 400 } } });
}
