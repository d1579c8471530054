import { array, assert, constantFrom, jsonValue, property, string, tuple, uniqueArray } from 'fast-check';
import { expect, it } from 'vitest';
import { repeatsMember } from '../../src/access/token-endpoint/token-request.input.ts';

it.each([
  '{"a":1,"a":1}',
  '{"a":1,"b":{},"a":2}',
  '{ "a" : [1, {"x": "}"}] , "a" : 2 }',
  '{"a":1,"\\u0061":2}',
  '{"\\"":1,"\\u0022":2}',
  '{"a":"\\\\","a":1}',
  '{"__proto__":1,"__proto__":2}',
])('D3-29: %s names a member twice', (text) => expect(repeatsMember(text)).toBe(true));

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
])('D3-29: %s names none twice', (text) => expect(repeatsMember(text)).toBe(false));

it('D3-29: whatever else stands in an object', () => {
  const member = tuple(string(), jsonValue());
  assert(
    property(uniqueArray(member, { selector: ([name]) => name }), (members) => {
      expect(repeatsMember(objectText(members))).toBe(false);
    }),
  );
  assert(
    property(array(member, { minLength: 1 }), jsonValue(), constantFrom('push', 'unshift'), (members, value, where) => {
      const [[name] = ['']] = members;
      const repeated = [...members];
      repeated[where]([name, value]);
      expect(repeatsMember(objectText(repeated))).toBe(true);
    }),
  );
});

function objectText(members: readonly (readonly [string, unknown])[]): string {
  return `{${members.map(([name, value]) => `${JSON.stringify(name)} : ${JSON.stringify(value)}`).join(' ,')}}`;
}
