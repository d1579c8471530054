import { withoutOwnSecrets } from '../../audit/masked-names.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { type Issue, invalidRequest, notFound, type Refusal } from '../../platform/errors.ts';
import { STATUS_CODES } from './node-http.ts';
import { errorEnvelope, reasonOf, statusOf } from './refusals.ts';
import { type Cors, MAX_CORRELATION_ID_BYTES, secretsIn } from './request-head.ts';

/** The issue reported for bytes that are not valid HTTP. */
export const NOT_HTTP = { path: '', message: 'must be well-formed HTTP' };

/** The longest head accepted, in bytes; so large that the chain, not the parser, refuses an overlong token. */
export const MAX_HEADER_BYTES = 160 * 1024;
/** The most header fields of a request. */
export const MAX_HEADER_FIELDS = 1_000;

/** The issues of requests that exceed a limit of Node's parser, by the code of its error. */
export const LIMIT_ISSUES: Readonly<Record<string, Issue>> = {
  HPE_HEADER_OVERFLOW: {
    path: '',
    message: `must have a head of at most ${MAX_HEADER_BYTES} bytes with at most ${MAX_HEADER_FIELDS} header fields: send fewer or shorter ones`,
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { path: '', message: 'must have shorter chunk extensions, or none' },
  ERR_HTTP_REQUEST_TIMEOUT: { path: '', message: 'must be sent without long pauses' },
};

/** The error of Node's parser for bytes that are not valid HTTP. */
export type ParserError = Error & { code?: string; rawPacket?: Buffer };

/**
 * The response to bytes that are not valid HTTP, and what could be read of their head; members that could not be read
 * are empty.
 */
export interface Unparsed {
  correlationId: string;
  /** The correlation id for the record. */
  recordedId: string;
  method: string;
  target: string;
  origin: string | undefined;
  status: number;
  body: string;
  remoteAddress: string;
  /** Whether no audit record can be stored. */
  isUnrecordable: boolean;
  /** The reason of the refusal, which only the record has. */
  reason?: string | undefined;
}

/** Matches a field, of a form that need not be valid. */
const FIELD = /\n([^\s:]+)[ \t]*:[ \t]*([^\r\n]*)/g;
const REQUEST_LINE = /^([A-Z]{1,16}) ([^\r\n]{1,4096}) HTTP\/1\.[01]\r?\n/;
const BAD_TARGET = {
  path: '',
  message: `${NOT_HTTP.message}: the request target must be a URL in ASCII, with other characters percent-encoded`,
};

/** Returns the value of a header field in the text of a head; undefined if it has none. */
function fieldIn(head: string, name: string): string | undefined {
  const value = new RegExp(`\\n${name}:([\\t\\x20-\\x7e\\x80-\\xff]*)\\r?\\n`, 'i').exec(head)?.[1];
  // The second pattern begins only where a run of blanks does, so that many runs cost no more than their length.
  return value?.replace(/^[ \t]+/, '').replace(/(?<![ \t])[ \t]+$/, '');
}

/**
 * Reads the head of bytes that the parser rejected, and creates their response. `isFirst` says that nothing came before
 * them on the connection, so that they may begin with a head.
 */
export function readUnparsed(error: ParserError, isFirst: boolean): Omit<Unparsed, 'remoteAddress' | 'isUnrecordable'> {
  const text = (isFirst && error.rawPacket?.toString('latin1')) || '';
  // Up to the line end of the last field.
  const beginning = text.slice(0, (/\n\r?\n/.exec(text)?.index ?? text.length) + 1);
  const [, method = '', target = ''] = REQUEST_LINE.exec(beginning) ?? [];
  // Without a request line, the fields may be those of a later request.
  const head = method === '' ? '' : beginning;
  const sentId = fieldIn(head, 'x-correlation-id') ?? '';
  const correlationId = sentId !== '' && sentId.length <= MAX_CORRELATION_ID_BYTES ? sentId : uuidV7();
  const refusal = refusalOf(error, target);
  return {
    correlationId,
    recordedId: withoutOwnSecrets(
      correlationId,
      secretsIn(
        [...head.matchAll(FIELD)].flatMap(([, ...field]) => field),
        target,
      ),
    ),
    method,
    target,
    origin: fieldIn(head, 'origin'),
    status: statusOf(refusal),
    body: JSON.stringify(errorEnvelope(refusal)),
    reason: reasonOf(refusal),
  };
}

/** A path with control characters, or without a slash, is no path of this gateway; other targets have to be escaped. */
function refusalOf({ code = '' }: ParserError, target: string): Refusal {
  if (code !== 'HPE_INVALID_URL') return invalidRequest([LIMIT_ISSUES[code] ?? NOT_HTTP]);
  const isUnescaped = /^(?:[ -~]*[\x80-\xff]|\/[ -~]*\?)/.test(target);
  return isUnescaped ? invalidRequest([BAD_TARGET]) : notFound('the request target is not a URL');
}

/**
 * Returns the bytes of the response to bytes that are not valid HTTP. The caller writes them to the socket, because
 * Node has no response object without a request.
 */
export function unparsedResponse({ correlationId, method, origin, status, body }: Unparsed, cors: Cors): Buffer {
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `X-Correlation-ID: ${correlationId}`,
    ...Object.entries(cors(origin)).map(([name, value]) => `${name}: ${value}`),
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${method === 'HEAD' ? '' : body}`, 'latin1');
}
