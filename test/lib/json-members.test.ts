import { assert, constantFrom, jsonValue, property, string, tuple, uniqueArray } from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { heapWeight } from '../../src/lib/heap-weight.ts';
import {
  JsonError,
  JsonLimitError,
  type KnownMembers,
  noteRepeats,
  outlineOf,
  parseInput,
  parseJson,
  readInput,
  repeatedIn,
  TEXT_LIMITS,
} from '../../src/lib/json.ts';

function repeatedOf(text: string): string[] | undefined {
  const names = repeatedIn(noteRepeats(text, JSON.parse(text)));
  return names && [...names];
}

it.each([
  ['{"a":1,"a":1}', ['a']],
  ['{"b":1,"a":1,"c":{},"a":2,"b":2}', ['a', 'b']],
  ['{ "a" : [1, {"x": "}"}] , "a" : 2 }', ['a']],
  ['{"a":1,"\\u0061":2}', ['a']],
  ['{"st\\u0061tus":3,"status":4,"statu\\u0073":5}', ['status']],
  ['{"\\"":1,"\\u0022":2}', ['"']],
  ['{"a":"\\\\","a":1}', ['a']],
  ['{"":1,"":2}', ['']],
  ['{"__proto__":1,"__proto__":2}', ['__proto__']],
  ['{"constructor":{},"constructor":{},"constructor":{}}', ['constructor']],
  ['\t{\r\n"a"\n:\t1\r,\n"b" :2,  "a"  :  3}\n', ['a']],
  ['{"a":{"x":1},"a":{"y":1}}', ['a']],
  // Repeated only further within.
  ['{"a":{"b":1,"b":2}}', []],
  ['[{"a":1},{"a":1,"a":2}]', []],
  ['{"a":[[[{"b":{"c":1,"c":1}}]]]}', []],
])('D3-29 D2-28: in %s the members %j are repeated', (text, names) => expect(repeatedOf(text)).toEqual(names));

it.each([
  '{}',
  '{"a":1,"b":"a"}',
  '{"a":{"a":1},"b":[{"a":1},{"a":1}]}',
  '{"a":"\\",\\"a\\":1"}',
  '{"a":"b","b":"a"}',
  '{"a":["a","a"],"A":1}',
  '{"a":":","b":"\\":","c":",\\"a\\":"}',
  '{"a":"{\\"a\\":1,\\"a\\":2}"}',
  '[{"a":1},{"a":1}]',
  '["a","a",["a"]]',
  '"a"',
  '7',
])('D3-29 D2-28: in %s no member is repeated', (text) => expect(repeatedOf(text)).toBeUndefined());

it('D2-28: a repeated member is recorded for the object that contains it, at any depth', () => {
  const text = '{"users":[{"a":1},{"b":{"c":1}},{"b":{"c":1,"d":2,"c":3}}],"next":[0,{"e":1,"e":2}]}';
  const value = noteRepeats(text, JSON.parse(text));
  const [first, second, third] = value.users;
  for (const whole of [first, second, second.b]) expect(repeatedIn(whole)).toBeUndefined();
  expect([third.b, value.next[1]].map((owner) => [...(repeatedIn(owner) ?? [])])).toEqual([['c'], ['e']]);
});

it('D2-28: a repeated member in a discarded value leaves no record on shared prototypes', () => {
  for (const name of ['__proto__', 'constructor', 'toString']) {
    const inner = `{"${name}":{"x":1,"x":2}}`;
    for (const text of [`{"a":${inner},"a":1}`, `{"a":${inner},"a":{}}`, `{"a":[${inner}],"a":"text"}`]) {
      expect(repeatedOf(text)).toEqual(['a']);
    }
  }
  for (const shared of [Object.prototype, Object, Number.prototype, String.prototype, Array.prototype]) {
    expect(repeatedIn(shared)).toBeUndefined();
  }
});

it('D3-29: a repeated member is found among any other members, and none is reported where there is none', () => {
  const member = tuple(string(), jsonValue());
  const members = uniqueArray(member, { selector: ([name]) => name });
  const repeatable = uniqueArray(member, { selector: ([name]) => name, minLength: 1 });
  assert(property(members, (given) => void expect(repeatedOf(objectText(given))).toBeUndefined()));
  assert(
    property(repeatable, jsonValue(), constantFrom('push', 'unshift'), (given, value, where) => {
      const [[name] = ['']] = given;
      const repeated = [...given];
      repeated[where]([name, value]);
      expect(repeatedOf(objectText(repeated))).toEqual([name]);
    }),
  );
});

function objectText(members: readonly (readonly [string, unknown])[]): string {
  return `{${members.map(([name, value]) => `${JSON.stringify(name)} : ${JSON.stringify(value)}`).join(' ,')}}`;
}

describe('the members that a reader knows', () => {
  const known: KnownMembers = { query: {}, variables: 'any', extensions: { persisted: { hash: {} } } };

  it.each([
    ['{"query":1,"query":2}', 'query'],
    ['[{"query":1},{"query":1,"query":2}]', 'query'],
    ['{"extensions":{"persisted":{"hash":1,"hash":2}}}', 'hash'],
    ['{"variables":{"a":[{"b":{"c":1,"c":1}}]}}', 'each member'],
    ['{"variables":{"__proto__":1,"__proto__":2}}', 'each member'],
    ['{"variables":{"a":1},"variables":{"a":1}}', 'variables'],
  ])('D2-28: %s is rejected because it repeats %s', (text, name) => {
    expect(() => parseInput(text, known)).toThrow(new JsonError(`must have ${name} once`));
  });

  it.each([
    '{"query":1,"note":1,"note":2}',
    '{"note":{"query":1,"query":2},"query":1}',
    '{"extensions":{"other":1,"other":2,"persisted":{"note":1,"note":2}}}',
    '{"extensions":{"variables":{"a":1,"a":2}}}',
    '{"__proto__":1,"__proto__":2}',
  ])('D2-28: %s is accepted, since only unknown members are repeated', (text) =>
    expect(parseInput(text, known)).toEqual(JSON.parse(text)),
  );

  it('D2-28: repeated members are found at any permitted depth, and deeper texts are rejected without a stack overflow', () => {
    const deep = (levels: number) => `{"variables":${'{"a":['.repeat(levels)}{"b":1,"b":2}${']}'.repeat(levels)}}`;
    expect(() => parseInput(deep(499), known)).toThrow('must have each member once');
    const repeated = (levels: number) => `{"variables":${'{"a":1,"a":'.repeat(levels)}1${'}'.repeat(levels)}}`;
    expect(() => parseInput(repeated(999), known)).toThrow('must have each member once');
    for (const text of [deep(9_000), repeated(19_000)]) expect(() => parseInput(text, known)).toThrow(JsonLimitError);
  });

  it('D2-28: numbers beyond a double are exact, and repeated members next to them are found', () => {
    const text = '{"variables":{"a":12345678901234567890,"a":1}}';
    expect(() => parseInput(text, known)).toThrow('must have each member once');
    expect(JSON.stringify(parseInput('{"a":12345678901234567890,"b":1}', known))).toBe(
      '{"a":12345678901234567890,"b":1}',
    );
  });
});

describe('a body that is read', () => {
  const refused = ({ message }: JsonError) => new Error(message);

  it('D6-24, D6-25: is charged with its value in one turn of the event loop, and its value is made in a later one', async () => {
    // Later than what other files of this process have done.
    let nowMs = performance.now() + 1e6;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const parse = vi.spyOn(JSON, 'parse');
    const charge = vi.fn(() => {
      nowMs += 6;
      return true;
    });
    const body = Buffer.from('{"a":1,"a":2}');
    const reading = readInput(body, refused, { key: 'node', charge }, { a: {} }).catch((error: Error) => error);
    const afterCharging = async () => {
      for (let steps = 0; steps < 50; steps += 1) await undefined;
      return 'charged';
    };
    expect([await Promise.race([reading, afterCharging()]), charge.mock.calls.length]).toEqual(['charged', 1]);
    expect(parse).not.toHaveBeenCalled();
    expect(await reading).toEqual(new Error('must have a once'));
    expect(parse).toHaveBeenCalledOnce();
    parse.mockRestore();
    clock.mockRestore();
  });

  it('D6-25: becomes no value if its account has no room for that', async () => {
    const parse = vi.spyOn(JSON, 'parse');
    const stopped = new Error('no room');
    const worker = { key: 'node', stopped: undefined as Error | undefined, charge };
    function charge(): boolean {
      worker.stopped = stopped;
      return false;
    }
    await expect(readInput(Buffer.from('[{"a":1}]'), refused, worker)).rejects.toBe(stopped);
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });

  it('D6-25: stays charged for what its value takes, but no longer for its text', async () => {
    const value = {
      items: Array.from({ length: 500 }, (_, at) => ({ [`name ${at}`]: 'a text that takes some bytes' })),
    };
    let charged = 0;
    const charge = (bytes: number) => {
      charged += bytes;
      return true;
    };
    await readInput(Buffer.from(JSON.stringify(value)), refused, { key: 'node', charge });
    expect(charged).toBe(heapWeight(value));
  });
});

it('D6-25: the weight of a value that a text announces is the one that the value has, or more if it has escapes', () => {
  assert(
    property(jsonValue(), (value) => {
      const text = JSON.stringify(value);
      const { weight, hasRepeats } = outlineOf(text, TEXT_LIMITS);
      expect(hasRepeats).toBe(false);
      expect(weight).toBeGreaterThanOrEqual(heapWeight(parseJson(text)));
      if (!/[\d.]{16}|\de[+-]?\d{3}|\\/i.test(text)) expect(weight).toBe(heapWeight(parseJson(text)));
    }),
  );
});

it('D6-25: notes of repeated members are part of the announced weight', () => {
  const weightOf = (text: string) => outlineOf(text, TEXT_LIMITS);
  const { weight, hasRepeats } = weightOf('[{"a":1,"a":1}]');
  expect(hasRepeats).toBe(true);
  // Both the object and what it is in are noted.
  expect(weight - weightOf('[{"a":1}]').weight).toBeGreaterThan(2 * 250);
  expect(weightOf('{"a":{"b":1},"c":{"b":1}}').hasRepeats).toBe(false);
});
