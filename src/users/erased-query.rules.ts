import { spellingsOf } from '../audit/mask-part.ts';
import { hasWord, readable, TELLING_LENGTH } from './erased-text.rules.ts';

const SHORTEST_PIECE = 3;

/** A letter or a digit that need not be escaped in a URL, or an escape of an escape: a pattern for the database. */
export const PERCENT_LETTER = '%(3[0-9]|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]|25)';

/** Whether a text of any form has one of the identifiers (in lower case), a short one as a word, however it is encoded. */
export function namesUser(text: string, identifiers: readonly string[]): boolean {
  const spellings = spellingsOf(text).map((spelled) => readable(spelled).replaceAll('\\"', '"'));
  return spellings
    .flatMap((spelled) => [spelled, spelled.replaceAll('+', ' ')])
    .some((spelled) =>
      identifiers.some(
        (identifier) =>
          spelled.includes(identifier) && (identifier.length >= TELLING_LENGTH || hasWord(spelled, [identifier])),
      ),
    );
}

/** What of an identifier stands in a query whichever way it is encoded: its longest run of letters that never are. */
export function piecesOf(identifier: string): string[] {
  const longest = (identifier.match(/[a-z0-9]+/g) ?? []).reduce((a, b) => (b.length > a.length ? b : a), '');
  return [longest.length >= SHORTEST_PIECE ? longest : encodeURIComponent(identifier).toLowerCase()];
}
