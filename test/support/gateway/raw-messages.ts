import { answered, BODY, CHUNKED, CHUNKS, closing, get, LENGTH, OWN, post, type RawRow, refused } from './raw-row.ts';

const health = get('/health');
const pipelines: RawRow[] = [
  answered('two requests at once', health.repeat(2), 200, 200),
  answered('twenty requests at once', health.repeat(20), ...Array(20).fill(200)),
  answered(
    'slow and quick ones at once',
    `${post([LENGTH], BODY)}${health}${get('/v1/accounts')}${post([CHUNKED], CHUNKS)}${health}`,
    ...[200, 200, 401, 200, 200],
  ),
  {
    ...answered('HEAD among others', `${health}${health.replace('GET', 'HEAD')}${health}`, 200, 200, 200),
    methods: ['GET', 'HEAD'],
  },
  answered(
    'refused ones among others',
    `${health}${get('/nowhere')}${get('/v1/accounts')}${health}`,
    200,
    404,
    401,
    200,
  ),
  closing('a broken one behind nine', `${health.repeat(9)}BROKEN\r\n\r\n${health}`, ...Array(9).fill(200)),
  closing('a broken head in the middle', `${health}${get('/health', 'A b: c')}${health}`, 200),
  closing('one of two hosts in the middle', `${health}${get('/health', 'Host: y')}${health}`, 200, 400),
  closing('a last one in the middle', `${health}${get('/health', 'Connection: close')}${health}`, 200, 200),
  closing('HTTP/1.0 in the middle', `${health}${health.replace('HTTP/1.1', 'HTTP/1.0')}${health}`, 200, 200),
  closing(
    'a body that nobody reads, before others',
    `POST /nowhere HTTP/1.1\r\n${OWN}Content-Length: ${health.length}\r\n\r\n${health}${health}`,
    404,
  ),
];

const expectations: RawRow[] = [
  { ...answered('a body that waits for leave', post([LENGTH, 'Expect: 100-continue'], BODY), 200), interim: [100] },
  { ...answered('the same in capitals', post([LENGTH, 'EXPECT: 100-CONTINUE'], BODY), 200), interim: [100] },
  closing('leave for a body over the limit', post(['Content-Length: 300000', 'Expect: 100-continue'], ''), 400),
  closing('leave for no body', get('/health', 'Expect: 100-continue'), 200),
  closing('two expectations', get('/health', 'Expect: 100-continue, wonders'), 200),
  closing('leave in HTTP/1.0', post([LENGTH, 'Expect: 100-continue'], BODY, 'HTTP/1.0'), 200),
  closing(
    'leave for what is refused',
    `POST /v1/wallets/x/rules HTTP/1.1\r\n${OWN}${LENGTH}\r\nExpect: 100-continue\r\n\r\n${BODY}`,
    401,
  ),
];

function method(name: string, target = '/health', ...lines: string[]): string {
  return get(target, ...lines).replace('GET', name);
}

const methods: RawRow[] = [
  { ...answered('HEAD', method('HEAD'), 200), methods: ['HEAD'] },
  { ...answered('HEAD of what is not there', method('HEAD', '/v1/accounts'), 404), methods: ['HEAD'] },
  answered('OPTIONS', method('OPTIONS'), 204),
  answered('OPTIONS of nothing', method('OPTIONS', '/nowhere/at/all'), 204),
  answered('OPTIONS *', method('OPTIONS', '*'), 404),
  answered('TRACE', method('TRACE'), 404),
  answered('TRACE with credentials', method('TRACE', '/v1/accounts', 'Authorization: {basic}', 'Cookie: a=b'), 404),
  ...['PROPFIND', 'PATCH', 'DELETE', 'PURGE', 'QUERY', 'M-SEARCH', 'LINK'].map((name) =>
    answered(name, method(name), 404),
  ),
  ...['BREW', 'get', 'Get', 'GE', 'GETS', 'G\0T', 'GET,POST'].map((name) =>
    refused(`the method ${JSON.stringify(name)}`, method(name)),
  ),
  closing('CONNECT', method('CONNECT', 'x.example:443'), 404),
  closing('CONNECT to a path', method('CONNECT', '/v1/accounts', 'Authorization: {basic}'), 404),
  closing('CONNECT to here', method('CONNECT', 'http://x/health'), 404),
  answered('GET with a body', `${get('/health', 'Content-Length: 5')}12345`, 200),
  answered('GET with chunks', `${get('/health', CHUNKED)}${CHUNKS}`, 200),
  answered('OPTIONS with a body', `${method('OPTIONS', '/x', 'Content-Length: 5')}12345`, 204),
];

const TWO = ['Authorization: Bearer a', 'X-Between: 1', 'Authorization: Bearer b'];
const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
const H2 = 'HTTP2-Settings: AAMAAABkAAQAAP__';
const SOCKET = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', KEY];

const upgrades: RawRow[] = [
  closing('an upgrade to h2c', get('/health', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', H2), 200),
  closing('an upgrade to TLS', get('/health', 'Connection: Upgrade', 'Upgrade: TLS/1.0'), 200),
  closing('an upgrade to an older WebSocket', get('/health', ...SOCKET).replace(': 13', ': 8'), 200),
  closing('an upgrade by POST', method('POST', '/nowhere', ...SOCKET), 404),
  closing('an upgrade without a key', get('/health', ...SOCKET.slice(0, 3)), 200),
  closing('an upgrade that Connection does not name', get('/health', ...SOCKET.slice(1)), 200),
  closing('an upgrade in HTTP/1.0', get('/graphql', ...SOCKET).replace('HTTP/1.1', 'HTTP/1.0'), 401),
  closing('a WebSocket where there is none', get('/health', ...SOCKET), 200),
  closing('a WebSocket without a token', get('/v1/accounts', ...SOCKET), 401),
  closing('a WebSocket behind a body', `${get('/health', ...SOCKET, 'Content-Length: 5')}12345`, 400),
  closing('a WebSocket behind chunks', `${get('/health', ...SOCKET, CHUNKED)}${CHUNKS}`, 400),
  closing('a WebSocket to nowhere', get('/nowhere', ...SOCKET), 404),
  closing('a WebSocket with two Authorizations', get('/graphql', ...SOCKET, ...TWO), 400),
  closing('two Authorizations to nowhere', get('/nowhere', ...TWO), 400),
];

const connections: RawRow[] = [
  ...['close', 'Close', 'close, keep-alive', 'keep-alive, close'].map((value) =>
    closing(`Connection: ${value}`, get('/health', `Connection: ${value}`), 200),
  ),
  ...['keep-alive', 'x', '', 'Host, X-Correlation-ID'].map((value) =>
    answered(`Connection: ${value}`, get('/health', `Connection: ${value}`), 200),
  ),
  answered('Keep-Alive of its own', get('/health', 'Keep-Alive: timeout=99999, max=0'), 200),
];

/** Requests in a row, their methods, and what a connection is asked to become, by RFC 9110 sections 7 to 10 and RFC 9112 section 9. */
export const MESSAGE_ROWS: readonly RawRow[] = [pipelines, expectations, methods, upgrades, connections].flat();
