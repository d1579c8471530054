import { decode } from './mask-form.ts';
import { credentialsAt, MASK, maskTokens, TOKEN_START } from './mask-keys.ts';

const CUT_MARK = '…';
const CUT_MARK_BYTES = Buffer.byteLength(CUT_MARK);

/** How often a text is decoded; what is spelled in more escapes than that is hidden. */
const MAX_SPELLINGS = 3;

/** Without any of these a text is shown as it is. */
const SUSPECT = /%|\\u|eyJ|secret|password|token|authorization|bearer|basic/i;
const ESCAPE = /%[0-9a-f]{2}|\\u[0-9a-f]{4}/i;
const UNICODE_ESCAPE = /(?<!\\)\\+u([0-9a-f]{4})/gi;
/** An escape that the end cuts, also where its percent sign is escaped itself. */
const CUT_ESCAPE = /(?:%(?:25)*[0-9a-f]?|(?<!\\)\\+(?:u[0-9a-f]{0,3})?)$/i;
const WORD_END = /[\s,;&?#"'<>]/;
const PIECE_START = /(?=[&?#\s])/;

/**
 * A part of a request's head as a record shows it (its path, its query, the value of a header), in at most `maxBytes` of
 * UTF-8. It is cut before it is masked, so that nobody's head costs more than what is kept. What was cut ends in `…`.
 */
export function maskPart(text: string, maxBytes: number, mask: (text: string) => string): string {
  const kept = cutReadable(text, maxBytes);
  const shown = mask(kept);
  if (kept === text && isWithin(shown, maxBytes)) return shown;
  return cut(shown, maxBytes - CUT_MARK_BYTES) + CUT_MARK;
}

/** Masks what looks like a secret, however it is spelled: from there on everything is dropped. */
export function maskSpelled(text: string): string {
  if (!SUSPECT.test(text)) return text;
  const plain = maskTokens(text);
  const at = credentialsAt(plain);
  const shown = at === -1 ? plain : plain.slice(0, at) + MASK;
  if (!tellsDecoded(shown)) return shown;
  const pieces = shown.split(PIECE_START);
  const told = pieces.findIndex(tellsDecoded);
  return told > 0 ? `${pieces.slice(0, told).join('')}${pieces[told]?.charAt(0)}${MASK}` : MASK;
}

/** Cuts what is too long. At its end no half escape is left, and no word that may be half a token. */
function cutReadable(text: string, maxBytes: number): string {
  if (isWithin(text, maxBytes)) return text;
  const whole = cut(text, maxBytes - CUT_MARK_BYTES).replace(CUT_ESCAPE, '');
  const word = whole.split(WORD_END).at(-1) ?? '';
  return spellingsOf(word).some((spelled) => spelled.includes(TOKEN_START)) ? whole.slice(0, -word.length) : whole;
}

function isWithin(text: string, maxBytes: number): boolean {
  return text.length * 3 <= maxBytes || (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes);
}

function cut(text: string, maxBytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}

function tellsDecoded(text: string): boolean {
  const [, ...decoded] = spellingsOf(text);
  const isDeeper = decoded.length === MAX_SPELLINGS && ESCAPE.test(decoded.at(-1) ?? '');
  return isDeeper || decoded.some((spelled) => credentialsAt(spelled) !== -1 || maskTokens(spelled) !== spelled);
}

/** A text, and what it becomes each time that its escapes (percent signs, `\\u`) are decoded. */
export function spellingsOf(text: string): string[] {
  const spellings = [text];
  for (let last = text; spellings.length <= MAX_SPELLINGS && ESCAPE.test(last); spellings.push(last)) {
    last = decode(last).replace(UNICODE_ESCAPE, (_escape, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
  }
  return spellings;
}
