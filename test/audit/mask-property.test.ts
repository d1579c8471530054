import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { maskBody } from '../../src/audit/mask.ts';
import { isSecretKey } from '../../src/audit/mask-keys.ts';

// Letters that occur in no key, number or other value below, so that any trace of a secret can be seen.
const secret = fc.stringMatching(/^(?:ZQ){1,6}$/);
const plainString = fc
  .string({ unit: 'grapheme', maxLength: 12 })
  .filter((text) => !text.includes('Z') && !text.includes('Q'));
const plainKey = plainString.filter((key) => !isSecretKey(key));
const secretKey = fc
  .tuple(
    fc.constantFrom('', 'client_', 'Access', 'x.'),
    fc.constantFrom('password', 'token', 'Secret', '_token', 'Token'),
    fc.infiniteStream(fc.boolean()),
  )
  .map(([prefix, ending, upper]) =>
    [...(prefix + ending)].map((c) => (upper.next().value ? c.toUpperCase() : c)).join(''),
  );

const scalar = fc.oneof(
  plainString,
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
);
const secretValue = fc.oneof(
  secret,
  secret.map((text) => ({ inner: [text, { deep: text }] })),
  secret.map((text) => [[text], text, '}"]']),
  secret.map((text) => JSON.stringify({ text })),
);

const RUNS = inject('isThorough') ? 200 : 20;

/** A JSON value; with `secrets`, some members are secrets. Documents also stand in strings. */
function document(secrets: boolean): fc.Arbitrary<unknown> {
  return fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      scalar,
      fc.array(tie('value'), { maxLength: 3 }),
      tie('object'),
      tie('object').map((value) => JSON.stringify(value)),
      tie('object').map((value) => JSON.stringify(value, undefined, ' ')),
    ),
    object: fc
      .tuple(
        fc.array(fc.tuple(plainKey, tie('value')), { maxLength: 3 }),
        secrets ? fc.array(fc.tuple(secretKey, secretValue), { maxLength: 2 }) : fc.constant([]),
        fc.array(fc.tuple(plainKey, tie('value')), { maxLength: 2 }),
      )
      .map((members) => Object.fromEntries(members.flat())),
  })).object;
}

/** Spells some letters as escapes, which a reader of JSON undoes. */
function escapeSome(json: string, every: number): string {
  let letter = 0;
  return json.replace(/\\.|[a-zA-Y]/gs, (match) => {
    if (match.length > 1 || /[a-z]/.test(match) === false) return match;
    letter += 1;
    const isPlace = letter % every === 0;
    return isPlace ? `\\u${match.charCodeAt(0).toString(16).padStart(4, '0')}` : match;
  });
}

function mask(body: string | Buffer, maxBytes = 65_536, truncated = false): string {
  return maskBody('application/json', Buffer.from(body), { maxBytes, truncated }) ?? '';
}

describe('masking, for any document', () => {
  it('1-06, D2-08: no part of a secret is kept, wherever the capture or the record is cut', () => {
    const property = fc.property(document(true), fc.nat({ max: 7 }), (value, every) => {
      const json = JSON.stringify(value);
      const body = Buffer.from(every < 3 ? json : escapeLiteralSafe(json, every));
      // Every cut of most documents; of the few long ones some hundred.
      const step = Math.ceil(body.length / 400);
      const leaks: string[] = [];
      for (let length = body.length; length >= 0; length -= step) {
        leaks.push(mask(body.subarray(0, length), 65_536, true), mask(body, length));
      }
      expect(leaks.filter((text) => text.includes('Z'))).toEqual([]);
    });
    fc.assert(property, { numRuns: RUNS / 2.5 });
  });

  it('D2-08: a document without secrets comes back unchanged, and so does every prefix of its characters', () => {
    const property = fc.property(document(false), fc.nat(), (value, at) => {
      const json = JSON.stringify(value);
      fc.pre(!json.includes('\\'.repeat(15))); // a document in the fifth string of a string is replaced whole
      expect(mask(json)).toBe(json);
      const body = Buffer.from(json);
      expect(json.startsWith(mask(body.subarray(0, at % (body.length + 1)), 65_536, true))).toBe(true);
    });
    fc.assert(property, { numRuns: RUNS });
  });

  it('D2-08: a masked document is JSON still, and masking it again changes nothing', () => {
    const property = fc.property(document(true), (value) => {
      const once = mask(JSON.stringify(value));
      expect(() => JSON.parse(once)).not.toThrow();
      expect(mask(once)).toBe(once);
    });
    fc.assert(property, { numRuns: RUNS });
  });

  it('D2-09: the record is at most maxBytes of whole characters, of any bytes', () => {
    const property = fc.property(
      fc.oneof(fc.uint8Array({ maxLength: 200 }), document(true)),
      fc.nat({ max: 100 }),
      (value, maxBytes) => {
        const body = value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(JSON.stringify(value));
        for (const type of [
          'application/json',
          'text/plain',
          'text/event-stream',
          'application/x-ndjson',
          'application/x-www-form-urlencoded',
        ]) {
          const text = maskBody(type, body, { maxBytes, truncated: true }) ?? '';
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes);
          expect(text.isWellFormed()).toBe(true);
        }
      },
    );
    fc.assert(property, { numRuns: RUNS * 1.5 });
  });

  it('D2-08: no secret of a form is kept, however its key is spelled and wherever it is cut', () => {
    const pair = fc.tuple(secretKey, secret, fc.boolean()).map(([key, value, encode]) => {
      const name = encode
        ? [...Buffer.from(key)].map((byte) => `%${byte.toString(16)}`).join('')
        : encodeURIComponent(key);
      return `${name}=${value}`;
    });
    const property = fc.property(
      fc.array(fc.oneof(pair, fc.constant('a=1'), fc.constant('grant_type=password')), { maxLength: 5 }),
      (pairs) => {
        const body = Buffer.from(pairs.join('&'));
        for (let length = 1; length <= body.length; length += 1) {
          const text = maskBody('application/x-www-form-urlencoded', body.subarray(0, length), {
            maxBytes: 999,
            truncated: true,
          });
          expect(text).not.toContain('Z');
        }
      },
    );
    fc.assert(property, { numRuns: RUNS / 2 });
  });
});

/** Escapes letters inside strings only: the literals true, false, null and exponents stay. */
function escapeLiteralSafe(json: string, every: number): string {
  return json.replace(/"(?:[^"\\]|\\.)*"/gs, (text) => escapeSome(text, every));
}
