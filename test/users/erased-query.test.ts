import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { namesUser, piecesOf } from '../../src/domain/users/erased-text.rules.ts';

const ENCODINGS: Record<string, (text: string) => string> = {
  'percent signs': (text) => `email=${encodeURIComponent(text)}`,
  'small percent signs': (text) => `email=${encodeURIComponent(text).replace(/%../g, (code) => code.toLowerCase())}`,
  'a form': (text) => new URLSearchParams({ email: text, limit: '1' }).toString(),
  'every letter': (text) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
};

describe('the query of a URL', () => {
  it.each(Object.entries(ENCODINGS))('D7-09: tells an identifier in %s', (_name, encoded) => {
    const parts = fc.string({ unit: fc.constantFrom('ann', 'Lee7', 'é', '+', '@', '.', ' ', "'"), minLength: 1 });
    fc.assert(
      fc.property(parts, (part) => {
        const identifier = `${part}ann.lee`;
        expect(namesUser(encoded(identifier), [identifier.toLowerCase()])).toBe(true);
      }),
    );
  });

  it('D7-09: is looked for by what no encoding changes, and another one tells nothing', () => {
    expect(piecesOf('ann.lee+7@example.com')).toEqual(['example']);
    expect(piecesOf('é@ü')).toEqual(['%c3%a9%40%c3%bc']);
    expect(namesUser('email=bob%40example.com&x=%zz', ['ann@example.com'])).toBe(false);
  });
});
