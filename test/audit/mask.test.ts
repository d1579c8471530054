import { describe, expect, it } from 'vitest';
import { maskBody, maskHeaders, maskQuery } from '../../src/audit/mask.ts';
import { SECRETS } from '../../src/audit/masked-names.ts';

const LIMIT = 65_536;

function mask(
  body: string | Buffer,
  type: string | undefined = 'application/json',
  maxBytes = LIMIT,
  truncated = false,
) {
  return maskBody(type, Buffer.from(body), { maxBytes, truncated });
}

describe('names of secrets', () => {
  it('1-06, D2-08: end in password, token or secret, or are Authorization or search, in any case', () => {
    const names = [
      'password',
      'token',
      'Authorization',
      'client_secret',
      'clientSecret',
      'newPassword',
      'refreshToken',
      'search',
    ];
    for (const name of names)
      expect([name, name.toUpperCase(), name.toLowerCase()].every((text) => SECRETS.isSecretKey(text))).toBe(true);
    for (const name of ['', 'pass', 'passwords', 'token_type', 'tokenId', 'secret_name', 'id', 'research']) {
      expect([name, SECRETS.isSecretKey(name)]).toEqual([name, false]);
    }
  });
});

/** What test/audit/mask-property.test.ts proves of any document, form or text, here once for each kind. */
describe('JSON bodies', () => {
  it.each([
    ['a string and a number', '{"password":"x","id":1,"token": 12.5e3 }', '{"password":"***","id":1,"token": "***" }'],
    ['an object', '{"a":[{"Authorization":{"x":[1,{"y":"}"}]},"b":2}]}', '{"a":[{"Authorization":"***","b":2}]}'],
    ['a search', '{"search":"x","a":[{"Search":{"b":1}}]}', '{"search":"***","a":[{"Search":"***"}]}'],
    ['an escaped key', '{"pass\\u0077ord":"x"}', '{"pass\\u0077ord":"***"}'],
    ['a byte order mark before it', '\ufeff{"token":"x"}', '\ufeff{"token":"***"}'],
    ['JSON in an escaped string', '{"text":"\\u007b\\"token\\":\\"x\\"}"}', '{"text":"{\\"token\\":\\"***\\"}"}'],
    ['JSON and then prose', '{"text":"{\\"token\\":\\"x\\"} or y"}', '{"text":"{\\"token\\":\\"***\\"} "}'],
    ['two documents', '{"text":"{\\"a\\":1}\\n{\\"\\\\u0074oken\\":\\"x\\"}"}', '{"text":"{\\"a\\":1}\\n"}'],
    ['a literal in a query', '{"query":"{ login(password: \\"x\\") { id } }"}', '{"query":"{ "}'],
    ['no secret', '{"query":"{ me { id } }","note":"[draft] text"}', '{"query":"{ me { id } }","note":"[draft] text"}'],
    ['a masked value', '{"query":"{ a(password: \\"***\\") }"}', '{"query":"{ a(password: \\"***\\") }"}'],
    ['a second document', '{"a":1}{"password":"x"}', '{"a":1}'],
    ['a name in single quotes', '{"a":1,\'password\':"x"}', '{"a":1,'],
    ['an invalid value', '{"token":[x9], "a":1}', '{"token":"***"'],
    ['text that is not JSON', 'password=x', ''],
  ])(
    '1-06, D2-08: the value of a secret key is replaced whole, and nothing after a syntax error is kept: %s',
    (...row) => {
      const [, body, expected] = row;
      expect(mask(body)).toBe(expected);
    },
  );

  it('D2-08: JSON documents in strings are masked to a depth of four, and replaced whole below it', () => {
    const wrap = (depth: number): string => (depth === 0 ? '{"token":"x9"}' : JSON.stringify([wrap(depth - 1)]));
    expect(mask(wrap(4))).toContain('token');
    expect(mask(wrap(5))).not.toContain('token');
    expect(mask(wrap(5))).not.toContain('x9');
  });

  it('D2-08: deep nesting does not overflow the stack', () => {
    const deep = '['.repeat(100_000);
    expect(mask(deep)).toBe('['.repeat(LIMIT));
    expect(mask(`{"token":${deep}${']'.repeat(100_000)},"a":1}`)).toBe('{"token":"***","a":1}');
  });

  it('D2-09: a body is masked before it is cut, and cut at a character boundary', () => {
    const secret = 'x'.repeat(100_000);
    expect(mask(`{"token":"${secret}","a":"é"}`, 'application/json', 22)).toBe('{"token":"***","a":"é');
    expect(mask(`{"token":"${secret}","a":"é"}`, 'application/json', 21)).toBe('{"token":"***","a":"');
    expect(mask(Buffer.from('{"a":"é').subarray(0, -1), 'application/json', 100, true)).toBe('{"a":"');
    expect(mask(Buffer.from([0x22, 0xff, 0x22]))).toBe('"\ufffd"');
  });
});

describe('other bodies', () => {
  const form = 'application/x-www-form-urlencoded; charset=utf-8';

  it.each([
    [form, 'grant_type=password&client_secret=a%20b&username=u', 'grant_type=password&client_secret=***&username=u'],
    [form, 'pass%77ord=x&%zz=1&user[password]=x&token[]=x', 'pass%77ord=***&%zz=1&user[password]=***&token[]=***'],
    [form, 'pass%2577ord=x&a=1&p%252561ssword=x', 'pass%2577ord=***&a=1&p%252561ssword=***'],
    [form, 'search=x&filter[Search]=x;a=1&research=y', 'search=***&filter[Search]=***&research=y'],
    [form, 'client+secret=x&a=1;token=x;b=2&c=1;2', 'client+secret=***&a=1;token=***&c=1;2'],
    [form, 'v=%7B%22token%22%3A%22x%22%7D&b=+1', 'v=%7B%22token%22%3A%22***%22%7D&b=+1'],
    [form, 'a=1&{"password":"x&y"}', 'a=1'],
    [undefined, ' {"password":"x"}', ' {"password":"***"}'],
    ['application/graphql-response+json', '{"token":"x"}', '{"token":"***"}'],
    ['text/plain', 'no route', 'no route'],
    ['text/plain', 'a\nAuthorization: Basic x\nb', 'a\nAuthorization:***'],
    ['application/x-ndjson', '{"token":"x"}\n{"a":1}\n\n{"token":\n"x"', '{"token":"***"}\n{"a":1}\n\n{"token":'],
    ['text/event-stream', ':\nid: 1\ndata: {"token":"x"}\r\n\r\n', ':\nid: 1\ndata: {"token":"***"}\r\n\r\n'],
    ['text/event-stream', 'data: {"token":\ndata: "x"}\n"y"\n\ndata', 'data: {"token":\ndata: "***"}\n\ndata'],
  ])('1-06, D2-08: %s is masked by its keys: %s', (type, body, expected) => {
    expect(mask(body, type ?? '')).toBe(expected);
  });

  it.each(['multipart/form-data; boundary=x', 'application/octet-stream', 'text/html', 'application/xml', ''])(
    'D2-08: a body of type "%s" has no keys to mask by and is not stored',
    (type) => {
      expect(mask('--x\r\npassword', type)).toBeNull();
    },
  );

  it('1-04: an empty body, and a body without a content type that is not JSON, are not stored', () => {
    expect(mask('')).toBeNull();
    expect(maskBody(undefined, Buffer.from('password=x'), { maxBytes: LIMIT, truncated: false })).toBeNull();
  });
});

describe('masking by additional names', () => {
  const byNames = (body: string, type = 'application/json') => {
    const names = new Set(['x', 'y']);
    return maskBody(type, Buffer.from(body), { maxBytes: LIMIT, truncated: true, wellFormed: true, names });
  };

  it.each([
    ['a member', '{"data": {"x" : "s", "z": "kept"}, "a": "x"}', '{"data": {"x" : "***", "z": "kept"}, "a": "x"}'],
    ['lists of objects', '{"data":[[{"x":{"a":["s"]},"z":2}],{"y":3}]}', '{"data":[[{"x":"***","z":2}],{"y":"***"}]}'],
    ['a name in escapes', '{"data":{"\\u0078":"s"}}', '{"data":{"\\u0078":"***"}}'],
    ['names next to secret keys', '{"token":"s","x":"s","a":1}', '{"token":"***","x":"***","a":1}'],
    ['a cut string', '{"x":"kep', '{"x":"***"'],
  ])('D2-21: masks %s, and nothing else', (_what, body, expected) => {
    expect(byNames(body)).toBe(expected);
    const [line, hidden] = [`:\n\nevent: next\ndata: ${body}\n\n`, `:\n\nevent: next\ndata: ${expected}`];
    expect(byNames(line, 'text/event-stream')).toContain(hidden);
    expect(byNames(`{"x":"s"}\n${body}`, 'application/x-ndjson')).toBe(`{"x":"***"}\n${expected}`);
  });

  it('D2-09 D2-21: records no part of a masked value, wherever the body is cut', () => {
    for (const given of ['ZQZQ', ['ZQ', ['Q']], { a: 'ZQ', b: [{ b: 'Z' }] }]) {
      for (const space of ['', ' ', '\n']) {
        const body = JSON.stringify({ a: 'kept', data: [{ x: given }] }, null, space);
        for (let at = 0; at <= body.length; at += 1) expect(byNames(body.slice(0, at)) ?? '').not.toMatch(/Z|Q/);
      }
    }
  });
});

describe('queries and headers', () => {
  it.each([
    ['?access_token=x&page=2', '?access_token=***&page=2'],
    ['?search=x&research=y', '?search=***&research=y'],
    ['page=2&v={"a":{"password":"x"}}', `page=2&v=${encodeURIComponent('{"a":{"password":"***"}}')}`],
    ['', ''],
    ['?a=b=c&&d', '?a=b=c&&d'],
  ])('D2-08: query %s', (query, expected) => {
    expect(maskQuery(query)).toBe(expected);
  });

  it('1-05: Authorization and similar headers are recorded as ***, in any letter case', () => {
    const headers = {
      AUTHORIZATION: 'Bearer x',
      'proxy-authorization': 'x',
      Cookie: 'a=x',
      'set-cookie': ['x'],
      'X-Api-Token': 'x',
    };
    expect(new Set(Object.values(maskHeaders(headers)))).toEqual(new Set(['***']));
    expect(Object.keys(maskHeaders(headers))).toEqual(Object.keys(headers));
  });

  it.each([
    ['/graphql', 'query={a}&variables={"b":"x&y"}&operationName=N', 'query=***&variables=***&***&operationName=N'],
    ['//Graphql/', 'Query=mutation{x(y:"x")}&extensions[a]=x&first=2', 'Query=***&extensions[a]=***&first=2'],
    ['/graphql', 'mutation{x(password:"x")}', '***'],
    ['/v1/accounts', 'query=kept', 'query=kept'],
  ])('D2-21: in the query of %s a GraphQL operation is masked, and nothing else: %s', (path, query, expected) => {
    expect(maskQuery(query, path)).toBe(expected);
  });

  it.each([
    ['referer', 'http://h/p?token=x&a=1#access_token=y', 'http://h/p?token=***&a=1#access_token=***'],
    ['referer', 'https://h:1/graphql?query=mutation%20%7B&first=2', 'https://h:1/graphql?query=***&first=2'],
    ['referer', 'http://h/p?search=x&research=y', 'http://h/p?search=***&research=y'],
    ['x-request-uri', 'GET /p?pass%77ord=x', 'GET /p?pass%77ord=***'],
    ['x-any', 'see http://h/p?a=1?token=x', 'see http://h/p?a=1?token=***'],
    ['x-any', 'why? token=x', 'why? token=***'],
    ['link', '<https://h/a?p=1>; rel="prev", <b?token=x>', '<https://h/a?p=1>; rel="prev", <b?token=***'],
    ['link', '<a?a=1>, <https://h/graphql?query={a}>', '<a?a=1>, <https://h/graphql?query=***'],
    ['x-original-uri', '/graphql?query={x(a:"?b=c")}', '/graphql?query=***'],
    ['sec-ch-ua', '"Not?A_Brand";v="8", "Chromium";v="120"', '"Not?A_Brand";v="8", "Chromium";v="120"'],
  ])('1-04 D2-08 D2-21: %s: %s shows as %s', (name, value, expected) => {
    expect(maskHeaders({ [name]: [value, 'kept'], 'x-none': undefined })).toEqual({ [name]: [expected, 'kept'] });
  });

  const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln-bmF0_dXJl';

  it.each([
    ['sec-websocket-protocol', `graphql-transport-ws, ${JWT}`, '***'],
    ['sec-websocket-protocol', `bearer-${JWT},x`, '***'],
    ['x-any', `"${JWT}" and ${JWT}`, '"***" and ***'],
    ['x-any', 'eyJhbGciOiJkaXIifQ..aXY.Y3Q.dGFn', '***'],
    ['x-original-uri', `/p/${JWT}/q?x=${JWT}&y=1`, '/p/***/q?x=***&y=1'],
    ['x-any', 'eyJhbGciOiJIUzI1NiJ9.one', 'eyJhbGciOiJIUzI1NiJ9.one'],
  ])('D2-08: a JWT in %s is masked, and nothing else: %s', (name, value, expected) => {
    expect(maskHeaders({ [name]: value })).toEqual({ [name]: expected });
  });

  it('D2-08: a header over 4 KiB is masked, or cut there with a mark', () => {
    const long = 'é'.repeat(50_000);
    const headers = maskHeaders({
      authorization: `Bearer ${long}`,
      'x-long': long,
      'x-fits': 'a'.repeat(4_096),
      'x-many': [long, 'a'],
    });
    expect(headers.authorization).toBe('***');
    expect(headers['x-long']).toBe(`${'é'.repeat(2_046)}…`);
    expect(headers['x-fits']).toBe('a'.repeat(4_096));
    expect(headers['x-many']).toEqual([headers['x-long'], 'a']);
    const referer = maskHeaders({ referer: `/p?a=${'a'.repeat(4_000)}&token=${'Z'.repeat(9_000)}` }).referer;
    expect(referer).toMatch(/&token=\*\*\*…$/);
  });
});
