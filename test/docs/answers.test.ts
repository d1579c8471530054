import { expect, it } from 'vitest';
import { differences } from '../support/docs/answers.ts';

const HEAD = 'HTTP/1.1 201 Created\r\nETag: "7"\r\nContent-Length: 0\r\n\r\n';

function answer(lang: string, text: string, info = '') {
  return { page: 'page.md', line: 1, lang, info, text, section: 1 };
}

it.each([
  ['the same members and types', '{"a": 1, "b": [{"c": "x"}]}', '', '{"a":2,"b":[{"c":"y"},{"c":"z"}]}', []],
  ['a missing member', '{"a": 1, "b": null}', '', '{"a":1}', ['b is missing']],
  [
    'an additional member, in any row',
    '{"b": [{"c": 1}]}',
    '',
    '{"b":[{"c":1},{"c":1,"d":2}]}',
    ['b[1].d is not shown'],
  ],
  ['another type', '{"a": "1"}', '', '{"a":1}', ['a is number, not string: 1']],
  ['null instead of a value', '{"a": null}', '', '{"a":"x"}', ['a is string, not null: "x"']],
  ['no rows instead of some', '[{"a": 1}]', '', '[]', ['the answer is empty']],
  ['another value if all values are fixed', '{"a": 1}', 'fixed', '{"a":2}', ['a is 2, not 1']],
  ['another value of a member that is not fixed', '{"a": 1, "b": 1}', 'fixed: a', '{"a":1,"b":2}', []],
  ['the last line of an output', '{"a": 1}', 'fixed', 'a line\n{"a":1}\n', []],
])('a JSON response in the docs is compared with the real one: %s', (_name, shown, info, output, expected) => {
  expect(differences(answer('json', shown, info), output)).toEqual(expected);
});

it.each([
  ['the same', 'HTTP/1.1 201 Created\nETag: "1"\n', '', []],
  ['another status', 'HTTP/1.1 200 OK\n', '', ['the status is HTTP/1.1 201 Created, not HTTP/1.1 200 OK']],
  ['a missing header', 'HTTP/1.1 201 Created\nLocation: /\n', '', ['the header location is missing']],
  ['another value', 'HTTP/1.1 201 Created\nETag: "1"\n', 'fixed: etag', ['the header etag is "7", not "1"']],
])('an HTTP response in the docs is compared with the real one: %s', (_name, shown, info, expected) => {
  expect(differences(answer('http', shown, info), `before\n${HEAD}`)).toEqual(expected);
});
