import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  erasedText,
  identifiesPerson,
  type PersonalData,
  readable,
  tracesOf,
} from '../../src/domain/users/erased-text.rules.ts';
import { anyCharacter } from '../harness/any-character.ts';

const DATA: PersonalData = {
  email: 'Ann.Lee@Example.com',
  externalId: '7',
  name: 'Ann',
  surname: 'Lee',
  address: '0xabcdef0123',
};

describe('a kept text without a person', () => {
  it.each<[string, unknown, unknown]>([
    [
      'members of REST',
      { email: DATA.email, external_id: '7', name: 'Ann', surname: 'Lee', address: DATA.address },
      { email: '', external_id: null, name: '', surname: '', address: '' },
    ],
    ['members of GraphQL', { walletAddress: DATA.address, externalId: '7' }, { walletAddress: '', externalId: null }],
    [
      'any case and blanks around',
      { email: 'ANN.LEE@example.COM', wallet_address: ' 0XABCDEF0123 ' },
      { email: '', wallet_address: '' },
    ],
    ['what hides under other names', { e: DATA.email, list: [DATA.address, 1] }, { e: '', list: ['', 1] }],
    ['a text that mentions the email', { note: `to ${DATA.email}` }, { note: '' }],
    [
      'other people',
      { name: 'Bob', external_id: '77', email: 'b@x.y' },
      { name: 'Bob', external_id: '77', email: 'b@x.y' },
    ],
    ['a short identifier under another name', { total: '7', n: 'Ann', s: 'Lee' }, { total: '7', n: '', s: '' }],
    ['rows of many', { users: [{ name: 'Ann' }, { name: 'Bob' }] }, { users: [{ name: '' }, { name: 'Bob' }] }],
  ])('D7-09: %s', (_name, given, expected) => {
    expect(JSON.parse(erasedText(JSON.stringify(given), DATA) ?? 'null')).toEqual(expected);
  });

  const JANE = { ...DATA, name: 'Jane', surname: 'Óhara Poe', email: 'jane@x.example' };

  it.each<[string, unknown, unknown]>([
    [
      'a document of a migration',
      { query: 'mutation{migrateUser(input:{walletAddress:"w",externalId:"7"}){__typename}}' },
      { query: '' },
    ],
    ['a part of a name', { variables: { q: 'jan' } }, { variables: { q: '' } }],
    ['a literal', { query: '{users(filter:{search:"Jan"}){totalCount}}' }, { query: '' }],
    ['a literal in escapes', { query: '{users(filter:{search:"J\\u0061n"}){totalCount}}' }, { query: '' }],
    ['an alias', { query: '{ jane: user(id: 1) { id } }' }, { query: '' }],
    ['an argument of a tool', { params: { arguments: { search: 'POE' } } }, { params: { arguments: { search: '' } } }],
    ['an encoded part', { url: '/x?q=jane%40x' }, { url: '' }],
    ['what asks for others', { query: '{users(filter:{search:"Bob"}){totalCount}}' }, undefined],
    ['one letter', { variables: { first: 'j' } }, undefined],
  ])('D7-10: of what was asked: %s', (_name, given, expected = given) => {
    expect(JSON.parse(erasedText(JSON.stringify(given), JANE, 'asked') ?? 'null')).toEqual(expected);
  });

  it.each<[string, unknown, unknown]>([
    ['an alias', { data: { jane: { n: 'Jane' } } }, { data: { '***': { n: '' } } }],
    ['a message', { errors: [{ message: 'no KYC for Jane.' }] }, { errors: [{ message: '' }] }],
    ['a part of another name', { users: [{ name: 'Janet' }, { name: 'Mary Jane' }, { n: 'Janet' }] }, undefined],
    [
      'a document in a text',
      { text: '{"users":[{"name":"Jane"},{"name":"Bob"}]}' },
      { text: '{"users":[{"name":""},{"name":"Bob"}]}' },
    ],
  ])('D7-10: of what was told: %s', (_name, given, expected = given) => {
    expect(JSON.parse(erasedText(JSON.stringify(given), JANE) ?? 'null')).toEqual(expected);
  });

  it('D7-10: of several documents, one a line, the others stay', () => {
    expect(erasedText('{"n":"Jane"}\n{"n":"Bob"}\n', JANE)).toBe('{"n":""}\n{"n":"Bob"}\n');
    expect(erasedText('{"n":"Jane"}\n{"n":"Bo', JANE)).toBeNull();
  });

  it.each([
    'search=Jan',
    'q=Jane+P',
    'q=a%20jane',
    'https://h/?q=%2541nn&u=%4a%61%6e%65',
    'see Jane',
    'x=jane%40x.example',
  ])('D7-10: a text of any form shows the person: %s', (text) => {
    expect(identifiesPerson(text, JANE)).toBe(true);
    expect(identifiesPerson(text, { ...JANE, name: 'Bob', surname: 'Lee', email: 'b@y.example' })).toBe(false);
  });

  it('D7-09: what shows nothing stays byte for byte; what cannot be read or still tells goes whole', () => {
    const other = '{ "amount": 1.000000000000000000001, "name" : "Bob" }';
    expect(erasedText(other, DATA)).toBe(other);
    expect(erasedText('{"n":1e999,"name":"Ann"}', DATA)).toBe('{"n":1e999,"name":""}');
    expect(erasedText('{"email":"Ann.L', DATA)).toBeNull();
    expect(erasedText('email=ann', DATA)).toBeNull();
    expect(erasedText(JSON.stringify({ [DATA.email]: 1 }), DATA)).toBeNull();
  });

  it('D7-09: a user without anything is nowhere', () => {
    const blank = { email: '', externalId: '', name: '', surname: '', address: '' };
    expect(tracesOf(blank)).toEqual([]);
    expect(erasedText('{"name":"","email":""}', blank)).toBe('{"name":"","email":""}');
  });

  it('D7-09: every way to write the values as JSON is found, and gone afterwards', () => {
    const text = fc
      .string({ minLength: 6, maxLength: 20, unit: anyCharacter })
      .filter((value) => value.trim() === value);
    fc.assert(
      fc.property(text, text, fc.constantFrom(/(?!)/, /[^\x20-\x7e]/, /[^"\\]/), (email, externalId, escaped) => {
        const data = { ...DATA, email, externalId };
        const written = (value: string) =>
          JSON.stringify(value).replace(/\\.|[\s\S]/g, (unit) =>
            unit.length === 1 && escaped.test(unit) ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}` : unit,
          );
        const kept = `{"email":${written(email)},"external_id":${written(externalId)}}`;
        expect(tracesOf(data).some((trace) => readable(kept).includes(trace))).toBe(true);
        const erased = erasedText(kept, data);
        expect(erased === null ? [] : Object.values(JSON.parse(erased))).toEqual(erased === null ? [] : ['', null]);
      }),
    );
  });
});
