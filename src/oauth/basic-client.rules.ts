import { decodeFormPart, splitOnce } from '../lib/form.ts';
import { isUuid } from '../lib/input.ts';
import { decodeUtf8 } from '../lib/json.ts';

/** A client as it shows itself. */
export interface ClientCredentials {
  /** A UUID in lower case. */
  clientId: string;
  secret: string;
}

const SCHEME = /^Basic(?: |$)/i;
const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i;

/** Whether an `Authorization` header is of HTTP Basic; every other scheme is none of a client's. */
export function isBasic(authorization: string | undefined): boolean {
  return authorization !== undefined && SCHEME.test(authorization);
}

/**
 * The client of an HTTP Basic header (RFC 6749 section 2.3.1): id and secret are form-encoded each. Undefined for what
 * cannot be a client's.
 */
export function basicClient(authorization: string): ClientCredentials | undefined {
  const text = textOf(BASIC.exec(authorization)?.[1]);
  if (text === undefined || !text.includes(':')) return undefined;
  const [clientId, secret] = splitOnce(text, ':').map(decodeFormPart);
  if (clientId === undefined || !isUuid(clientId) || secret === undefined || secret === '') return undefined;
  return { clientId: clientId.toLowerCase(), secret };
}

function textOf(base64: string | undefined): string | undefined {
  if (base64 === undefined) return undefined;
  try {
    return decodeUtf8(Buffer.from(base64, 'base64'));
  } catch {
    return undefined;
  }
}
