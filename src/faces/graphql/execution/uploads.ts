import { getOperationAST } from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import { errorEnvelope } from '../../../platform/errors.ts';
import { limitError, type OperationParams } from './document-limits.ts';
import type { GraphqlHttpRequest } from './http-requests.ts';
import { UploadForm, type UploadLimits } from './upload-form.ts';

/**
 * A text in UTF-8, in memory of its own. What `Buffer.from` gives shares 64 KiB with whatever else was made just then, and
 * keeps all of that for as long as it is kept itself: for what is held, not for what is written and forgotten.
 */
export function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** A multipart request, read up to the beginning of its file. */
export interface UploadRequest {
  form: UploadForm;
  /** The operation, with the file in its place. */
  params: GraphQLParams;
}

/**
 * Reads a multipart request up to its file.
 * @throws AppError what a limit of the client refuses the request with, 413 where it is too long, 400 where it is no upload.
 */
export async function readUpload(exchange: Exchange, limits: UploadLimits): Promise<UploadRequest> {
  // One operation, never a batch.
  if (exchange.found.limitRefusal) throw exchange.found.limitRefusal;
  const upload = await UploadForm.open(exchange, limits);
  exchange.audit.isBodyRead = true;
  return upload;
}

/**
 * Yoga plugin: takes the operation of a multipart request, and answers with the request's refusal where the file has not come
 * as it must.
 */
export function useUploads(): Plugin<OperationParams & Partial<GraphqlHttpRequest>, GraphqlHttpRequest> {
  return {
    onRequestParse({ setRequestParser, serverContext: { upload } }) {
      if (upload) setRequestParser(() => upload.params);
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
