import fc from 'fast-check';
import { identifierKey } from '../../../src/lib/identifier-key.ts';
import type { Database } from '../../../src/platform/database/open-database.ts';

/** Every code point that a text in the database can have. */
export function* codePoints(): Generator<number> {
  for (let point = 1; point <= 0x10ffff; point += 1) if (point < 0xd800 || point > 0xdfff) yield point;
}

/** Returns the texts of which the database makes another key than TypeScript does. */
export async function differing({ db }: Pick<Database, 'db'>, texts: readonly string[]): Promise<string[]> {
  const rows = await db.unscoped('test').raw<{ key: string }>(
    (sql) => sql`
        select identifier_key(text) as key
        from json_array_elements_text(${JSON.stringify(texts)}::json) with ordinality as t (text, at) order by at`,
  );
  return texts.filter((text, at) => rows[at]?.key !== identifierKey(text));
}

/** Characters that fold, compose, are reordered, are invisible or blank, or nearly are. */
const TRICKY = [
  ...['a', 'A', 'z', '@', '.', ' ', '\t', '\u00a0', '\u0085', '\u2003', '\u3000', 'ß', 'ẞ', 'ı', 'İ', 'I', 'i'],
  ...['σ', 'ς', 'Σ', 'ΐ', '\u1fd3', '\u0345', 'ᾳ', 'ᾼ', 'α', 'Α', 'ſ', '\u1e9b', 'ﬅ', 'ﬆ', 'µ', 'K', 'Å', 'Ω', 'ǅ'],
  ...['Ა', 'Ꭰ', 'ꭰ', 'ᏸ', '𐐀', '𞤀', '\u0300', '\u0301', '\u0307', '\u0308', '\u0323', '\u031b', '\u0334', '\u3099'],
  ...['か', '\u1100', '\u1161', '\u11a8', '가', '\u0958', '\u093c', '\u0915', '\u200b', '\u200c', '\u200d', '\u200e'],
  ...['\u202a', '\u2066', '\u00ad', '\u2060', '\ufeff', '\u061c', '\u034f', '\ufe0f', '\u{e0001}', '\u{11382}'],
  ...['\u{113c2}', '\u{1e08f}', '\u0897', '\u{1611e}', '😀', '\u{10ffff}', '\u{e000}', '\u0378'],
];

/** Texts of tricky characters, and of any. */
export const texts = fc.oneof(
  fc.array(fc.constantFrom(...TRICKY), { maxLength: 12 }).map((characters) => characters.join('')),
  fc.string({ unit: 'binary', maxLength: 24 }).map((text) => text.replaceAll('\0', '')),
);
