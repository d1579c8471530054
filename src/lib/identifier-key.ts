import { FOLDED, IGNORED, LATER } from './folding-table.ts';

/** A run of the table: every `step`th code point from `first` to `last`. */
interface Run {
  first: number;
  last: number;
  step: number;
  offset: number;
}

const RUN = /([0-9A-F]+)(?:-([0-9A-F]+))?(?:\/(\d))?(?::(-?\d+))?/g;

function runsOf(table: string): Run[] {
  return Array.from(table.matchAll(RUN), ([, first = '', last = first, step = '1', offset = '0']) => ({
    first: Number.parseInt(first, 16),
    last: Number.parseInt(last, 16),
    step: Number(step),
    offset: Number(offset),
  }));
}

const folded = new Map<string, string>();
for (const { first, last, step, offset } of runsOf(FOLDED)) {
  for (let point = first; point <= last; point += step)
    folded.set(String.fromCodePoint(point), String.fromCodePoint(point + offset));
}

/** Returns the class of the characters of a table, for JavaScript and PostgreSQL alike. */
function classOf(table: string): string {
  const ranges = runsOf(table).map(({ first, last }) => [first, last].map((point) => String.fromCodePoint(point)));
  return `[${ranges.map((range) => range.join('-')).join('')}]`;
}

/** What the white space of Unicode is, in texts of ASCII and in others; `trimmed` removes it. */
const ASCII_BLANKS = '\t\n\v\f\r ';
const BLANKS = `${ASCII_BLANKS}\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000`;
const INVISIBLE = new RegExp(classOf(IGNORED), 'gu');
const RECENT = new RegExp(classOf(LATER), 'u');
const ASCII = /^[\0-\x7f]*$/;
/** More characters than an identifier has: sorting the marks of a longer text would take too long. */
const MOST = 1_024;

const BLANK = /[\p{White_Space}\ufeff]/u;

/**
 * Returns a text without the Unicode white space and byte order marks at its ends. Its time is linear, which that of an
 * expression ending in `+$` is not.
 */
export function trimmed(text: string): string {
  let [start, end] = [0, text.length];
  while (BLANK.test(text.charAt(start))) start += 1;
  while (end > start && BLANK.test(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/**
 * Returns the key by which emails and usernames are compared, searched and locked: without invisible characters and
 * surrounding white space, in NFC and with simple case folding. Texts with equal keys are one identifier. Characters that
 * older versions of Unicode would not normalise leave a text as it is otherwise, so that the key depends on no version.
 */
export function identifierKey(text: string): string {
  if (ASCII.test(text)) return trimmed(text).slice(0, MOST).toLowerCase();
  const visible = firstOf(trimmed(text.replace(INVISIBLE, '')));
  if (RECENT.test(visible)) return fold(visible);
  // Folding can bring letters together that NFC composes.
  return fold(visible.normalize()).normalize();
}

function firstOf(text: string): string {
  return text.length > MOST
    ? Array.from(text.slice(0, 2 * MOST))
        .slice(0, MOST)
        .join('')
    : text;
}

function fold(text: string): string {
  return Array.from(text, (character) => folded.get(character) ?? character).join('');
}

/**
 * The last code points of the blocks that `translate` folds apart, and only in texts with letters to fold: it compares each
 * character with its list from the start.
 */
const BLOCKS = [0x24f, 0x3ff, 0x52f, 0x1eff, 0x10ffff];

/**
 * The same function as a statement for PostgreSQL. It depends on no locale, collation or version of the server. `name` is
 * that of the function.
 */
export function identifierKeySql(name: string): string {
  const letters = [...folded.keys()].filter((letter) => !ASCII.test(letter));
  const folding = BLOCKS.map((last, at) => {
    const block = letters.filter((letter) => isWithin(letter, BLOCKS[at - 1] ?? 0, last)).join('');
    return `if key ~ '[${block}]' then key := translate(key, '${block}', '${fold(block)}'); end if;`;
  });
  return `create function ${name}(text) returns text language plpgsql immutable strict parallel safe as $$
    declare
      key text collate "C" := $1;
      is_composed boolean;
    begin
      if octet_length(key) = char_length(key) then
        return lower(left(btrim(key, '${ASCII_BLANKS}'), ${MOST}));
      end if;
      key := left(btrim(regexp_replace(key, '${classOf(IGNORED)}', '', 'g'), '${BLANKS}'), ${MOST});
      is_composed := key !~ '${classOf(LATER)}';
      if is_composed then
        key := normalize(key);
      end if;
      key := lower(key);
      ${folding.join('\n      ')}
      return case when is_composed then normalize(key) else key end;
    end $$`;
}

function isWithin(letter: string, after: number, last: number): boolean {
  const point = letter.codePointAt(0) ?? 0;
  return point > after && point <= last;
}
