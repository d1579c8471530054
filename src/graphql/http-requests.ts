import type { IncomingMessage } from 'node:http';
import { GraphQLError } from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { AppError } from '../errors/app-error.ts';
import { decodeUtf8 } from '../lib/json.ts';
import { JSON_TYPE } from './csrf.rules.ts';
import { limitError, MAX_BATCH } from './limits.ts';
import type { Arrival } from './operation-context.ts';

/** A POST whose body has been read. */
export interface HttpArrival extends Arrival {
  body: Buffer | undefined;
}

/** Yoga plugin: takes operations out of the body that was read before, a single one or a batch. */
export function useJsonBody(): Plugin<object, HttpArrival> {
  return {
    onRequestParse({ request, setRequestParser, serverContext }) {
      if (request.method !== 'POST') return;
      if (!JSON_TYPE.test(request.headers.get('content-type') ?? '')) {
        throw httpError(415, 'the content type must be application/json');
      }
      setRequestParser(() => {
        const params = parseParams(serverContext.body ?? Buffer.alloc(0));
        if (Array.isArray(params)) serverContext.isLater = true;
        return params;
      });
    },
  };
}

/**
 * Reads a body.
 * @throws AppError 413 before a byte is read where the declared length is over the limit, else at the byte that passes
 * it; 400 where the client has gone before the end.
 */
export async function readBody(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    // Kept open: a body that is too large still gets its answer.
    for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    throw new AppError(400, 'invalid_request', { cause });
  }
  if (length > maxBytes) throw tooLarge(maxBytes);
  return Buffer.concat(chunks);
}

function parseParams(body: Buffer): GraphQLParams | GraphQLParams[] {
  let params: unknown;
  try {
    params = JSON.parse(decodeUtf8(body));
  } catch {
    throw httpError(400, 'the body must be JSON in UTF-8');
  }
  if (typeof params !== 'object' || params === null)
    throw httpError(400, 'the body must be an object or a batch of them');
  if (!Array.isArray(params)) return params;
  if (params.length === 0) throw httpError(400, 'the batch is empty');
  if (params.length > MAX_BATCH) {
    throw limitError(`the batch has ${params.length} operations, at most ${MAX_BATCH} are allowed`);
  }
  return params;
}

function httpError(status: number, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status } } });
}

function tooLarge(maxBytes: number): AppError {
  return new AppError(413, 'payload_too_large', {
    issues: [{ path: '', message: `must be at most ${maxBytes} bytes` }],
    headers: { Connection: 'close' },
  });
}
