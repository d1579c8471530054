import { maskPart, maskQuery, maskSpelled } from './mask-form.ts';
import { isSecretKey, MASK } from './mask-keys.ts';

type HeaderMap = Record<string, string | string[] | undefined>;

const SECRET_HEADER = /(?:authorization|cookie)$/;

/** The most that a record keeps of a header's value, and of all headers as JSON: requests may have 160 KiB of them. */
const MAX_VALUE_BYTES = 4 * 1024;
const MAX_BYTES = 16 * 1024;
/** The name of none, for the number of those that are left out. */
const LEFT_OUT = '…';
/** Of that member, with the braces. */
const LEFT_OUT_BYTES = 32;

/**
 * The headers as a record shows them (specification section 3): Authorization, cookies and every header with a
 * secret's name are `***`, and so are secrets and JWTs in whatever header. Absent ones are left out. A value over 4 KiB
 * is cut there and ends in `…`; headers for which 16 KiB have no room are counted under the name `…`.
 */
export function maskHeaders(headers: HeaderMap): Record<string, string | string[]> {
  const masked: [name: string, value: string | string[]][] = [];
  let room = MAX_BYTES - LEFT_OUT_BYTES;
  let leftOut = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const isSecret = SECRET_HEADER.test(name.toLowerCase()) || isSecretKey(name);
    const read = isSecret ? 0 : lengthRead(value);
    if (read > room) {
      leftOut += 1;
      continue;
    }
    const shown = isSecret ? MASK : maskHeader(value);
    const bytes = Buffer.byteLength(JSON.stringify([name, shown]));
    const isKept = bytes <= room;
    if (isKept) masked.push([name, shown]);
    else leftOut += 1;
    // What was looked through counts, whatever is shown of it.
    room -= isKept ? Math.max(read, bytes) : read;
  }
  if (leftOut > 0) masked.push([LEFT_OUT, `${leftOut} left out`]);
  return Object.fromEntries(masked);
}

/** How much of a value is looked through. */
function lengthRead(value: string | string[]): number {
  return [value].flat().reduce((sum, { length }) => sum + Math.min(length, MAX_VALUE_BYTES), 0);
}

function maskHeader(value: string | string[]): string | string[] {
  return Array.isArray(value) ? value.map(maskHeaderText) : maskHeaderText(value);
}

function maskHeaderText(value: string): string {
  return maskPart(value, MAX_VALUE_BYTES, (text) => maskSpelled(maskAddresses(maskAddress(text))));
}

/** Takes the whole value for one address: what stands behind a mark is its query or its fragment, to the end. */
function maskAddress(value: string): string {
  const path = lastWord(value.split(/[?#]/, 1)[0] ?? '');
  return value.replace(/[?#][^#]*/g, (part) => part.charAt(0) + maskQuery(part.slice(1), path));
}

/** Takes the value for a list of addresses, such as `Link` has: each mark begins another query. */
function maskAddresses(value: string): string {
  const [first = '', ...parts] = value.split(/(?=[?#])/);
  let before = first;
  const masked = parts.map((part) => {
    const path = lastWord(before);
    before = part;
    return part.charAt(0) + maskQuery(part.slice(1), path);
  });
  return first + masked.join('');
}

/** The address that a text ends in. */
function lastWord(text: string): string {
  return text.split(/[\s<>"',;=]/).at(-1) ?? '';
}
