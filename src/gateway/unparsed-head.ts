import { MAX_CORRELATION_ID_BYTES } from './stages/correlation.ts';

/** What whoever sends no HTTP is told. */
export const NOT_HTTP = { path: '', message: 'must be well-formed HTTP' };

/** What Node's parser tells of bytes that are no HTTP. */
export type ParserError = Error & { code?: string; rawPacket?: Buffer };

/** What can be told of a head that was not parsed; empty texts where nothing can. */
interface UnparsedHead {
  correlationId: string | undefined;
  method: string;
  target: string;
}

const HEAD_BYTES = 16 * 1024;
const REQUEST_LINE = /^([A-Z]{1,16}) ([^ \r\n]{1,4096}) HTTP\/1\.[01]\r\n/;
const CORRELATION_ID = /\r\nx-correlation-id:[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*\r\n/i;

/** Reads the beginning of a connection that the parser has given up, as far as it is the head of a request. */
export function unparsedHead({ rawPacket }: { rawPacket?: Buffer }): UnparsedHead {
  const text = rawPacket?.toString('latin1', 0, HEAD_BYTES) ?? '';
  const [, method = '', target = ''] = REQUEST_LINE.exec(text) ?? [];
  const given = method === '' ? undefined : CORRELATION_ID.exec(text)?.[1];
  const isUsable = given !== undefined && given !== '' && given.length <= MAX_CORRELATION_ID_BYTES;
  return { correlationId: isUsable ? given : undefined, method, target };
}
