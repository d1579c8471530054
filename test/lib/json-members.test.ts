import { assert, constantFrom, jsonValue, property, string, tuple, uniqueArray } from 'fast-check';
import { expect, it } from 'vitest';
import { repeatedMember } from '../../src/access/token-endpoint/token-request.input.ts';

it.each([
  ['{"a":1,"a":1}', 'a'],
  ['{"b":1,"a":1,"c":{},"a":2,"b":2}', 'a'],
  ['{ "a" : [1, {"x": "}"}] , "a" : 2 }', 'a'],
  ['{"a":1,"\\u0061":2}', 'a'],
  ['{"\\"":1,"\\u0022":2}', '"'],
  ['{"a":"\\\\","a":1}', 'a'],
  ['{"__proto__":1,"__proto__":2}', '__proto__'],
])('D3-29: %s names %s twice', (text, name) => expect(repeatedMember(text)).toBe(name));

it.each([
  '{}',
  '{"a":1,"b":"a"}',
  '{"a":{"a":1},"b":[{"a":1},{"a":1}]}',
  '{"a":"\\",\\"a\\":1"}',
  '{"a":"b","b":"a"}',
  '{"a":["a","a"],"A":1}',
  '[{"a":1},{"a":1}]',
  '"a"',
  '7',
])('D3-29: %s names none twice', (text) => expect(repeatedMember(text)).toBeUndefined());

it('D3-29: whatever else stands in an object', () => {
  const member = tuple(string(), jsonValue());
  const repeatable = uniqueArray(member, { selector: ([name]) => name, minLength: 1 });
  assert(
    property(uniqueArray(member, { selector: ([name]) => name }), (members) => {
      expect(repeatedMember(objectText(members))).toBeUndefined();
    }),
  );
  assert(
    property(repeatable, jsonValue(), constantFrom('push', 'unshift'), (members, value, where) => {
      const [[name] = ['']] = members;
      const repeated = [...members];
      repeated[where]([name, value]);
      expect(repeatedMember(objectText(repeated))).toBe(name);
    }),
  );
});

function objectText(members: readonly (readonly [string, unknown])[]): string {
  return `{${members.map(([name, value]) => `${JSON.stringify(name)} : ${JSON.stringify(value)}`).join(' ,')}}`;
}
