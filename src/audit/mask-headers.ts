import { maskAddresses, maskPart } from './mask-form.ts';
import { MASK, withoutBareUserinfo } from './mask-values.ts';
import { SECRETS, type SecretNames } from './masked-names.ts';

const SECRET_HEADER = /(?:authorization|cookie)$/i;
/** Matches the subprotocols of WebSockets that are shown. Browsers can send a token in no other header: any other value may be one. */
const PROTOCOLS = /^(?:(?:^|, *)(?:graphql-(?:transport-)?ws|mqtt|soap|wamp|v\d+\.(?:json|proto)))+$/i;

/**
 * The most that an audit record stores of one header value and of all headers as JSON, in bytes; a request may have 160
 * KiB of headers.
 */
const MAX_VALUE_BYTES = 4 * 1024;
const MAX_BYTES = 16 * 1024;
/** The name under which the number of omitted headers is recorded; no real header has it. */
const LEFT_OUT = '…';
/** The bytes reserved for the JSON member that counts omitted headers, including the braces of the object. */
const LEFT_OUT_BYTES = 32;

/**
 * Returns the headers as an audit record shows them (docs/contract.md, 1-05): Authorization, cookies and every header
 * with a secret name are `***`, as are secrets and JWTs in any other header. A value over 4 KiB is cut and ends in `…`;
 * headers beyond 16 KiB in total are omitted and counted under the name `…`.
 */
export function maskHeaders(
  headers: Record<string, string | string[] | undefined>,
  secrets: SecretNames = SECRETS,
): Record<string, string | string[]> {
  const masked: [name: string, value: string | string[]][] = [];
  let freeBytes = MAX_BYTES - LEFT_OUT_BYTES;
  let leftOut = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const isSecret = SECRET_HEADER.test(name) || secrets.isSecret(name, String(value));
    const read = isSecret ? 0 : lengthRead(value);
    if (read > freeBytes) {
      leftOut += 1;
      continue;
    }
    const sent = name.toLowerCase() === 'host' && typeof value === 'string' ? withoutBareUserinfo(value) : value;
    const isProtocol = name.toLowerCase() === 'sec-websocket-protocol';
    const shown = isSecret || (isProtocol && !PROTOCOLS.test(String(value))) ? MASK : maskHeader(sent, secrets);
    const bytes = Buffer.byteLength(JSON.stringify([name, shown]));
    const isKept = bytes <= freeBytes;
    if (isKept) masked.push([name, shown]);
    else leftOut += 1;
    // What was searched for secrets counts against the limit, even if less of it is recorded.
    freeBytes -= isKept ? Math.max(read, bytes) : read;
  }
  if (leftOut > 0) masked.push([LEFT_OUT, `${leftOut} left out`]);
  return Object.fromEntries(masked);
}

/** Returns how many characters of a header value are searched for secrets. */
function lengthRead(value: string | string[]): number {
  if (Array.isArray(value)) return value.reduce((sum, text) => sum + lengthRead(text), 0);
  return Math.min(value.length, MAX_VALUE_BYTES);
}

function maskHeader(value: string | string[], secrets: SecretNames): string | string[] {
  const mask = (text: string) => secrets.maskText(maskAddresses(text, secrets));
  const shown = (text: string) => maskPart(text, MAX_VALUE_BYTES, mask);
  return Array.isArray(value) ? value.map(shown) : shown(value);
}
