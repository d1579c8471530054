import fc from 'fast-check';
import { describe, expect, inject, it, vi } from 'vitest';
import type * as Form from '../../src/audit/mask.ts';
import { maskHeaders } from '../../src/audit/mask.ts';
import type * as Json from '../../src/audit/mask-json.ts';
import type * as Values from '../../src/audit/mask-values.ts';
import type * as Keys from '../../src/audit/masked-names.ts';
import { recordedHead, recordedTarget } from '../../src/gateway/exchange/audit.ts';
import { percent, traceIn } from '../support/audit/secret-traces.ts';

/** How many characters were given to what masks. */
const scanned = vi.hoisted(() => ({ characters: 0 }));

function counting<F extends (text: string, ...rest: never[]) => unknown>(scan: F): F {
  return ((text: string, ...rest: never[]) => {
    scanned.characters += text.length;
    return scan(text, ...rest);
  }) as F;
}

function countingMethod<Result>(scan: (this: Keys.SecretNames, text: string) => Result) {
  return function counted(this: Keys.SecretNames, text: string): Result {
    scanned.characters += text.length;
    return scan.call(this, text);
  };
}

vi.mock('../../src/audit/masked-names.ts', async (original) => {
  const keys = await original<typeof Keys>();
  const { prototype } = keys.SecretNames;
  const { kindOf, secretValueAt, mayHide } = prototype;
  vi.spyOn(prototype, 'kindOf').mockImplementation(countingMethod(kindOf));
  vi.spyOn(prototype, 'secretValueAt').mockImplementation(countingMethod(secretValueAt));
  vi.spyOn(prototype, 'mayHide').mockImplementation(countingMethod(mayHide));
  return keys;
});
vi.mock('../../src/audit/mask-values.ts', async (original) => {
  const values = await original<typeof Values>();
  return { ...values, maskValues: counting(values.maskValues), decode: counting(values.decode) };
});
vi.mock('../../src/audit/mask.ts', async (original) => {
  const form = await original<typeof Form>();
  return { ...form, maskQuery: counting(form.maskQuery) };
});
vi.mock('../../src/audit/mask-json.ts', async (original) => {
  const json = await original<typeof Json>();
  return { ...json, maskEmbedded: counting(json.maskEmbedded) };
});

const SECRET = 'ZQXJKVZQXJKV';
const base64 = (text: string) => Buffer.from(text).toString('base64url');
const JWT = `${base64('{"alg":"HS256"}')}.${base64(`{"sub":"${SECRET}"}`)}.${base64(SECRET)}`;
const twice = (text: string) => encodeURIComponent(encodeURIComponent(text));

/** What a secret looks like in a head, in every spelling. */
const SPELLINGS = {
  plain: `access_token=${SECRET}`,
  'among others': `a=1&client_secret=${SECRET}&b=2`,
  'a name in escapes': `${percent('password')}=${SECRET}`,
  'name and value in escapes': `${percent('password')}=${percent(SECRET)}`,
  'an address in a parameter': `next=${encodeURIComponent(`/cb?token=${SECRET}&a=1`)}`,
  'an address in one in a parameter': `next=${encodeURIComponent(`/cb?to=${encodeURIComponent(`/?token=${SECRET}`)}`)}`,
  'escapes of escapes': twice(`?password=${SECRET}`),
  'escapes four times': twice(twice(`?password=${SECRET}`)),
  'a list in brackets': `user[password][]=${SECRET}`,
  'JSON in a parameter': `filter={"a":[{"password":"${SECRET}"}]}`,
  'JSON in escapes': `filter=${encodeURIComponent(`{"a":{"password": "${SECRET}"}}`)}`,
  'JSON in JSON': `filter=${encodeURIComponent(JSON.stringify({ text: JSON.stringify({ token: SECRET }) }))}`,
  'JSON in escapes twice': `filter=${twice(`{"token":"${SECRET}"}`)}`,
  'a name in escapes of JSON': `filter={"pass\\u0077ord":"${SECRET}"}`,
  'both escapes': `filter=${encodeURIComponent(`{"\\u0070assword":"${SECRET}"}`)}`,
  'a JWT': JWT,
  'a JWT in a parameter': `a=${JWT}&b=2`,
  'a JWT in escapes': `a=${percent(JWT)}`,
  'a JWT with its dots escaped': `a=${JWT.replaceAll('.', '%2E')}`,
  'behind a semicolon': `a=1;password=${SECRET};b=2`,
} as const;

/** And in headers alone. */
const HEADER_SPELLINGS = {
  ...SPELLINGS,
  'an address': `https://h/p?a=1&token=${SECRET}#access_token=${SECRET}`,
  'a list of addresses': `<https://h/a?page=1>; rel="prev", <https://h/b?token=${SECRET}>; rel="next"`,
  'a quoted value': `client_secret="${SECRET}", a="b"`,
  'a list': `one, password=${SECRET}, two`,
  'a name and a colon': `Authorization: ${SECRET}`,
  'a scheme': `Bearer ${SECRET}`,
  'a scheme in a list': `x, bearer   ${SECRET}, y`,
  'a scheme in escapes': `Bearer%20${SECRET}`,
  'a scheme in a form': `Bearer+${SECRET}`,
  'a scheme and a colon': `Bearer: ${SECRET}`,
  'a scheme and a name': `Basic ${Buffer.from(`ada:${SECRET}`).toString('base64')}`,
  'JSON of its own': `{"password":"${SECRET}"}`,
  'an operation': `/graphql?query=${encodeURIComponent(`{ check(password: "${SECRET}") }`)}`,
} as const;

/** What may stand before: it neither hides a secret nor ends a word by itself. */
const FILLERS = ['a', 'a=1&', '%41', 'é', ', x', '"', '?', '%25'] as const;

/** From one place of a cut to the next; escapes have three characters, so that each of them is a place. */
const STEP = inject('isThorough') ? 1 : 2;

/** What stands before a cut: plain letters, and one of the others; in a quick run these by turns. */
function fillersOf(kept: number): string[] {
  const turn = Math.floor(kept / STEP);
  const both = ['a', FILLERS[(turn >> 1) % FILLERS.length] ?? ''];
  return inject('isThorough') ? both : both.slice(turn % 2).slice(0, 1);
}

/** A text of which exactly `kept` bytes of `spelled` lie before the cut at `limit`, or all of it. */
function atCut(spelled: string, filler: string, limit: number, kept: number): string {
  const before = limit - kept;
  const size = Buffer.byteLength(filler);
  return `${filler.repeat(Math.floor(before / size))}${'_'.repeat(before % size)}&${spelled}&${'x'.repeat(limit)}`;
}

/** A trace where the cut was: before it is nothing but filler. */
function traceAtEnd(shown: unknown): string | undefined {
  return traceIn(String(shown).slice(-700));
}

describe('the record of a request head that is cut anywhere', () => {
  it.each(Object.entries(HEADER_SPELLINGS))('D2-08 D2-24: has no part of a secret in a header: %s', (_, spelled) => {
    for (let kept = 0; kept <= spelled.length + 8; kept += STEP) {
      for (const filler of fillersOf(kept)) {
        const value = atCut(spelled, filler, 4 * 1024, kept);
        expect([filler, kept, traceAtEnd(maskHeaders({ 'x-any': value })['x-any'])]).toEqual([filler, kept, undefined]);
      }
    }
    const whole = maskHeaders({ 'x-any': spelled, referer: `https://h/p?${spelled}`, link: [spelled, spelled] });
    expect(traceIn(JSON.stringify(whole))).toBeUndefined();
  });

  it.each(Object.entries(SPELLINGS))('D2-08 D2-24: has no part of a secret in its target: %s', (_, spelled) => {
    for (let kept = 0; kept <= spelled.length + 8; kept += STEP) {
      for (const filler of fillersOf(kept)) {
        const text = atCut(spelled, filler, 8 * 1024, kept);
        const shown = [recordedTarget(`/p?${text}`).query, recordedTarget(`/${text}?a=1`).path];
        expect([filler, kept, shown.map(traceAtEnd)]).toEqual([filler, kept, [undefined, undefined]]);
      }
    }
    expect(traceIn(JSON.stringify([recordedTarget(`/p?${spelled}`), recordedTarget(`/${spelled}`)]))).toBeUndefined();
  });

  it('D2-21 D2-24: has nothing of a GraphQL operation whose path is cut', () => {
    const { query } = recordedTarget(`${'/'.repeat(9_000)}graphql?query={x(a:"${SECRET}")}&first=2`);
    expect(query).toBe('query=***&first=2');
  });

  it.each(['%', '%4', '%25', '%254', '%2541'])('D2-24: does not end in an incomplete percent escape: %s', (cut) => {
    const at = 4 * 1024 - 3 - cut.length;
    const [shown = ''] = [maskHeaders({ 'x-any': `${'a'.repeat(at)}${cut}${'b'.repeat(9_000)}` })['x-any']].flat();
    expect(shown).toMatch(cut === '%2541' ? /a%2541…$/ : /a…$/);
  });
});

describe('the record of a request head', () => {
  const kibibytes = (count: number) => count * 1024;
  const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

  it('D2-24: has at most 16 KiB of headers, with their names, and the number of headers left out', () => {
    const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`x-${index}`, 'a']));
    const kept = maskHeaders(many);
    expect(sizeOf(kept)).toBeLessThanOrEqual(kibibytes(16));
    expect(sizeOf(kept)).toBeGreaterThan(kibibytes(14));
    expect(kept['…']).toBe(`${2_001 - Object.keys(kept).length} left out`);
    const names = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`${'n'.repeat(16_000)}${index}`, 'a']));
    expect(Object.keys(maskHeaders({ ...names, 'x-last': 'b' }))).toEqual([`${'n'.repeat(16_000)}0`, 'x-last', '…']);
  });

  it('D2-24: includes a small header that follows headers too large to fit', () => {
    const long = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`x-${index}`, 'b'.repeat(9_000)]));
    const kept = maskHeaders({ ...long, 'user-agent': 'curl' });
    expect(Object.keys(kept)).toEqual(['x-0', 'x-1', 'x-2', 'user-agent', '…']);
  });

  it('D2-24: masking a head of 160 KiB of any shape stays within the limits of time and size', () => {
    const pieces = String.raw`? # & ; = / % %7B%22 %5B %255B%2522 {" \" \ \u0022 " [ , eyJ . a x= ?x=%7B%22 password= token + *** é`;
    const piece = fc.constantFrom(...pieces.split(' '), 'Bearer ', ' ', 'session=1; ');
    const shape = fc.array(piece, { minLength: 1, maxLength: 5 }).map((pieces) => pieces.join(''));
    const head = fc.record({
      path: fc.option(shape, { nil: '' }),
      query: fc.option(shape, { nil: '' }),
      values: fc.array(shape, { minLength: 1, maxLength: 4 }),
      names: fc.array(fc.constantFrom('referer', 'cookie', 'link', 'x-original-url', 'x-token', 'set-cookie'), {
        minLength: 1,
        maxLength: 4,
      }),
      count: fc.constantFrom(1, 4, 40, 1_000),
    });
    const property = fc.property(head, ({ path, query, values, names, count }) => {
      const share = kibibytes(160) / (count + Math.sign(path.length) + Math.sign(query.length));
      const fill = (text: string) => text.repeat(Math.ceil(share / (text.length || 1)));
      const headers = Object.fromEntries(
        Array.from({ length: count }, (_, index) => [
          index < names.length ? `${names[index]}` : `${names[index % names.length]}-${index}`,
          fill(values[index % values.length] ?? ''),
        ]),
      );
      scanned.characters = 0;
      const kept = recordedHead(`/${fill(path)}${query === '' ? '' : `?${fill(query)}`}`, headers);
      expect(scanned.characters).toBeLessThanOrEqual(8 * kibibytes(32));
      expect(sizeOf(kept.headers)).toBeLessThanOrEqual(kibibytes(16));
      expect(Buffer.byteLength(kept.path)).toBeLessThanOrEqual(kibibytes(8));
      expect(Buffer.byteLength(kept.query ?? '')).toBeLessThanOrEqual(kibibytes(8));
    });
    fc.assert(property, { numRuns: inject('isThorough') ? 300 : 25 });
  });
});
