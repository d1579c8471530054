import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maskBody } from '../../src/audit/mask.ts';
import { EVERY_STRING, HIDDEN, type JsonRule, membersRule } from '../../src/audit/mask-json.ts';

const inData = membersRule({ data: membersRule({ x: HIDDEN, deep: membersRule({ y: HIDDEN }) }) });
const shouted: JsonRule = { kind: 'text', mask: (text) => text.toUpperCase() };

function mask(body: string, rule: JsonRule, type = 'application/json'): string | null {
  return maskBody(type, Buffer.from(body), { maxBytes: 65_536, truncated: true, wellFormed: true, rule });
}

describe('masking by a rule', () => {
  it.each([
    [
      'a member',
      inData,
      '{"data": {"x" : "s", "y": "kept"}, "x": "kept"}',
      '{"data": {"x" : "***", "y": "kept"}, "x": "kept"}',
    ],
    ['a whole object', inData, '{"data":{"x":{"a":["s"]},"b":1}}', '{"data":{"x":"***","b":1}}'],
    [
      'lists of lists',
      inData,
      '{"data":[[{"x":1,"z":2}],{"deep":[{"y":3,"x":4}]}]}',
      '{"data":[[{"x":"***","z":2}],{"deep":[{"y":"***","x":4}]}]}',
    ],
    ['a name in escapes', inData, '{"d\\u0061ta":{"\\u0078":"s"}}', '{"d\\u0061ta":{"\\u0078":"***"}}'],
    [
      'every string',
      EVERY_STRING,
      '{"a":["s",{"b":"s","c":1}],"d":null,"token":3}',
      '{"a":["***",{"b":"***","c":1}],"d":null,"token":"***"}',
    ],
    ['a string alone', EVERY_STRING, '"s"', '"***"'],
    [
      'the members without a rule',
      membersRule({ a: shouted }, EVERY_STRING),
      '{"a":["s\\n"],"b":"s"}',
      '{"a":["S\\n"],"b":"***"}',
    ],
    [
      'a document in a string by its rule alone',
      membersRule({ a: shouted }),
      '{"a":"{b(password: 1)"}',
      '{"a":"{B(PASSWORD: 1)"}',
    ],
    ['a cut string', membersRule({ a: shouted }), '{"a":"kep', '{"a":"***'],
  ])('D2-21: hides %s, and all else stays', (_what, rule, body, expected) => {
    expect(mask(body, rule)).toBe(expected);
  });

  it('D2-21: holds for each line and each event', () => {
    const line = '{"data":{"x":"s"}}';
    const hidden = '{"data":{"x":"***"}}';
    expect(mask(`${line}\n${line}\n`, inData, 'application/x-ndjson')).toBe(`${hidden}\n${hidden}\n`);
    const event = (data: string) => `event: next\nid: 7\ndata: ${data}\n\n`;
    expect(mask(`:\n\n${event(line)}${event(line)}`, inData, 'text/event-stream')).toBe(
      `:\n\n${event(hidden)}${event(hidden)}`,
    );
    expect(mask('data: {"data":\ndata: {"x":"s"}}\n\n', inData, 'text/event-stream')).not.toContain('"s"');
  });

  it('D2-09 D2-21: shows no part of what is hidden, wherever the body is cut', () => {
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
        expect(mask(body.slice(0, length), inData) ?? '').not.toMatch(/Z|Q/);
        expect(mask(body.slice(0, length), EVERY_STRING) ?? '').not.toMatch(/Z|Q|k/);
      }
    });
    fc.assert(property, { numRuns: 60 });
  });
});
