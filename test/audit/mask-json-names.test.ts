import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maskBody } from '../../src/audit/mask.ts';

const names = new Set(['x', 'y']);

function mask(body: string, type = 'application/json'): string | null {
  return maskBody(type, Buffer.from(body), { maxBytes: 65_536, truncated: true, wellFormed: true, names });
}

describe('masking by further names', () => {
  it.each([
    ['a member', '{"data": {"x" : "s", "z": "kept"}, "a": "x"}', '{"data": {"x" : "***", "z": "kept"}, "a": "x"}'],
    ['a whole object', '{"data":{"x":{"a":["s"]},"b":1}}', '{"data":{"x":"***","b":1}}'],
    ['lists of lists', '{"data":[[{"x":1,"z":2}],{"y":3}]}', '{"data":[[{"x":"***","z":2}],{"y":"***"}]}'],
    ['a name in escapes', '{"data":{"\\u0078":"s"}}', '{"data":{"\\u0078":"***"}}'],
    ['beside secret keys', '{"token":"s","x":"s","a":1}', '{"token":"***","x":"***","a":1}'],
    ['a cut string', '{"x":"kep', '{"x":"***"'],
  ])('D2-21: masks %s, and all else stays', (_what, body, expected) => {
    expect(mask(body)).toBe(expected);
  });

  it('D2-21: holds for each line and each event', () => {
    const line = '{"data":{"x":"s"}}';
    const hidden = '{"data":{"x":"***"}}';
    expect(mask(`${line}\n${line}\n`, 'application/x-ndjson')).toBe(`${hidden}\n${hidden}\n`);
    const event = (data: string) => `event: next\nid: 7\ndata: ${data}\n\n`;
    expect(mask(`:\n\n${event(line)}${event(line)}`, 'text/event-stream')).toBe(
      `:\n\n${event(hidden)}${event(hidden)}`,
    );
    expect(mask('data: {"data":\ndata: {"x":"s"}}\n\n', 'text/event-stream')).not.toContain('"s"');
  });

  it('D2-09 D2-21: shows no part of what is masked, wherever the body is cut', () => {
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        fc.stringMatching(/^(?:ZQ){1,4}$/),
        fc.array(tie('any')),
        fc.dictionary(fc.constantFrom('a', 'b'), tie('any')),
      ),
    })).any;
    const property = fc.property(value, fc.constantFrom('', ' ', '\n'), (given, space) => {
      const body = JSON.stringify({ a: 'kept', data: [{ x: given }] }, null, space);
      for (let length = 0; length <= body.length; length += 1) {
        expect(mask(body.slice(0, length)) ?? '').not.toMatch(/Z|Q/);
      }
    });
    fc.assert(property, { numRuns: 60 });
  });
});
