import fc from 'fast-check';
import { describe, expect, inject, it, vi } from 'vitest';
import { maskBody, maskQuery } from '../../src/audit/mask.ts';
import { maskJson } from '../../src/audit/mask-json.ts';
import { maskValues } from '../../src/audit/mask-values.ts';
import { SECRETS } from '../../src/audit/masked-names.ts';
import { JWK_MEMBERS } from '../../src/audit/secret-names.ts';
import { JsonScanner } from '../../src/lib/json-scanner.ts';
import { percent } from '../support/audit/secret-traces.ts';

const RUNS = inject('isThorough') ? 200 : 30;
const LIMIT = 65_536;
const FORM = 'application/x-www-form-urlencoded';

/** A text as it is sent, and as it is recorded. */
type Pair = readonly [sent: string, kept: string];

// Letters that occur in no key, number or other value below, so that any trace of a secret can be seen.
const secret = fc.stringMatching(/^(?:ZQ){1,6}$/);
const plainString = fc
  .string({ unit: 'grapheme', maxLength: 12 })
  .filter((text) => !text.includes('Z') && !text.includes('Q'));
const plainKey = fc.oneof(
  fc.constantFrom('a', 'token_type'),
  // A private member of a JWK is masked where the object is cut off, because its `kty` may be missing.
  plainString.filter((key) => !SECRETS.isSecretKey(key) && !Object.hasOwn(JWK_MEMBERS, key.toLowerCase())),
);
const secretKey = fc
  .tuple(
    fc.constantFrom('', 'client_', 'Access', 'x.'),
    fc.constantFrom('password', 'token', 'Secret', '_token', 'Token'),
    fc.infiniteStream(fc.boolean()),
  )
  .map(([prefix, ending, upper]) =>
    [...(prefix + ending)].map((c) => (upper.next().value ? c.toUpperCase() : c)).join(''),
  );
const anySecretKey = fc.oneof(
  { weight: 4, arbitrary: secretKey },
  { weight: 1, arbitrary: fc.constantFrom('Authorization', 'search', 'Search') },
);
const secretValue = fc.oneof(
  secret,
  secret.map((text) => ({ inner: [text, { deep: text, token: text }] })),
  secret.map((text) => [[text], text, '}"]', '\\']),
  secret.map((text) => JSON.stringify({ text })),
  fc.constantFrom(0, -12.5e30),
);
const scalar = fc.oneof(
  plainString,
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
);

/** A JSON string, of which every so many letters are spelled as escapes, which a reader of JSON undoes. */
function spelled(text: string, every: number): string {
  let letter = 0;
  return JSON.stringify(text).replace(/\\.|[a-zA-Y]/gs, (match) => {
    letter += 1;
    if (match.length > 1 || letter % every !== 0) return match;
    return `\\u${match.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

const key = (name: fc.Arbitrary<string>) =>
  fc.tuple(name, fc.integer({ min: 1, max: 12 })).map((one) => spelled(...one));

const SPACES = ['', ' ', '\n\t'];

/** The text of a JSON object, some of whose members are secrets. Names repeat, and documents stand in strings. */
function objects(spaces = SPACES): fc.Arbitrary<Pair> {
  const space = fc.constantFrom(...spaces);
  function joined([open, close]: readonly string[], items: readonly Pair[], gap: string): Pair {
    const text = (at: 0 | 1) => `${open}${gap}${items.map((item) => item[at]).join(`${gap},${gap}`)}${gap}${close}`;
    return [text(0), text(1)];
  }
  const hidden = fc.tuple(key(anySecretKey), secretValue, space).map(([name, value, gap]): Pair => {
    return [
      `${name}${gap}:${gap}${JSON.stringify(value, undefined, spaces === SPACES ? gap : '')}`,
      `${name}${gap}:${gap}"***"`,
    ];
  });
  return fc
    .letrec<{ value: Pair; object: Pair }>((tie) => {
      const shown = fc.tuple(key(plainKey), tie('value'), space).map(([name, value, gap]): Pair => {
        return [`${name}${gap}:${value[0]}`, `${name}${gap}:${value[1]}`];
      });
      const member = fc.oneof({ depthSize: 'small' }, shown, hidden);
      return {
        value: fc.oneof(
          { depthSize: 'small', maxDepth: 4, withCrossShrink: true },
          scalar.map((value): Pair => [JSON.stringify(value), JSON.stringify(value)]),
          fc.tuple(fc.array(tie('value'), { maxLength: 3 }), space).map((list) => joined(['[', ']'], ...list)),
          tie('object'),
          tie('object').map(([sent, kept]): Pair => [JSON.stringify(sent), JSON.stringify(kept)]),
        ),
        object: fc.tuple(fc.array(member, { maxLength: 3 }), space).map((all) => joined(['{', '}'], ...all)),
      };
    })
    .object.filter(([sent]) => !sent.includes('\\'.repeat(7))); // what is nested in more strings is replaced whole
}

const DOCUMENT = objects();

function mask(body: string | Buffer, maxBytes = LIMIT, truncated = false, type = 'application/json'): string {
  return maskBody(type, Buffer.from(body), { maxBytes, truncated }) ?? '';
}

describe('masking any JSON document', () => {
  it.each(['application/json', 'application/problem+json', 'text/plain', FORM, ''])(
    '1-06, D2-08: as %j, masks the values of secret names and nothing else, and masking twice changes nothing',
    (type) => {
      const property = fc.property(DOCUMENT, ([sent, kept]) => {
        expect(mask(sent, LIMIT, false, type)).toBe(kept);
        expect(mask(kept, LIMIT, false, type)).toBe(kept);
        JSON.parse(kept);
      });
      fc.assert(property, { numRuns: RUNS });
    },
  );

  it('1-06, D2-08, D2-09: what is recorded of a cut body is a prefix of the whole masked body', () => {
    const property = fc.property(DOCUMENT, ([sent, kept]) => {
      const body = Buffer.from(sent);
      const all = Buffer.byteLength(kept);
      // Every cut of most documents; of the few long ones some hundred.
      const step = Math.ceil(body.length / 400);
      for (let length = body.length; length >= 0; length -= step) {
        const shown = [mask(body.subarray(0, length), LIMIT, true), mask(body, length)];
        expect(shown.filter((text) => !kept.startsWith(text))).toEqual([]);
        expect(shown.filter((text) => text.includes('Z'))).toEqual([]);
        expect(Buffer.byteLength(shown[1] ?? '')).toBeLessThanOrEqual(length);
        expect(Buffer.byteLength(shown[1] ?? '')).toBeGreaterThan(Math.min(length, all) - 4 * 11);
      }
    });
    fc.assert(property, { numRuns: RUNS / 2 });
  });

  it('D2-08: records nothing after the first syntax error', () => {
    const property = fc.property(DOCUMENT, fc.nat(), ([sent, kept], at) => {
      const place = at % (sent.length + 1);
      const shown = mask(`${sent.slice(0, place)}\u0001${sent.slice(place)}`);
      // The mask of a secret whose value never came may have lost a space before it.
      expect(kept.replace(/\s/g, '').startsWith(shown.replace(/\s/g, ''))).toBe(true);
      expect(shown).not.toContain('Z');
    });
    fc.assert(property, { numRuns: RUNS * 3 });
  });

  it.each<[string, (document: string) => string]>([
    ['before it', (document) => `[1,,${document}]`],
    ['after it', (document) => `${document} or so`],
    ['in a name', (document) => `{x:1, "y":${document}}`],
    ['between two', (document) => `${document}\n${document}`],
    ['at its end', (document) => document.slice(0, -1)],
  ])('D2-08: with a syntax error %s records no secret in a string, a form, an event or a text', (_where, broken) => {
    const property = fc.property(DOCUMENT, ([sent]) => {
      const text = broken(sent);
      const event = text.replaceAll(/^/gm, 'data: ');
      const shown = [
        mask(JSON.stringify({ text })),
        mask(`a=1&b=${encodeURIComponent(text)}`, LIMIT, false, FORM),
        mask(`${event}\n\n`, LIMIT, false, 'text/event-stream'),
        mask(text, LIMIT, false, 'text/plain'),
      ];
      expect(
        shown.filter((one) => decodeURIComponent(one.replaceAll(/%(?![\dA-F]{2})/g, '%25')).includes('Z')),
      ).toEqual([]);
    });
    fc.assert(property, { numRuns: RUNS });
  });

  it('D2-08, D2-21: masks each line of NDJSON and each event of a stream', () => {
    const all = fc.array(fc.tuple(objects(['', ' ']), DOCUMENT), { maxLength: 4 });
    const property = fc.property(all, (documents) => {
      const lines = (at: 0 | 1) => documents.map(([line]) => `${line[at]}\n`).join('\n');
      expect(mask(lines(0), LIMIT, false, 'application/x-ndjson')).toBe(lines(1));
      const data = (text: string) => text.replaceAll(/^/gm, 'data: ');
      const events = (at: 0 | 1) =>
        documents.map(([, one]) => `:\n\nevent: next\nid: 7\n${data(one[at])}\n\n`).join('');
      expect(mask(events(0), LIMIT, false, 'text/event-stream')).toBe(events(1));
    });
    fc.assert(property, { numRuns: RUNS });
  });
});

describe('masking any other body', () => {
  it('D2-09: the record has at most maxBytes and ends at a character boundary, for any bytes', () => {
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      DOCUMENT.map(([sent]) => Buffer.from(sent)),
    );
    const property = fc.property(body, fc.nat({ max: 100 }), (bytes, maxBytes) => {
      for (const type of ['application/json', 'text/plain', 'text/event-stream', 'application/x-ndjson', FORM]) {
        const text = mask(bytes, maxBytes, true, type);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes);
        expect(text.isWellFormed()).toBe(true);
        expect(text).not.toContain('\0');
      }
    });
    fc.assert(property, { numRuns: RUNS * 1.5 });
  });

  it('D2-08: a text is cut at its first secret, and a stream has no line with a secret', () => {
    const assignment = fc.tuple(anySecretKey, fc.constantFrom(':', ' = ', '": "', "\\'=\\'", '[]='), secret);
    const property = fc.property(
      fc.constantFrom('', 'a ', 'no [token] "'),
      assignment,
      (before, [name, sign, value]) => {
        const text = `${before}${name}${sign}${value}`;
        expect(mask(text, LIMIT, false, 'text/plain')).toBe(`${before}${name}${sign.replace(/(?<=[:=]).*/, '')}***`);
        const stream = mask(
          `id: ${text}\nnot: ${text}\n:${text}\ndata: ${text}\n\n`,
          LIMIT,
          false,
          'text/event-stream',
        );
        expect(stream).not.toContain('Z');
      },
    );
    fc.assert(property, { numRuns: RUNS });
  });
});

describe('masking any form or query', () => {
  const spelling = fc.constantFrom(percent, encodeURIComponent, (name: string) => name.replace('a', '%61'));
  const name = fc
    .tuple(
      fc.oneof(
        fc.tuple(anySecretKey, fc.constantFrom('$', 'user[$]', 'a.$', '$[]', '$.b')),
        fc.tuple(secretKey, fc.constant('a b $')),
      ),
      spelling,
    )
    .map(([[one, place], spell]) => spell(place.replace('$', one)).replaceAll('%20', '+'));
  const hidden = fc.tuple(name, secret).map(([one, value]): Pair => [`${one}=${value}=%22${value}`, `${one}=***`]);
  const pair = fc.oneof(
    hidden,
    hidden.map(([sent, kept]): Pair => [`a=1;${sent};b=2`, `a=1;${kept}`]),
    fc.constantFrom('a=1', 'grant_type=password', 'token', '', 'b=%zz', 'c=d=+e;2').map((one): Pair => [one, one]),
    plainString.map((text): Pair => [`x=${encodeURIComponent(text)}`, `x=${encodeURIComponent(text)}`]),
    DOCUMENT.map(([sent, kept]): Pair => [`v=${encodeURIComponent(sent)}`, `v=${encodeURIComponent(kept)}`]),
  );
  const pairs = fc.array(pair, { minLength: 1, maxLength: 5 }).map((all): Pair => {
    return [all.map(([sent]) => sent).join('&'), all.map(([, kept]) => kept).join('&')];
  });

  it('1-06, D2-08: masks the values of secret names and nothing else, and masking twice changes nothing', () => {
    const property = fc.property(pairs, ([sent, kept]) => {
      expect([mask(sent, LIMIT, false, FORM), mask(kept, LIMIT, false, FORM)]).toEqual([kept, kept]);
      expect([maskQuery(`?${sent}`), maskQuery(sent, '/v1/accounts')]).toEqual([`?${kept}`, kept]);
    });
    fc.assert(property, { numRuns: RUNS * 2 });
  });

  it('D2-08: records no part of a secret, wherever it is cut', () => {
    const property = fc.property(pairs, ([sent]) => {
      const body = Buffer.from(sent);
      const step = Math.ceil((body.length + 1) / 200);
      for (let length = body.length; length >= 0; length -= step) {
        expect(mask(body.subarray(0, length), LIMIT, true, FORM)).not.toContain('Z');
      }
    });
    fc.assert(property, { numRuns: RUNS / 2 });
  });
});

describe('a JSON body that is searched string by string', () => {
  const piece = fc.oneof(
    anySecretKey,
    secret,
    fc.constantFrom('name', 'loc', 'value', 'input', 'kty', 'd', 'pin', 'seed', 'otp1', 'Bearer', 'a', 'tot'),
    fc.constantFrom(':', '=', '.', ';', '[', ', ', ' ', '-', '/', '{', 'T', '08', ':30', '2026-11-28T10:20:30.123Z'),
  );
  const name = fc.array(piece, { minLength: 1, maxLength: 2 }).map((pieces) => pieces.join(''));
  const value = fc.oneof(
    fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join('')),
    fc.integer({ min: 0, max: 99_999 }),
    fc.constant(null),
  );
  const list = fc.array(value, { maxLength: 3 });
  const bodies = fc.array(fc.dictionary(name, fc.oneof(value, list, fc.array(list, { maxLength: 2 }))), {
    maxLength: 3,
  });

  it('D1-18: is recorded as if every string had been masked, also where a quick search finds no secret', () => {
    fc.assert(
      fc.property(bodies, fc.constantFrom(undefined, 1), (body, indent) => {
        const text = JSON.stringify(body, undefined, indent);
        fc.pre(!text.includes('\\'));
        const how = { maxBytes: LIMIT, truncated: false, wellFormed: true };
        expect(maskBody('application/json', text, how)).toBe(maskJson(maskValues(text, true)).text);
      }),
      { numRuns: RUNS * 20 },
    );
  });

  it('D1-18: with escapes nothing is recorded of it that is hidden when every string is masked', () => {
    const escaped = fc.oneof(
      piece,
      secret.map((text) => JSON.stringify({ text, token: text })),
      fc.constantFrom(
        '\n',
        '"',
        '\\',
        '\u0001',
        '%3d',
        'p%61ssword',
        '\\u0070in',
        '\\u003a',
        '[["otp","ZQ"]]',
        '{"kty":"EC","d":"ZQ"}',
      ),
    );
    const text = fc.array(escaped, { maxLength: 6 }).map((pieces) => pieces.join(''));
    const values = fc.oneof(text, fc.array(text, { maxLength: 2 }), fc.array(fc.array(text, { maxLength: 2 })));
    fc.assert(
      fc.property(fc.dictionary(fc.oneof(name, text), values, { maxKeys: 4 }), (body) => {
        const json = JSON.stringify(body);
        const shown = maskBody('application/json', json, { maxBytes: LIMIT, truncated: false, wellFormed: true });
        const whole = maskJson(maskValues(json, true)).text;
        expect(shown?.split('ZQ').length).toBeLessThanOrEqual(whole.split('ZQ').length);
      }),
      { numRuns: RUNS * 20 },
    );
  });

  it.each([
    ['without escapes', 'tot', 0],
    ['with escapes', 'a "b"\n%20c', 0],
    ['with an assignment', 'otp: "ZQ"\n', 1],
  ])(
    'D1-18: is read token by token only where a string may hold a secret, however deep it is nested: %s',
    (_, text, reads) => {
      const page = { edges: [{ node: { at: '2026-11-28T10:20:30.123Z', wallets: { edges: [{ node: { text } }] } } }] };
      const deep = Array.from({ length: 12 }).reduce((inner) => [{ inner }], page);
      const read = vi.spyOn(JsonScanner.prototype, 'next');
      const how = { maxBytes: LIMIT, truncated: false, wellFormed: true };
      const shown = maskBody('application/json', JSON.stringify(deep), how);
      expect([shown === JSON.stringify(deep), Math.min(read.mock.contexts.length, 1)]).toEqual([reads === 0, reads]);
      read.mockRestore();
    },
  );
});
