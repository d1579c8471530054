import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { secretNamesPage } from '../../scripts/secret-names-page.ts';
import { maskBody } from '../../src/audit/mask.ts';
import { maskHeaders } from '../../src/audit/mask-headers.ts';
import { SECRETS, SecretNames } from '../../src/audit/mask-keys.ts';
import { maskValues } from '../../src/audit/mask-values.ts';
import { FALSE_FRIENDS, JWK_MEMBERS, SECRET_ENDINGS, SECRET_NAMES, TEXT_NAMES } from '../../src/audit/secret-names.ts';
import { recordedTarget } from '../../src/gateway/exchange/audit.ts';
import { percent } from '../support/audit/secret-traces.ts';
import { ROOT } from '../support/start/process.ts';

const LIMIT = 65_536;
const FORM = 'application/x-www-form-urlencoded';
/** A secret, of which any trace can be seen. */
const SECRET = 'ZQZQZQ';

function mask(body: string, type = 'application/json', truncated = false, secrets = SECRETS): string {
  return maskBody(type, Buffer.from(body), { maxBytes: LIMIT, truncated, secrets }) ?? '';
}

const words = (name: string) => name.split('_');
const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
const SPELLINGS: ((name: string) => string)[] = [
  (name) => name,
  (name) => name.toUpperCase(),
  (name) => words(name).join('-'),
  (name) => words(name).map(capital).join('-'),
  (name) => words(name).join(' '),
  (name) => words(name).join(''),
  (name) => words(name).map(capital).join(''),
  (name) =>
    words(name)
      .map((word, at) => (at === 0 ? word : capital(word)))
      .join(''),
];
const NAMES = [SECRET_ENDINGS, SECRET_NAMES, TEXT_NAMES].flatMap((names) => Object.keys(names));
const spelled = fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(...SPELLINGS)).map(([name, spell]) => spell(name));

it('D1-18: docs/secret-names.md lists the names that are masked', () => {
  expect(readFileSync(join(ROOT, 'docs/secret-names.md'), 'utf8')).toBe(secretNamesPage());
});

describe('a listed name', () => {
  it.each(NAMES)('D1-18: %s is masked in every spelling, in every form of a body, and in a head', (name) => {
    for (const one of SPELLINGS.map((spell) => spell(name))) {
      const json = JSON.stringify({ a: [{ [one]: SECRET }], text: JSON.stringify({ [one]: SECRET }) });
      const shown = [
        mask(json),
        mask(`${json}\n`, 'application/x-ndjson'),
        mask(`data: ${json}\n\n`, 'text/event-stream'),
        mask(`a=1&${encodeURIComponent(one).replaceAll('%20', '+')}=${SECRET}&b=${encodeURIComponent(json)}`, FORM),
        mask(`a=1%3B${encodeURIComponent(one)}%3D${SECRET}`, FORM),
        mask(`could not read ${one}: ${SECRET}`, 'text/plain'),
        JSON.stringify(recordedTarget(`/p?${percent(one)}=${SECRET}`)),
        JSON.stringify(
          maskHeaders({ [one]: SECRET, [`X-${one}`]: SECRET, referer: `http://h/?${percent(one)}=${SECRET}` }),
        ),
      ];
      expect([one, shown.filter((text) => text.includes('ZQ'))]).toEqual([one, []]);
    }
  });

  it('D1-18: masks any value but booleans and null, and seed as text alone', () => {
    expect(mask('{"pin":true,"otp":null,"mnemonic":false,"password":null}')).toBe(
      '{"pin":true,"otp":null,"mnemonic":false,"password":null}',
    );
    expect(mask('{"pin":1234,"api_key":{"a":1},"tan":["x"]}')).toBe('{"pin":"***","api_key":"***","tan":"***"}');
    expect(mask('{"seed":42,"entropy":0.5,"seeds":1}')).toBe('{"seed":42,"entropy":0.5,"seeds":1}');
    expect(mask('{"seed":"x","entropy":[ "a","b"],"a":{"seed":{"b":1}}}')).toBe(
      '{"seed":"***","entropy":"***","a":{"seed":{"b":1}}}',
    );
  });

  it('D1-18: is the same in full-width letters', () => {
    expect(mask('{"ｐａｓｓｗｏｒｄ":"ZQ","Ｐin":1}')).toBe('{"ｐａｓｓｗｏｒｄ":"***","Ｐin":"***"}');
    expect(mask(`${encodeURIComponent('ｏｔｐ')}=ZQ`, FORM)).not.toContain('ZQ');
  });

  it('D1-18: is masked in a folded header, and neither field nor file name of a multipart body is stored', () => {
    expect(JSON.stringify(maskHeaders({ 'x-any': 'a,\r\n password: ZQ' }))).not.toContain('ZQ');
    const head = "Content-Disposition: form-data; name*=UTF-8''pass%77ord; filename*=UTF-8''ZQ";
    const body = `--b\r\n${head}\r\n\r\nZQ\r\n--b--`;
    for (const type of ['multipart/form-data; boundary=b', 'text/plain', '']) expect(mask(body, type)).toBe('');
  });

  it('D1-18: is masked in a key file of PuTTY with all its lines', () => {
    const file = 'PuTTY-User-Key-File-3: ssh-rsa\r\nPrivate-Lines: 1\r\nZQZQ\r\nPrivate-MAC: ZQ';
    expect(mask(JSON.stringify({ note: file, in: JSON.stringify({ file }), end: 1 }))).not.toContain('ZQ');
  });

  it('D1-18: no false friend is masked, nor a body that has only these', () => {
    const names = Object.keys(FALSE_FRIENDS).flatMap((all) => all.split(', '));
    expect(names.filter((name) => SECRETS.isSecretKey(name))).toEqual([]);
    const body = JSON.stringify(Object.fromEntries(names.map((name) => [name, 'kept'])));
    expect(mask(body)).toBe(body);
    expect(mask(`{"password":1,${body.slice(1)}`)).toBe(`{"password":"***",${body.slice(1)}`);
  });
});

describe('the private members of a JWK', () => {
  it.each(Object.keys(JWK_MEMBERS))(
    'D1-18: %s is masked beside kty, whichever comes first, and nowhere else',
    (name) => {
      const value = JSON.stringify(SECRET);
      expect(mask(`{"kty":"RSA","n":"x","${name}":${value}}`)).toBe(`{"kty":"RSA","n":"x","${name}":"***"}`);
      expect(mask(`{"a":[{"${name}":${value},"kty":"RSA"}]}`)).toBe(`{"a":[{"${name}":"***","kty":"RSA"}]}`);
      expect(mask(`{"k\\u0074y":"RSA","${name}":${value}}`)).not.toContain('ZQ');
      expect(mask(`{"${name}":"shown","in":{"kty":"EC"}}`)).toBe(`{"${name}":"shown","in":{"kty":"EC"}}`);
      expect(mask(`{"text":${JSON.stringify(`{"${name}":${value},"kty":"x"}`)}}`)).not.toContain('ZQ');
      // Its kty may have been cut off.
      expect(mask(`{"in":{"${name}":${value},"x":"`, undefined, true)).toBe(`{"in":{"${name}":"***","x":"`);
      expect(mask(`jwk[kty]=oct&jwk[${name}]=${SECRET}`, FORM)).toBe(`jwk[kty]=oct&jwk[${name}]=***`);
    },
  );
});

const LINES = ['-----BEGIN EC PRIVATE KEY-----', 'ZQZQZQZQZQZQZQZQZQZQ', 'ZQZQ', '-----END EC PRIVATE KEY-----'];
const XPRV = `xprv9s21${'ZQ'.repeat(52)}`;
const VALUES = {
  'a PEM': LINES.join('\n'),
  'a PEM of Windows': LINES.join('\r\n'),
  'a PEM without its end': LINES.slice(0, 3).join('\n'),
  'an OpenSSH key': LINES.join('\n').replaceAll('EC', 'OPENSSH'),
  'a PGP key': LINES.join('\n').replaceAll('EC PRIVATE KEY', 'PGP PRIVATE KEY BLOCK'),
  'an extended key': XPRV,
  'the start of a test key': `tprv${XPRV.slice(4)}`,
  'a webhook secret': `whsec_${'ZQ'.repeat(16)}`,
  'a URL': 'https://alice:ZQZQ@h.example/p',
  'a URL without a scheme': '//alice:ZQZQ@h.example/p',
  'a key file of PuTTY': 'PuTTY-User-Key-File-3: ssh-ed25519 ZQZQ',
};

describe('a value that can be nothing else', () => {
  it.each(Object.entries(VALUES))('D1-18: %s is masked under any name, in every form', (_what, value) => {
    const json = JSON.stringify({ note: `see ${value}`, list: [value], text: JSON.stringify({ a: value }), end: 1 });
    const shown = [
      mask(json),
      mask(JSON.stringify({ lines: value.split('\n') })),
      mask(
        json
          .replaceAll('-', '\\u002d')
          .replaceAll('prv', '\\u0070rv')
          .replaceAll('@', '\\u0040')
          .replaceAll('_', '\\u005f'),
      ),
      mask(`data: ${json}\n\n`, 'text/event-stream'),
      mask(`a=${encodeURIComponent(value)}&b=${encodeURIComponent(encodeURIComponent(value))}`, FORM),
      mask(`see ${value}`, 'text/plain'),
      JSON.stringify(recordedTarget(`/p?a=${encodeURIComponent(value)}`)),
      JSON.stringify(maskHeaders({ 'x-any': value.replaceAll(/\s/g, ' '), referer: encodeURIComponent(value) })),
    ];
    expect(shown.filter((text) => /ZQ/.test(text))).toEqual([]);
    expect(JSON.parse(shown[0] ?? '')).toMatchObject({ end: 1 });
  });

  it('D1-18: wherever a body is cut, no part of a key is shown', () => {
    const body = JSON.stringify({ a: 'x'.repeat(100), key: VALUES['a PEM'], lines: LINES, x: XPRV });
    for (let at = 0; at <= body.length; at += 1) {
      expect(mask(body.slice(0, at), undefined, true).replace(/xprv9s21(?:ZQ){0,4}$/, '')).not.toContain('ZQ');
    }
  });
});

describe('a URL in a head', () => {
  it.each([
    'http://alice:ZQZQ@h/p?a=1',
    'http://alice:Z/Q?ZQ@h/p',
    'HTTP://ZQ@h/p',
    '//alice:ZQZQ@h/p?a=1',
    '/p?next=//alice:ZQZQ@h/',
    `//alice:${'ZQ'.repeat(9_000)}@h/p`,
    '/p?next=https%3A%2F%2Falice%3AZQZQ%40h%2F',
    '/p?next=https://alice:ZQZQ@h/',
    `http://alice:${'ZQ'.repeat(9_000)}@h/p`,
    `/p?next=http://alice:${'ZQ'.repeat(9_000)}`,
  ])('D1-18: has no user and no password, as a target or in a header: %.60s', (url) => {
    const headers = maskHeaders({ referer: url, origin: url, link: `<${url}>; rel="next"`, 'x-original-url': url });
    for (const shown of [recordedTarget(url), headers]) expect(JSON.stringify(shown)).not.toMatch(/ZQ|Z\/Q|alice/);
  });
});

describe('a target', () => {
  const query = `query={changeOwnPassword(current:"${SECRET}",new:"${SECRET}")}&variables={"a":"${SECRET}"}`;

  it.each(['/graphql', '/v2/graphql', '/x/graphql/', '/v2/Gr%61phql', 'http://h/api/graphql'])(
    'D1-18: of GraphQL shows nothing of an operation, nor does a referer: %s',
    (path) => {
      expect(recordedTarget(`${path}?${query}`).query).toBe('query=***&variables=***');
      expect(
        JSON.stringify(maskHeaders({ referer: `https://h${path.replace('http://h', '')}?${query}` })),
      ).not.toContain('ZQ');
    },
  );

  it('D1-18: that no endpoint has is masked like one of GraphQL', () => {
    expect(recordedTarget(`/nowhere?${query}&page=2`, { isUnknown: true }).query).toBe(
      'query=***&variables=***&page=2',
    );
  });
});

describe('a form', () => {
  it.each([
    'a=1%3Bpassword=ZQ',
    'a=1%3bpass%77ord%3DZQ',
    'a=1&amp;pin=ZQ',
    'a=1&amp;pin=["ZQ"]',
    'a=1%26pin%3DZQ',
    'a=1%2526pin%253DZQ',
    'a=1;+private+key=ZQ',
    'next=%2Fcb%3Fotp%3DZQ%23x',
    'a%3D1%26pin%3DZQ',
    'next=/cb?otp=ZQ',
    'filter=%2Fcb%3Fv%3D%7B%22pin%22%3A%22ZQ%22%7D',
  ])('D1-18: hides a secret however its pair is escaped: %s', (form) => {
    expect(mask(form, FORM)).not.toContain('ZQ');
    expect(recordedTarget(`/p?${form}`).query).not.toContain('ZQ');
  });
});

describe('a GraphQL document in a JSON body', () => {
  it.each([
    ['mutation { login(password: "ZQ") { id } }', 'mutation { login(password:***'],
    ['mutation($password: String!) { login(password: $password) { id } }', undefined],
    ['query Q($pin: String = "ZQ") { a }', 'query Q($pin:***'],
    ['# privateKey: "ZQ"\n{ a }', '# privateKey:***'],
    ['query { a }', undefined],
  ])('D1-18: shows no literal of a secret argument: %s', (query, expected = query) => {
    expect(JSON.parse(mask(JSON.stringify({ query }))).query).toBe(expected);
  });
});

describe('names of a configuration', () => {
  it('D1-18: are added in every spelling, and taken back', () => {
    const secrets = new SecretNames({ mask: ['account_pin'] }).with({ mask: ['Iban'], unmask: ['page_token'] });
    const body = '{"accountPin":"ZQ","IBAN":"ZQ","page_token":"shown","pageToken":"shown","token":"ZQ"}';
    const shown = mask(body, undefined, false, secrets);
    expect(shown).toBe('{"accountPin":"***","IBAN":"***","page_token":"shown","pageToken":"shown","token":"***"}');
    expect(mask('page_token=a&account-pin=ZQ', FORM, false, secrets)).toBe('page_token=a&account-pin=***');
    expect(recordedTarget('/p?page_token=a&iban=ZQ', { secrets }).query).toBe('page_token=a&iban=***');
    expect(maskHeaders({ 'X-Account-Pin': 'ZQ', 'page-token': 'a' }, secrets)).toEqual({
      'X-Account-Pin': '***',
      'page-token': 'a',
    });
    expect(mask('page token: a, iban: ZQ', 'text/plain', false, secrets)).toBe('page token: a, iban:***');
  });
});

describe('for any secret', () => {
  it('D1-18: no spelling of its name and no nesting shows it, and all else stays', () => {
    const property = fc.property(spelled, fc.nat(3), fc.constantFrom('', 'x', 'é', ' '), (name, depth, around) => {
      const inner = (value: unknown): unknown =>
        [...Array(depth).keys()].reduce<unknown>((all, at) => (at % 2 ? [all] : { a: all }), value);
      const sent = JSON.stringify({ kept: around, ...Object(inner({ b: 1, [name]: SECRET, c: around })) });
      const kept = sent.replace(`"${SECRET}"`, '"***"');
      expect(mask(sent)).toBe(kept);
      expect(mask(kept)).toBe(kept);
    });
    fc.assert(property, { numRuns: inject('isThorough') ? 2_000 : 200 });
  });
});

/** Texts on which a pattern that backtracks takes seconds; each is scanned within a part of one. */
const HOSTILE = [
  '-----BEGIN PRIVATE KEY',
  '-----BEGIN ',
  '-',
  '\\',
  '\\"',
  '"',
  '" ',
  '","',
  ':',
  '://a',
  '://a@',
  'xprv',
  'xprv1',
  'key ',
  'key_',
  'private_',
  'secret"',
  'password\\n',
  '$a:',
  '$',
  ': ',
  'eyJ',
  'eyJ.',
  '%41',
  '%25',
  '\\u0041',
  ';',
  '{"d":',
  '["',
  '{"a":{"d":1,"kty":',
  '{"seed":[',
  'a=1;',
  'query ',
  '#',
  'mutation(',
  '-----BEGIN PRIVATE KEY-----","',
  'x:y ',
  'whsec_',
  '?',
  '&',
];

describe('hostile text', () => {
  it.each(HOSTILE)(
    'D1-18: of 64 KiB is masked in time that grows with its length: %j',
    (piece) => {
      const text = piece.repeat(Math.ceil(LIMIT / piece.length));
      for (const type of ['application/json', 'text/plain', FORM, 'text/event-stream']) {
        mask(text, type);
        mask(JSON.stringify({ query: `query ${text}`, text }), type);
      }
      maskValues(text);
      recordedTarget(`/p?${text}`, { isUnknown: true });
      maskHeaders({ referer: text, link: text });
    },
    5_000,
  );
});
