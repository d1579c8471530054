import { STATUS_CODES } from 'node:http';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { errorEnvelope, invalidRequest, notFound } from '../../platform/errors.ts';
import { MAX_CORRELATION_ID_BYTES } from './request-head.ts';

/** The issue of bytes that are no HTTP. */
export const NOT_HTTP = { path: '', message: 'must be well-formed HTTP' };

/** What Node's parser reports of bytes that are no HTTP. */
export type ParserError = Error & { code?: string; rawPacket?: Buffer };

/** What came on a connection and was no HTTP: its response, and what could be read of it; empty texts where nothing could. */
export interface Unparsed {
  correlationId: string;
  method: string;
  target: string;
  status: number;
  body: string;
  remoteAddress: string;
}

const HEAD_BYTES = 16 * 1024;
const REQUEST_LINE = /^([A-Z]{1,16}) ([^ \r\n]{1,4096}) HTTP\/1\.[01]\r\n/;
const CORRELATION_ID = /\r\nx-correlation-id:[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*\r\n/i;

/** Reads what the parser has given up; `isFirst`: nothing came on the connection before, so it may begin with a head. */
export function readUnparsed(error: ParserError, isFirst: boolean): Omit<Unparsed, 'remoteAddress'> {
  const text = (isFirst && error.rawPacket?.toString('latin1', 0, HEAD_BYTES)) || '';
  const [, method = '', target = ''] = REQUEST_LINE.exec(text) ?? [];
  const given = method === '' ? '' : (CORRELATION_ID.exec(text)?.[1] ?? '');
  const correlationId = given !== '' && given.length <= MAX_CORRELATION_ID_BYTES ? given : uuidV7();
  const refusal = error.code === 'HPE_INVALID_URL' ? notFound() : invalidRequest([NOT_HTTP]);
  return { correlationId, method, target, status: refusal.status, body: JSON.stringify(errorEnvelope(refusal)) };
}

/** Returns the bytes of the response. They are written to the socket: Node has no response object for what is no request. */
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
