import { expect, it } from 'vitest';
import { parseForm } from '../../src/features/oauth/token-request.input.ts';

function parsed(text: string) {
  return parseForm(Buffer.from(text, 'latin1'));
}

it.each([
  ['', {}],
  ['a=1&b=2', { a: '1', b: '2' }],
  ['&&a=1&', { a: '1' }],
  ['a=b=c', { a: 'b=c' }],
  ['a=+%2B%20x', { a: ' + x' }],
  ['client%5Fid=x', { client_id: 'x' }],
  ['a=caf%C3%A9', { a: 'caf\u00e9' }],
  ['a=caf\u00c3\u00a9', { a: 'caf\u00e9' }],
  ['a=%00', { a: '\0' }],
  ['a&b=&=&c=1', { c: '1' }],
  ['=x', { '': 'x' }],
])('D3-11: the form %j has the parameters %j', (text, parameters) => {
  expect(parsed(text)).toEqual(parameters);
});

it('D3-11: __proto__ and constructor are ordinary parameter names', () => {
  const parameters = parsed('__proto__=x&constructor=y');
  expect(Object.entries(parameters)).toEqual([
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ]);
});

it.each(['a=%', 'a=%2', 'a=%zz', '%=1', 'a=%C3', 'a=%C3%28', 'a=%ED%A0%80', 'a=%F5%80%80%80', 'a=%C0%AF', 'a=\u00e9'])(
  'D3-11: %j is malformed',
  (text) => expect(() => parsed(text)).toThrow(text === 'a=\u00e9' ? 'must be in UTF-8' : 'invalid_request'),
);

it.each(['a=1&a=1', 'a=1&a=2', 'a=&a=1', 'a&a', 'x=1&%61=2&a=3', '__proto__=1&__proto__=1'])(
  'D3-29: %j repeats a parameter',
  (text) => expect(() => parsed(text)).toThrow('invalid_request'),
);
