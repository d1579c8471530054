import { decodeUtf8, Utf8Error } from './json.ts';

/**
 * The parameters of an `application/x-www-form-urlencoded` body; one without a value counts as absent (RFC 6749
 * section 3.1). Undefined where a name is repeated, an escape is malformed, or the text is not UTF-8.
 */
export function parseForm(bytes: Uint8Array): Record<string, string> | undefined {
  const text = utf8Of(bytes);
  const given = new Map<string, string>();
  for (const pair of text?.split('&') ?? []) {
    if (pair === '') continue;
    const [name, value] = splitOnce(pair, '=').map(decodeFormPart);
    if (name === undefined || value === undefined || given.has(name)) return undefined;
    given.set(name, value);
  }
  if (text === undefined) return undefined;
  return Object.fromEntries([...given].filter(([, value]) => value !== ''));
}

/** A form-encoded part: `+` is a space, `%XX` a byte of UTF-8. Undefined where that is malformed. */
export function decodeFormPart(part: string): string | undefined {
  try {
    return decodeURIComponent(part.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/** What stands before and behind the first separator; nothing behind where there is none. */
export function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)];
}

function utf8Of(bytes: Uint8Array): string | undefined {
  try {
    return decodeUtf8(bytes);
  } catch (error) {
    if (error instanceof Utf8Error) return undefined;
    throw error;
  }
}
