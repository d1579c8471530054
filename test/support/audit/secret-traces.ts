import fc from 'fast-check';

// Letters that follow each other like this in nothing else that is told.
const MARKER = 'ZQXJKV';
const WINDOW = 5;
const PIECES = Array.from({ length: MARKER.length }, (_, at) => (MARKER + MARKER).slice(at, at + WINDOW));
const TRACE = new RegExp(PIECES.join('|'), 'i');
/** What bodies and addresses show of themselves, so that it can be seen that they are looked through. */
export const SHOWN = 'WVHGW';

/** A secret for a header: any five letters of it in a row are a trace. */
export const plainSecret = fc.integer({ min: 2, max: 6 }).map((times) => MARKER.repeat(times));

/** A secret with what a document, a form or an address would have to spell otherwise. */
export const anySecret = fc
  .array(fc.constantFrom('', '"', '\\', '&', '=', '+', ' ', '%', ';', '{"', '"}', '\n', 'é', '\u{1f511}', "'", ','), {
    minLength: 1,
    maxLength: 4,
  })
  .map((separators) => MARKER + separators.map((separator) => separator + MARKER).join(''));

const endingName = fc
  .tuple(
    fc.constantFrom('', 'client_', 'Access', 'x.', 'new-'),
    fc.constantFrom('password', 'token', 'Secret', '_token', 'Token'),
    fc.boolean(),
  )
  .map(([prefix, ending, isUpper]) => (isUpper ? (prefix + ending).toUpperCase() : prefix + ending));
/** A name whose value is hidden, in any spelling. */
export const secretName = fc.oneof({ weight: 4, arbitrary: endingName }, fc.constantFrom('search', 'Search'));

/** A text with every byte in percent escapes. */
export function percent(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join('');
}

/** The first trace of a secret in a text, with what stands around it, however it is spelled there. */
export function traceIn(text: string): string | undefined {
  for (const spelled of [text, unescaped(text), unpercented(text), decoded(text)]) {
    const match = TRACE.exec(spelled);
    if (match) return spelled.slice(Math.max(0, match.index - 200), match.index + 100);
  }
  return undefined;
}

function unescaped(text: string): string {
  return text.replace(/\\+u([0-9a-f]{4})/gi, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

function unpercented(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** Everything that may be base64. */
function decoded(text: string): string {
  const runs = text.match(/[A-Za-z0-9+/_-]{8,}/g) ?? [];
  return runs.map((run) => Buffer.from(run, 'base64').toString('latin1')).join('\n');
}
