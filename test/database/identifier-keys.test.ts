import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { identifierKey } from '../../src/lib/identifier-key.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { codePoints, differing, texts } from '../support/lib/identifier-keys.ts';
import { describeReal } from '../support/services/real.ts';

/** Those that are assigned, and some of the others, which all are their own keys: test/long/identifier-keys.test.ts has all. */
const points = [...codePoints()].filter(
  (point) => point % 61 === 0 || /\P{C}|\p{Cf}|\p{Cc}/u.test(String.fromCodePoint(point)),
);

/** Sixteen code points a text. */
function packed(): string[] {
  return Array.from({ length: Math.ceil(points.length / 16) }, (_, at) =>
    String.fromCodePoint(...points.slice(at * 16, at * 16 + 16)),
  );
}

describe('D3-35 D7-11: the key of a text', () => {
  it.each([
    ['ΝΊΚΟΣ@x.gr', 'νίκος@x.gr'],
    ['ΓΙΑΝΝΗΣ', 'γιαννης'],
    ['  Bob\u00a0', 'bob'],
    ['\u200b \ufeffbob', 'bob'],
    ['\u212a\u212b\u2126', 'kåω'],
    ['s\u0323', 'ſ\u0323'],
    ['ǅ', 'Ǆ'],
    ['ა', 'Ა'],
    ['ꭰ', 'Ꭰ'],
    ['ẞ', 'ß'],
    ['I\u0307', 'İ'],
    ['\u1fd3', '\u0390'],
    ['می\u200cخواهم', 'میخواهم'],
  ])('of %j equals that of %j', (one, other) => {
    expect(identifierKey(one)).toBe(identifierKey(other));
  });

  it.each([
    ['ß', 'ss'],
    ['ı', 'i'],
    ['İ', 'i'],
    ['а', 'a'],
    ['ﬁ', 'fi'],
    ['a b', 'ab'],
  ])('of %j differs from that of %j', (one, other) => {
    expect(identifierKey(one)).not.toBe(identifierKey(other));
  });

  it('of a key is the key itself, for assigned code points and random texts', () => {
    const changed = points.map((point) => identifierKey(String.fromCodePoint(point)));
    expect(changed.filter((key) => identifierKey(key) !== key)).toEqual([]);
    fc.assert(fc.property(texts, (text) => identifierKey(identifierKey(text)) === identifierKey(text)));
  });

  it('is the same for canonically equivalent texts, and for texts that differ only in simple letter case', () => {
    const known = texts.filter((text) => !/[\u0897\u{11382}\u{113c2}\u{1611e}\u{1e08f}]/u.test(text));
    fc.assert(
      fc.property(known, (text) => {
        const forms = ['NFC', 'NFD'].map((form) => identifierKey(text.normalize(form)));
        expect(forms).toEqual(Array(2).fill(identifierKey(text)));
      }),
    );
    // A regular expression that ignores case folds by the same table of the Unicode Character Database.
    const folded = points.map((point) => String.fromCodePoint(point)).filter((one) => /\p{L}/u.test(one));
    const others = folded.filter((one) => {
      const key = identifierKey(one);
      return key !== '' && key !== one.normalize() && !new RegExp(`^${key}$`, 'iu').test(one.normalize());
    });
    expect(others).toEqual([]);
  });
});

const compared = (database: () => Parameters<typeof differing>[0]) => {
  it('D3-35: is the same in SQL, for assigned code points and random texts', async () => {
    const all = [...packed(), ...fc.sample(texts, 5_000)];
    for (let at = 0; at < all.length; at += 10_000) {
      expect(await differing(database(), all.slice(at, at + 10_000))).toEqual([]);
    }
  });
};

describeEmbedded('the key in the embedded database', () => {
  const database = beforeTests(embeddedDatabase);
  compared(() => database);
});

describeReal('postgres', 'the key in PostgreSQL', () => {
  const database = beforeTests(realDatabase);
  compared(() => database);

  it('D3-35: is an immutable function', async () => {
    const [row] = await database.db
      .unscoped('test')
      .raw<{ volatile: string }>(
        (sql) => sql`select provolatile as volatile from pg_proc where proname = 'identifier_key'`,
      );
    expect(row).toEqual({ volatile: 'i' });
  });
});
