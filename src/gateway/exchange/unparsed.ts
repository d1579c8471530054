import { uuidV7 } from '../../lib/uuid-v7.ts';
import { invalidRequest, notFound } from '../../platform/errors.ts';
import { STATUS_CODES } from './node-http.ts';
import { errorEnvelope, statusOf } from './refusals.ts';
import { MAX_CORRELATION_ID_BYTES } from './request-head.ts';

/** The issue reported for bytes that are not valid HTTP. */
export const NOT_HTTP = { path: '', message: 'must be well-formed HTTP' };

/** The error of Node's parser for bytes that are not valid HTTP. */
export type ParserError = Error & { code?: string; rawPacket?: Buffer };

/**
 * The response to bytes that are not valid HTTP, and what could be read of their head; members that could not be read
 * are empty.
 */
export interface Unparsed {
  correlationId: string;
  method: string;
  target: string;
  status: number;
  body: string;
  remoteAddress: string;
  /** The reason of the refusal, which only the record has. */
  reason?: string | undefined;
}

const HEAD_BYTES = 16 * 1024;
const REQUEST_LINE = /^([A-Z]{1,16}) ([^ \r\n]{1,4096}) HTTP\/1\.[01]\r\n/;
const CORRELATION_ID = /\r\nx-correlation-id:[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*\r\n/i;

/**
 * Reads the head of bytes that the parser rejected, and creates their response. `isFirst` says that nothing came before
 * them on the connection, so that they may begin with a head.
 */
export function readUnparsed(error: ParserError, isFirst: boolean): Omit<Unparsed, 'remoteAddress'> {
  const text = (isFirst && error.rawPacket?.toString('latin1', 0, HEAD_BYTES)) || '';
  const [, method = '', target = ''] = REQUEST_LINE.exec(text) ?? [];
  const given = method === '' ? '' : (CORRELATION_ID.exec(text)?.[1] ?? '');
  const correlationId = given !== '' && given.length <= MAX_CORRELATION_ID_BYTES ? given : uuidV7();
  const refusal =
    error.code === 'HPE_INVALID_URL' ? notFound('the request target is not a URL') : invalidRequest([NOT_HTTP]);
  const body = JSON.stringify(errorEnvelope(refusal));
  return { correlationId, method, target, status: statusOf(refusal), body, reason: refusal.details.reason };
}

/**
 * Returns the bytes of the response to bytes that are not valid HTTP. The caller writes them to the socket, because
 * Node has no response object without a request.
 */
export function unparsedResponse({ correlationId, status, body }: Unparsed): Buffer {
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `X-Correlation-ID: ${correlationId}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1');
}
