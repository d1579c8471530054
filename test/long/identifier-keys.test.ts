import fc from 'fast-check';
import { expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { codePoints, differing, texts } from '../support/lib/identifier-keys.ts';
import { describeReal } from '../support/services/real.ts';

const BATCH = 20_000;
const TEXTS = 1_000_000;

describeReal('postgres', 'the keys of identifiers', () => {
  const database = beforeTests(realDatabase);

  it('D3-35: equal the keys of the database for every code point, alone and between letters', {
    timeout: 3_600_000,
  }, async () => {
    const points = [...codePoints()].map((point) => String.fromCodePoint(point));
    for (let at = 0; at < points.length; at += BATCH) {
      const batch = points.slice(at, at + BATCH).flatMap((one) => [one, `a${one}\u0301b`]);
      expect(await differing(database, batch)).toEqual([]);
    }
  });

  it('D3-35: equal the keys of the database for a million random texts', { timeout: 3_600_000 }, async () => {
    for (let done = 0; done < TEXTS; done += BATCH) {
      expect(await differing(database, fc.sample(texts, BATCH))).toEqual([]);
    }
  });
});
