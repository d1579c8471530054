import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  CALLER_LIMITS,
  decodeUtf8,
  ExactNumber,
  hasForbiddenText,
  integerOf,
  JsonError,
  JsonLimitError,
  parseInput,
  parseJson,
  TEXT_LIMITS,
  Utf8Error,
} from '../../src/lib/json.ts';

describe('numbers of a JSON text', () => {
  it.each([
    '9007199254740993',
    '18446744073709551615',
    '-9007199254740993',
    '0.1234567890123456789',
    '18446744073709551615.0',
    '1e400',
    '-1E+400',
    '1e-400',
    '123456789012345678901234567890123456789012345678901234567890123456789012345678',
  ])('2.7-05: %s, which a double would change, is kept as received', (literal) => {
    const parsed = parseJson(`{"value": [${literal}]}`);
    expect(parsed).toEqual({ value: [new ExactNumber(literal)] });
    expect(JSON.stringify(parsed)).toBe(`{"value":[${literal}]}`);
    expect(parseJson(literal)).toEqual(new ExactNumber(literal));
    expect(parseJson(`[\n${literal},1]`)).toEqual([new ExactNumber(literal), 1]);
  });

  it.each([
    '0',
    '-0',
    '0.1',
    '1e3',
    '1.50',
    '9007199254740991',
    '9007199254740992',
    '1e23',
    '0.30000000000000004',
    '5e-324',
  ])('%s, which a double represents exactly, is parsed as a number', (literal) =>
    expect(parseJson(`[${literal}]`)).toEqual([Number(literal)]),
  );

  it('every decimal literal is read and written as the same decimal', () => {
    const digits = fc.stringMatching(/^[0-9]{1,25}$/);
    const literal = fc
      .tuple(
        fc.constantFrom('', '-'),
        fc.stringMatching(/^(0|[1-9][0-9]{0,24})$/),
        fc.option(digits),
        fc.integer({ min: -330, max: 330 }),
      )
      .map(([sign, whole, fraction, power]) => `${sign}${whole}${fraction === null ? '' : `.${fraction}`}e${power}`);
    fc.assert(
      fc.property(literal, (text) => {
        const value = parseJson(text);
        const kept = value instanceof ExactNumber ? value.literal : String(value);
        expect(scaled(kept)).toBe(scaled(text));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('JSON texts that are accepted', () => {
  it('are parsed as JSON.parse does, for any text', () => {
    const long = '12345678901234567890';
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), (json) => {
        expect(parseJson(`[${long}, ${json}]`)).toEqual([new ExactNumber(long), JSON.parse(json)]);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['a number inside a text', '{"a": "\\" ,12345678901234567890\\\\", "b": 12345678901234567890}'],
    ['a number inside a name', '{"\\\\": 1, ",12345678901234567890": 12345678901234567890}'],
    ['a member named __proto__', '{"__proto__": {"a": 12345678901234567890}}'],
  ])('%s is unchanged', (_, json) => {
    const expected = JSON.parse(json.replace(/: 12345678901234567890/g, ': "LONG"'));
    const members = JSON.parse(JSON.stringify(parseJson(json), (_key, value) => (isRaw(value) ? 'LONG' : value)));
    expect(JSON.stringify(members)).toBe(JSON.stringify(expected));
  });

  it('the last of several members with one name is used', () => {
    expect(parseJson('{"a": 12345678901234567890, "a": 2}')).toEqual({ a: 2 });
    expect(parseJson('{"a": 2, "a": 12345678901234567890}')).toEqual({ a: new ExactNumber('12345678901234567890') });
  });

  it('no permitted depth of nesting overflows the stack, with or without a long number', () => {
    const depth = TEXT_LIMITS.levels;
    for (const core of ['1', '12345678901234567890']) {
      expect(Array.isArray(parseJson('['.repeat(depth) + core + ']'.repeat(depth)))).toBe(true);
    }
  });

  it.each([
    '',
    '{',
    '01',
    '1.',
    '.5',
    '+1',
    'NaN',
    '{12345678901234567890: 1}',
    '[1e]',
    "'a'",
    '[-]',
    '1234567890123456789x',
  ])('rejects %j with a SyntaxError, as JSON.parse does', (text) => expect(() => parseJson(text)).toThrow(SyntaxError));
});

describe('integerOf', () => {
  it.each<[string, bigint | undefined]>([
    ['1', 1n],
    ['1.0', 1n],
    ['1e3', 1000n],
    ['-0', 0n],
    ['0e999999999', 0n],
    ['1e23', 10n ** 23n],
    ['18446744073709551615', 18446744073709551615n],
    ['18446744073709551615.000', 18446744073709551615n],
    ['1844674407370955161.5e1', 18446744073709551615n],
    ['-9007199254740993', -9007199254740993n],
    ['1.5', undefined],
    ['18446744073709551615.5', undefined],
    ['1e-400', undefined],
    ['1e999999999999', undefined],
    ['"1"', undefined],
    ['true', undefined],
    ['null', undefined],
    ['[1]', undefined],
  ])('2.7-05: reads %s as %s', (json, integer) => expect(integerOf(parseJson(json))).toBe(integer));

  it('is undefined for values that JSON cannot represent', () => {
    expect([NaN, Infinity, undefined].map(integerOf)).toEqual([undefined, undefined, undefined]);
  });
});

describe('text', () => {
  it('decodes UTF-8 and leaves out a leading byte order mark', () => {
    expect(decodeUtf8(Buffer.from('\u{FEFF}{"a": "ü𝄞"}'))).toBe('{"a": "ü𝄞"}');
  });

  it.each(['ff', 'c0af', 'eda080', 'f4908080', 'e282'])('throws Utf8Error for the bytes %s', (hex) => {
    expect(() => decodeUtf8(Buffer.from(hex, 'hex'))).toThrow(Utf8Error);
  });

  it.each<[string, boolean]>([
    ['', false],
    ['ü𝄞\u0001\uFFFD', false],
    ['a\0b', true],
    ['a\uD834', true],
    ['\uDD1Ea', true],
  ])('D2-22: U+0000 and lone surrogates are forbidden in %j: %s', (text, forbidden) => {
    expect(hasForbiddenText(text)).toBe(forbidden);
  });
});

/** The decimal as an integer of 10^-400. */
function scaled(literal: string): bigint {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)\.?(\d*)(?:e\+?(-?\d+))?$/i.exec(literal) ?? [];
  return BigInt(sign + whole + fraction) * 10n ** BigInt(400 + Number(power) - fraction.length);
}

function isRaw(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'rawJSON' in value;
}

describe('a text that is not JSON', () => {
  it.each([
    ['{', 'line 1 column 2'],
    ['{"a":1,}', 'line 1 column 8'],
    ['[1 2]', 'line 1 column 4'],
    ['{"a":\n  1\n  "b":2}', 'line 3 column 3'],
    ['{"a":1}x', 'line 1 column 8'],
    ['{"a":NaN}', 'line 1 column 6'],
    ['{"a":\n\n\thot}', 'line 3 column 2'],
    ['[[], [ ], {}, ,1]', 'line 1 column 15'],
    ['[1,]', 'line 1 column 4'],
    ['{"a,:[ b":"\\":x","c":}', 'line 1 column 22'],
    ['{"x (line 9 column 9)":y, "(line 9 column 9)', 'line 1 column 24'],
    ['tru', 'line 1 column 1'],
    ['{"a":', 'line 1 column 6'],
    ['[', 'line 1 column 2'],
  ])('D2-13: %j is malformed at %s', (text, place) => {
    expect(() => parseJson(text)).toThrow(new JsonError(`must be JSON, but is malformed at ${place}`));
  });

  it.each(['', ' \r\n\t'])('D2-13: %j is empty', (text) => {
    expect(() => parseJson(text)).toThrow(new JsonError('must be JSON, but is empty'));
  });

  it('D2-13: an error message never quotes the text', () => {
    const told = /^must be JSON, but is (?:empty|malformed at line \d+ column \d+)$/;
    const inserted = fc.tuple(fc.json(), fc.nat(), fc.constantFrom('x', ',', ']', '}', ':', '"', '\n', '\\', "'"));
    fc.assert(
      fc.property(inserted, ([json, at, extra]) => {
        const text = `${json.slice(0, at % (json.length + 1))}${extra}${json.slice(at % (json.length + 1))}`;
        try {
          parseJson(text);
        } catch (error) {
          expect(error).toBeInstanceOf(JsonError);
          expect(String((error as Error).message)).toMatch(told);
        }
      }),
    );
  });
});

function levelsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(levelsOf));
}

/** Whether a text exceeds the limits, whatever else is wrong with it. */
function isBeyond(text: string, { levels = 500_000, values = Number.POSITIVE_INFINITY }): boolean {
  try {
    parseJson(text, { levels, values });
    return false;
  } catch (error) {
    return error instanceof JsonLimitError;
  }
}

function valuesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((sum, member) => sum + 1 + valuesOf(member), 0);
}

describe('the number of values of a JSON text', () => {
  it('D6-25: equals the count of its members and elements, regardless of its strings', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(40), fc.constantFrom(undefined, 1), (value, values, space) => {
        expect(isBeyond(JSON.stringify(value, null, space), { values })).toBe(valuesOf(value) > values);
      }),
    );
  });

  it.each([
    ['elements', (count: number) => `[${Array(count).fill('0').join()}]`],
    ['empty objects', (count: number) => `[${Array(count).fill('{}').join()}]`],
    ['members', (count: number) => `{${Array.from({ length: count }, (_, at) => `"${at}":0`).join()}}`],
    ['members of one name', (count: number) => `{${Array(count).fill('"a":0').join()}}`],
    [
      'members and their elements',
      (count: number) =>
        `{${Array(count / 2)
          .fill('"a":[[]]')
          .join()}}`,
    ],
    ['strings of escapes', (count: number) => `[${Array(count).fill('"\\",[{"').join()}]`],
    ['elements in lines', (count: number) => `[\n${Array(count).fill(' null').join(',\n')}\n]`],
  ])('D6-25: input may have at most 50,000, counted before any value is built: %s', (_what, textOf) => {
    const { values } = CALLER_LIMITS;
    expect(values).toBe(50_000);
    expect(parseInput(textOf(values))).toBeTypeOf('object');
    const parse = vi.spyOn(JSON, 'parse');
    const message = 'must have at most 50000 values (members and elements)';
    expect(() => parseInput(textOf(values + 2))).toThrow(new JsonLimitError(message));
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });

  it('D6-25: 50,001 values are rejected, even in a text that is truncated', () => {
    for (const text of [`[${Array(50_001).fill('0').join()}]`, `[${Array(50_001).fill('0').join()}`])
      expect(() => parseInput(text)).toThrow(JsonLimitError);
  });

  it('D6-25: input nested beyond 10,100 levels is rejected, and input with exactly 10,100 is accepted', () => {
    const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    expect(parseInput(nested(10_100))).toBeInstanceOf(Array);
    expect(() => parseInput(nested(10_101))).toThrow('must not nest values more than 10100 levels deep');
  });
});

describe('the nesting of a JSON text', () => {
  it('DG-06: equals the depth of its values, regardless of its strings', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(8), (value, levels) => {
        expect(isBeyond(JSON.stringify(value), { levels })).toBe(levelsOf(value) > levels);
      }),
    );
  });

  it.each(['"[[[["', '"\\"[[[["', '"\\\\"', '{"[[[":"{{{"}', '"[[[', '"\\'])(
    'DG-06: the nesting of %s is at most 1',
    (text) => {
      expect(isBeyond(text, { levels: 1 })).toBe(false);
    },
  );

  it('DG-06: is checked in a truncated text, too', () => {
    expect(isBeyond('['.repeat(500_000), { levels: 100 })).toBe(true);
  });
});
