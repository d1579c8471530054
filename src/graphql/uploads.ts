import { getOperationAST } from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { errorEnvelope } from '../errors/envelope.ts';
import type { Exchange } from '../gateway/exchange.ts';
import type { HttpArrival } from './http-requests.ts';
import { limitError, type OperationParams } from './limits.ts';
import { UploadForm, type UploadLimits } from './upload-form.ts';

/** A multipart request, read up to the beginning of its file. */
export interface ArrivedUpload {
  form: UploadForm;
  /** The operation, with the file in its place. */
  params: GraphQLParams;
}

/**
 * Reads a multipart request up to its file.
 * @throws AppError what a limit of the client refuses the request with, 413 where it is too long, 400 where it is no upload.
 */
export async function readUpload(exchange: Exchange, limits: UploadLimits): Promise<ArrivedUpload> {
  // One operation, never a batch.
  if (exchange.limitRefusal) throw exchange.limitRefusal;
  const upload = await UploadForm.open(exchange, limits);
  exchange.bodyRead = true;
  return upload;
}

/**
 * Yoga plugin: takes the operation of a multipart request, and answers with the request's refusal where the file has not come
 * as it must.
 */
export function useUploads(): Plugin<OperationParams & Partial<HttpArrival>, HttpArrival> {
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
