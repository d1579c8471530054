import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { maskBody, maskHeaders } from '../../src/audit/mask.ts';
import { recordedTarget } from '../../src/gateway/exchange/audit.ts';

const FORM = 'application/x-www-form-urlencoded';
const RUNS = inject('isThorough') ? 2_000 : 200;

function mask(body: string, type = 'application/json', truncated = false): string {
  return maskBody(type, Buffer.from(body), { maxBytes: 65_536, truncated }) ?? '';
}

/** A text in every place where a caller may write it, by the name of the place. */
function everywhere(text: string): Record<string, string> {
  const escaped = encodeURIComponent(text);
  return {
    json: mask(JSON.stringify({ a: text, list: [text], end: 1 })),
    'json beside a secret': mask(JSON.stringify({ a: text, otp: 1 })),
    'json in json': mask(JSON.stringify({ a: JSON.stringify({ b: text }) })),
    'escaped json': mask(JSON.stringify({ a: escaped })),
    'a query in json': mask(JSON.stringify({ a: `/cb?next=${escaped}&b=1` })),
    lines: mask(`${JSON.stringify({ a: text })}\n`, 'application/x-ndjson'),
    text: mask(`see ${text}`, 'text/plain'),
    'escaped text': mask(`see ${escaped}`, 'text/plain'),
    event: mask(`data: ${JSON.stringify({ a: text })}\n\n`, 'text/event-stream'),
    form: mask(`a=${escaped}&b=2`, FORM),
    query: JSON.stringify(recordedTarget(`/p?next=${escaped}`)),
    'an open query': JSON.stringify(recordedTarget(`/p?next=${text.replaceAll(/[ \n"]/g, '')}`)),
    path: JSON.stringify(recordedTarget(`/p/${escaped}`)),
    headers: JSON.stringify(maskHeaders({ referer: escaped, 'x-any': text.replaceAll('\n', ' ') })),
  };
}

const shownIn = (text: string, secret: RegExp) =>
  Object.entries(everywhere(text)).filter(
    ([, shown]) => secret.test(shown) || secret.test(decodeURIComponent(shown.replaceAll(/%(?![\dA-F]{2})/gi, '%25'))),
  );

describe('user and password of a URL', () => {
  it.each(['/', '#', '?', '"', '<', '>', '\\', '@', '&', ':', "'", '//', '%2F', '/@', '@/', '?a=b&c='])(
    'D1-18: are removed although the password has %j',
    (character) => {
      for (const url of [
        `https://alice:ZQ${character}ZQ@h.example/p?page=2`,
        `postgres://alice:${character}ZQ@h.example:5432/db`,
        `see redis://:ZQ${character}@h.example`,
      ]) {
        expect([url, shownIn(url, /ZQ|alice/)]).toEqual([url, []]);
      }
    },
  );

  it('D1-18: are removed for any password', () => {
    const password = fc
      .array(fc.constantFrom('ZQ', '/', '#', '?', '"', '<', '\\', '@', ':', "'", '1'), { minLength: 1, maxLength: 8 })
      .map((parts) => `ZQ${parts.join('')}`)
      // After an `@`, `/@` may as well begin a path: https://a:b@h/@name.
      .filter((password) => !/@.*\/(?:@|$)/.test(password.replaceAll('"', '')));
    const property = fc.property(password, fc.constantFrom('https', 'amqp', 'HTTP'), (secret, scheme) => {
      expect(shownIn(`${scheme}://alice:${secret}@h.example/`, /ZQ/)).toEqual([]);
    });
    fc.assert(property, { numRuns: RUNS });
  });

  it.each([
    'https://h.example:8443/p?email=a@b.example',
    'https://h.example:8443?email=a@b.example',
    'https://h.example/p?email=a@b.example',
    'https://h.example?email=a@b.example',
    'http://[::1]:8080/p?email=a@b.example',
    'http://[2001:db8::1]/@b',
    'mailto:a@b.example',
    'https://h.example/@name',
    'C:\\\\users\\\\a@b',
    'urn:a:b@c',
  ])('D1-18: are not detected where there are none: %s', (url) => {
    const body = JSON.stringify({ url, next: [url, 'x@y'] });
    expect(mask(body)).toBe(body);
    expect(mask(`{"otp":1,${body.slice(1)}`)).toBe(`{"otp":"***",${body.slice(1)}`);
    expect(mask(url, 'text/plain')).toBe(url);
    if (url.startsWith('http')) expect(maskHeaders({ referer: url })).toEqual({ referer: url });
  });

  it('D1-18: are masked if the body is cut within them', () => {
    const body = JSON.stringify({ a: 1, url: 'https://alice:ZQ/Z#Q?Z@h.example/' });
    for (let at = 0; at <= body.length; at += 1) expect(mask(body.slice(0, at), undefined, true)).not.toMatch(/ZQ|Z#/);
  });
});

describe('a secret as a pair of name and value members', () => {
  const LABELS = ['name', 'key', 'Name', 'KEY', 'field'];

  it.each(LABELS)('D1-18: the value next to a secret %s is masked, in either order', (label) => {
    expect(mask(`{"headers":[{"${label}":"password","value":"ZQ"},{"value":["ZQ"],"${label}":"X-Api-Key"}]}`)).toBe(
      `{"headers":[{"${label}":"password","value":"***"},{"value":"***","${label}":"X-Api-Key"}]}`,
    );
    expect(mask(`[{"${label}":"Cookie","value":"ZQ","a":1}]`)).toBe(`[{"${label}":"Cookie","value":"***","a":1}]`);
    expect(mask(`{"${label}":"p\\u0069n","value":12}`)).toBe(`{"${label}":"p\\u0069n","value":"***"}`);
    expect(mask(`{"text":${JSON.stringify(`[{"${label}":"otp","value":"ZQ"}]`)}}`)).not.toContain('ZQ');
    expect(mask(`{"value":"ZQ","${label}":`, undefined, true)).not.toContain('ZQ');
    expect(mask(`{"value":"ZQ","${label}":"otp"`, undefined, true)).not.toContain('ZQ');
  });

  it.each([
    [
      '{"loc":["body","password"],"msg":"too short","input":"ZQ"}',
      '{"loc":["body","password"],"msg":"too short","input":"***"}',
    ],
    ['{"input":"ZQ","loc":["password"]}', '{"input":"***","loc":["password"]}'],
    ['[{"field":"pin","rejectedValue":"ZQ"}]', '[{"field":"pin","rejectedValue":"***"}]'],
    ['{"property":"mnemonic","rejected_value":["ZQ"]}', '{"property":"mnemonic","rejected_value":"***"}'],
    ['{"path":["users",0,"apiKey"],"value":{"a":"ZQ"}}', '{"path":["users",0,"apiKey"],"value":"***"}'],
    ['{"text":"\\n","loc":["a","otp"],"input":"ZQ"}', '{"text":"\\n","loc":["a","otp"],"input":"***"}'],
    ['[{"op":"add","path":"/otp/0","value":"ZQ"}]', '[{"op":"add","path":"/otp/0","value":"***"}]'],
    ['[{"op":"add","path":"/api_key/db/-","value":{"a":"ZQ"}}]', '[{"op":"add","path":"/api_key/db/-","value":"***"}]'],
  ])('D1-18: the invalid input in an error of another service is masked by its path: %s', (body, expected) => {
    expect(mask(body)).toBe(expected);
  });

  it.each([
    '{"loc":["body","email"],"input":"shown"}',
    '{"input":{"id":"password_policy"},"list":["otp"],"loc":["a"]}',
  ])('D1-18: the invalid input of another member is unchanged: %s', (body) => {
    expect(mask(body)).toBe(body);
  });

  it.each([
    ['{"login[password]new":"ZQ","note":"a\\nb"}', '{"login[password]new":"***","note":"a\\nb"}'],
    ['{"login[password]new" :"ZQ"}', '{"login[password]new" :"***"}'],
    ['{"x":"pkcs:12:ZQ"}', '{"x":"pkcs:12:***"}'],
    ['{"a":"{\\"otp_s\\":1}"}', '{"a":"{\\"otp_s\\":\\"***\\"}"}'],
    ['{"\u212aey":"password","value":"ZQ"}', '{"\u212aey":"password","value":"***"}'],
    ['{"\u212aty":"oct","k":"ZQ"}', '{"\u212aty":"oct","k":"***"}'],
    ['{"a":"[//user:ZQ@host/"}', '{"a":"[//host/"}'],
  ])('D1-18: a secret under a name with dividers, and after a bracket, is masked: %s', (body, expected) => {
    expect(mask(body)).toBe(expected);
  });

  it('D1-18: OpenTelemetry attributes and lists of pairs are masked', () => {
    expect(mask('{"attributes":[{"key":"http.password","value":{"stringValue":"ZQ"}}]}')).toBe(
      '{"attributes":[{"key":"http.password","value":"***"}]}',
    );
    expect(mask('{"[":[["password",12]]}')).toBe('{"[":[["password","***"]]}');
    expect(mask('{"headers":[["Authorization","ZQ"],["Accept","a"]]}')).toBe(
      '{"headers":[["Authorization","***"],["Accept","a"]]}',
    );
  });

  it.each([
    '[{"name":"shipping","value":"a"},{"name":"password"},{"name":"pin","value":true},{"name":"otp","value":null}]',
    '{"name":"password","in":{"value":"a"},"description":"of a user"}',
    '{"value":"a","in":{"name":"password"}}',
    '{"key":"seed","value":5}',
    '{"required":["password","token"],"grant_types":["password","refresh_token","a"]}',
    '[["a","password"],["password"],["password","b","c"]]',
    '{"rules":[{"fact":"amount","operator":"gt","value":"5"}]}',
  ])('D1-18: other pairs are unchanged: %s', (body) => {
    expect(mask(body)).toBe(body);
    expect(mask(`[{"otp":1},${body}]`)).toBe(`[{"otp":"***"},${body}]`);
  });
});

describe('a path of names', () => {
  it.each([
    'user.otp',
    'user[otp]',
    'auth[pin]',
    'user.pin',
    '$.pin',
    'otp[0]',
    'otp.0',
    'ns:otp',
    '@pin',
    '#otp',
    'a/pin',
    'pin.a',
  ])('D1-18: is secret if one of its names is: %s', (name) => {
    const body = (value: string) => JSON.stringify({ a: 1, [name]: value });
    expect(mask(body('ZQ'))).toBe(body('***'));
    expect(mask(`{"otp":1,${body('ZQ').slice(1)}`)).toBe(`{"otp":"***",${body('***').slice(1)}`);
    expect(mask(`a=1&${encodeURIComponent(name)}=ZQ`, FORM)).toBe(`a=1&${encodeURIComponent(name)}=***`);
    expect(mask(`a=1&${name}=ZQ`, FORM)).not.toContain('ZQ');
  });

  it.each(['user.shipping', 'a[pinned]', 'token.type', 'a.token_id', 'shop.in', 'api.version'])(
    'D1-18: is recorded with its value if none of its names is secret: %s',
    (name) => {
      const body = JSON.stringify({ [name]: 'a' });
      expect(mask(body)).toBe(body);
      expect(mask(`${name}=a`, FORM)).toBe(`${name}=a`);
    },
  );
});

describe('a secret name combined with other words', () => {
  it.each([
    'emailOtp',
    'sms_otp',
    'LOGIN-OTP',
    'userTotp',
    'walletMnemonic',
    'seedPhraseBackup',
    'mnemonicBackup',
    'privateKeyWif',
    'private_key_base64',
    'apiKeyPlaintext',
    'PrivateKeyHex',
    'passwordConfirmation',
    'password_repeat',
    'password2',
    'userPin',
    'wallet_pin',
    'accountPin',
    'confirmPin',
    'wallet_recovery_phrase',
    'userPasscode',
    'emailVerificationCode',
    'cardCvv',
    'wallet_private_keys_hex',
    'otpValue',
    'secret_value',
    'proxyAuthorization',
    'set-cookie',
    'secret1',
    'api_key_2',
    'privateKey3',
    'mnemonic-12',
    'password3',
    'pin1',
  ])('D1-18: is secret in a body, a form and a text: %s', (name) => {
    const body = (value: string) => JSON.stringify({ a: 1, [name]: value });
    expect(mask(body('ZQ'))).toBe(body('***'));
    expect(mask(`${name}=ZQ`, FORM)).toBe(`${name}=***`);
    expect(mask(`the ${name}: ZQ`, 'text/plain')).toBe(`the ${name}:***`);
    expect(recordedTarget(`/p?${name}=ZQ`).query).toBe(`${name}=***`);
  });

  it.each([
    'shipping',
    'pinned',
    'api_version',
    'spin',
    'opinion',
    'mapPin',
    'pinCount',
    'otpLength',
    'otpExpiresAt',
    'mnemonicLength',
    'privateKeyId',
    'apiKeyName',
    'passwordPolicy',
    'password_hash_algorithm',
    'token0',
    'token1',
    'tokenValue',
    'tokenStandard',
    'tokenAddress',
    'tokenSymbol',
    'secretName',
    'research',
    'searchable',
    'tank',
    'tangent',
    'seedling',
    'seedRound',
    'public_key',
    'authorized',
    'cookieConsent',
    'accessKeyId',
    'pinterest',
    'wifi',
    'publicKeyHex',
    'tokenIdHex',
  ])('D1-18: is not secret where it has another meaning: %s', (name) => {
    const body = JSON.stringify({ [name]: 'a', list: [{ [name]: 1 }] });
    expect(mask(body)).toBe(body);
    expect(mask(`{"otp":1,${body.slice(1)}`)).toBe(`{"otp":"***",${body.slice(1)}`);
    expect(mask(`${name}=a&b=1`, FORM)).toBe(`${name}=a&b=1`);
    expect(mask(`the ${name}: a`, 'text/plain')).toBe(`the ${name}: a`);
  });
});

describe('a body whose type is unknown', () => {
  const PARTS = '--b\r\nX-A: 1\r\nContent-Disposition: form-data; name="a"\r\n\r\nZQ\r\n--b--\r\n';
  it.each([
    ['XML', '<a><password>ZQ</password></a>'],
    ['XML after a byte order mark and blanks', '\ufeff\n <?xml version="1.0"?><a>ZQ</a>'],
    ['CSV with a column of secrets', 'user,password\nada,ZQ'],
    ['CSV with other separators', '"user";"api_key"\r\nada;ZQ'],
    ['multipart parts after another header', PARTS],
    ['multipart parts after a preamble', `preamble\r\n${PARTS}`],
  ])('D1-18: is not recorded: %s', (_name, body) => {
    for (const type of [FORM, 'text/plain', '']) expect(mask(body, type)).toBe('');
  });

  it('D1-18: is recorded if it is text', () => {
    for (const text of ['a < b', 'user, name\nada, b', 'Dear --b\nthanks']) expect(mask(text, 'text/plain')).toBe(text);
  });
});

describe('the subprotocol of a WebSocket', () => {
  it.each(['graphql-transport-ws', 'graphql-ws', 'graphql-transport-ws, graphql-ws', 'mqtt'])(
    'D1-18: is shown if it is known: %s',
    (value) => {
      expect(maskHeaders({ 'sec-websocket-protocol': value })).toEqual({ 'sec-websocket-protocol': value });
    },
  );

  it.each(['access_token, ZQ', 'graphql-ws, ZQ', 'token.ZQ', 'base64url.bearer.authorization.k8s.io.ZQ'])(
    'D1-18: is masked if it may be a token, since a browser can send one nowhere else: %s',
    (value) => {
      expect(maskHeaders({ 'sec-websocket-protocol': value })).toEqual({ 'sec-websocket-protocol': '***' });
    },
  );
});

it('D1-18: the private member of an algorithm key pair is masked', () => {
  expect(mask('{"kty":"AKP","pub":"x","priv":"ZQ"}')).toBe('{"kty":"AKP","pub":"x","priv":"***"}');
});

describe('a form or a query, in which all values are text', () => {
  it.each([
    'seed=5',
    'seed=-1.5',
    'entropy=128',
    'pin=true',
    'otp=false',
    'password=null',
    'pin=',
    'a=1;pin=true',
    'user[pin]=false',
    'seed=5&a=%20',
  ])('D1-18: records booleans, null and short numbers under seed or entropy: %s', (pairs) => {
    expect(mask(pairs, FORM)).toBe(pairs);
    expect(recordedTarget(`/p?${pairs}`).query).toBe(pairs);
    expect(maskHeaders({ referer: `https://h/p?${pairs}` })).toEqual({ referer: `https://h/p?${pairs}` });
  });

  it.each([
    'seed=ZQ',
    'seed=5ZQ',
    'seed=ZQ+ZQ',
    'pin=1234',
    'pin=trueZQ',
    'seed=12345678901234567890123456789012',
    'otp=000000',
    'pin=true;ZQ',
  ])('D1-18: has any other value masked: %s', (pair) => {
    const [name] = pair.split('=');
    expect(mask(`a=1&${pair}`, FORM)).toBe(`a=1&${name}=***`);
    expect(recordedTarget(`/p?${pair}`).query).toBe(`${name}=***`);
  });
});

describe('a hostile form or head', () => {
  const many = (piece: string, count: number) => piece.repeat(count);
  const compared = (text: string) => text.split('a=').length - 1;

  it('D1-18 D2-24: is compared up to a number of pairs, and masked after them', () => {
    const form = mask(`otp=ZQ&${many('a=%61&', 3_000)}b=ZQ`, FORM);
    expect([compared(form), form.slice(0, 16), form.slice(-10)]).toEqual([1_023, 'otp=***&a=%61&a=', 'a=%61&&***']);
    const semicolons = mask(`a=1${many(';a=%61', 3_000)}&otp=ZQ`, FORM);
    expect([compared(semicolons), semicolons.slice(-14)]).toEqual([1_025, ';a=***&otp=***']);
    for (const piece of ['?a=%61#', '?a=1', '#a=%3A', '&a=%3A']) {
      const { referer } = maskHeaders({ referer: `/p?otp=ZQ${many(piece, 500)}` });
      expect(String(referer)).toMatch(/^\/p\?otp=\*\*\*.*&\*\*\*$/);
      expect(String(referer).split(/[?#&]/).length - 1).toBe(129);
    }
  });

  it('D1-18 D2-24: is unchanged if it contains no secret', () => {
    for (const piece of ['?a=%61#', ';%61', '&a=%3A']) {
      const text = `/p?${many(piece, 500)}`;
      expect(maskHeaders({ referer: text })).toEqual({ referer: text });
    }
  });
});
