/** A number of RFC 8259, at `lastIndex`. */
export const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

const HEX = /[0-9a-fA-F]{4}/y;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The index of the first character at or after `at` that is not white space (RFC 8259 section 2). */
export function skipSpace(text: string, at: number): number {
  let next = at;
  for (;;) {
    const code = text.charCodeAt(next);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return next;
    next += 1;
  }
}

/**
 * Reads the string whose opening quote is at `start`: the index behind its closing quote, `'open'` when the text ends
 * inside it, `'invalid'` when it holds what RFC 8259 section 7 forbids.
 */
export function scanString(text: string, start: number): number | 'open' | 'invalid' {
  let at = start + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code < 0x20) return 'invalid';
    if (code === BACKSLASH) {
      const width = escapeWidth(text, at);
      if (width === 0) return 'invalid';
      at += width;
    } else at += 1;
  }
  return 'open';
}

/** The characters that a scanned string's `content`, between its quotes, spells; a cut escape at its end is left out. */
export function decodeString(content: string): string {
  return content.includes('\\') ? String(JSON.parse(`"${withoutCutEscape(content)}"`)) : content;
}

function withoutCutEscape(content: string): string {
  let at = content.indexOf('\\');
  while (at !== -1) {
    const end = at + escapeWidth(content, at);
    if (end > content.length) return content.slice(0, at);
    at = content.indexOf('\\', end);
  }
  return content;
}

/** The length of the escape at `at`, also when the text ends inside it; 0 when there is no such escape. */
function escapeWidth(text: string, at: number): number {
  if (at + 1 >= text.length) return 2;
  const letter = text.charAt(at + 1);
  if (letter !== 'u') return '"\\/bfnrt'.includes(letter) ? 2 : 0;
  if (at + 6 > text.length) return 6;
  HEX.lastIndex = at + 2;
  return HEX.test(text) ? 6 : 0;
}
