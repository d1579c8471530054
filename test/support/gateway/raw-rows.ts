/** Bytes on a connection, and what comes back. Behind them stands one more request, which tells whether the two sides agree where they end. */
export interface RawRow {
  name: string;
  /** `{id}` stands for a correlation id of its own. */
  bytes: string;
  /** The statuses of the answers, in order. */
  answers: number[];
  /** Interim answers. */
  interim?: number[];
  /** Whether the request behind the bytes is answered, and the connection was kept until then. */
  goesOn?: boolean;
  methods?: string[];
}

/** The lines that every good request of the tables has. */
const OWN = 'Host: x\r\nX-Correlation-ID: {id}\r\n';

/** What the gateway answers, and goes on. */
function answered(name: string, bytes: string, ...answers: number[]): RawRow {
  return { name, bytes, answers, goesOn: true };
}

/** What the gateway answers last. */
function closing(name: string, bytes: string, ...answers: number[]): RawRow {
  return { name, bytes, answers };
}

/** What is no request: 400, or 404 where the target is no path. */
function refused(name: string, bytes: string, status: 400 | 404 = 400): RawRow {
  return { name, bytes, answers: [status] };
}

const at = '2026-11-21T00:00:00Z';
/** A good notification, its length, and the same in chunks. */
const BODY = JSON.stringify({ id: 'raw', type: 1, status: 1, created_at: at, updated_at: at });
const LENGTH = `Content-Length: ${BODY.length}`;
const CHUNKED = 'Transfer-Encoding: chunked';
const CHUNKS = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;

/** A notification; `{basic}` stands for good credentials. */
function post(lines: string[], body: string, version = 'HTTP/1.1'): string {
  const head = ['Authorization: {basic}', 'Content-Type: application/json', ...lines];
  return `POST /v2/webhooks/custodial ${version}\r\n${OWN}${head.map((text) => `${text}\r\n`).join('')}\r\n${body}`;
}

/** A GET with its own lines. */
function get(target: string, ...lines: string[]): string {
  return `GET ${target} HTTP/1.1\r\n${OWN}${lines.map((text) => `${text}\r\n`).join('')}\r\n`;
}

function line(text: string): string {
  return `${text}\r\n${OWN}\r\n`;
}

/** Returns the bytes of a text in UTF-8, as characters. */
function latin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function headed(...lines: string[]): string {
  return `GET /health HTTP/1.1\r\n${OWN}${lines.map((text) => `${text}\r\n`).join('')}\r\n`;
}

function hosted(...lines: string[]): string {
  const hosts = lines.map((text) => `Host:${text}\r\n`).join('');
  return `GET /health HTTP/1.1\r\nX-Correlation-ID: {id}\r\n${hosts}\r\n`;
}

const requestLines: RawRow[] = [
  answered('two spaces before the target', line('GET  /health HTTP/1.1'), 200),
  answered('If-None-Match with anything', headed('If-None-Match: *'), 200),
  answered('empty lines before the request', `\r\n\r\n${line('GET /health HTTP/1.1')}`, 200),
  refused('tabs for spaces', line('GET\t/health\tHTTP/1.1')),
  refused('no target', line('GET HTTP/1.1'), 404),
  ...['/health?q=é', '/v1/héalth', 'é', '/v1/accounts?search=\u2603', '/\ufeff', '/health#\u00e9', 'http://x/é'].map(
    (target) => refused(`the target ${target} in UTF-8`, latin1(line(`GET ${target} HTTP/1.1`))),
  ),
  ...['\x01', '\x7f', '\x80', '\xff', '\0', '\t'].map((byte) =>
    refused(`the byte ${byte.charCodeAt(0)} in the target`, line(`GET /health?${byte} HTTP/1.1`)),
  ),
  refused('a space in the target', line('GET /health?q=a b HTTP/1.1')),
  refused('a space before the method', line(' GET /health HTTP/1.1')),
  refused('a space behind the version', line('GET /health HTTP/1.1 ')),
  refused('a line that ends in LF', `GET /health HTTP/1.1\n${OWN}\r\n`),
  refused('a method of 10,000 letters', line(`${'G'.repeat(10_000)} /health HTTP/1.1`)),
  refused('a target of 200,000 letters', line(`GET /${'a'.repeat(200_000)} HTTP/1.1`)),
  answered('a target of 100,000 letters', line(`GET /${'a'.repeat(100_000)} HTTP/1.1`), 404),
  refused('the hello of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
  refused('a line of the PROXY protocol', `PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n${line('GET /health HTTP/1.1')}`),
];

const OLD = 'GET /health HTTP/1.0\r\nX-Correlation-ID: {id}\r\n';
const versions: RawRow[] = [
  closing('HTTP/1.0', `${OLD}\r\n`, 200),
  answered('HTTP/1.0 kept alive', `${OLD}Connection: keep-alive\r\n\r\n`, 200),
  closing('no version', `GET /health\r\n${OWN}\r\n`, 400),
  refused('no version and no header', 'GET /health\r\n'),
  closing('HTTP/2.0', line('GET /health HTTP/2.0'), 400),
  closing('another protocol', line('DESCRIBE /health RTSP/1.0'), 404),
  refused('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  ...'HTTP/1.2|HTTP/3.0|HTTP/1.10|HTTP/11|HTTP/1|HTTP/1,1|http/1.1|HTP/1.1|HTTP/1.1x|HTTP /1.1'
    .split('|')
    .map((version) => refused(`the version ${version}`, line(`GET /health ${version}`))),
];

const hosts: RawRow[] = [
  ...['', ' ', ' x', ' x:80', ' x:', ' [::1]:4000', ' 127.0.0.1', ' X.example.'].map((host) =>
    answered(`the host "${host}"`, hosted(host), 200),
  ),
  ...[' a b', ' a/b', ' user@x', ' x:port', ' x:80:80', ' [::1', ' http://x', ' a\\b', ' \u00e9', ' a, b'].map((host) =>
    closing(`the host "${host}"`, hosted(host), 400),
  ),
  closing('one host twice', hosted(' x', ' x'), 400),
  closing('two hosts', hosted(' x', ' y'), 400),
  closing('two hosts in HTTP/1.0', hosted(' x', ' y').replace('HTTP/1.1', 'HTTP/1.0'), 400),
  closing('no host', 'GET /health HTTP/1.1\r\nX-Correlation-ID: {id}\r\n\r\n', 400),
  closing('no host beside an absolute target', 'GET http://x/health HTTP/1.1\r\nX-Correlation-ID: {id}\r\n\r\n', 400),
];

function many(count: number, value: string): string[] {
  return Array.from({ length: count }, (_, at) => `X-${at}: ${value}`);
}

const sizes: RawRow[] = [
  answered('900 headers', headed(...many(900, 'v')), 200),
  refused('1,100 headers', headed(...many(1_100, 'v'))),
  answered('a header of 150,000 bytes', headed(`X-Long: ${'x'.repeat(150_000)}`), 200),
  refused('headers of 200,000 bytes together', headed(...many(100, 'x'.repeat(2_000)))),
  refused('a name of 200,000 bytes', headed(`${'X'.repeat(200_000)}: v`)),
];

const BAD_NAMES = ['A b: c', 'A : c', ': c', 'A', 'A\0B: c', 'A\x7f: c', '\u00e9: c', 'A(b): c', ' A: b', '\tA: b'];
const names: RawRow[] = [
  answered('a name in another case', headed('X-TARGET-SERVER: nobody'), 404),
  answered('a name of every kind of character', headed("!#$%&'*+-.^_`|~09aZ: v"), 200),
  ...BAD_NAMES.map((text) => refused(`the header ${JSON.stringify(text)}`, headed(text))),
];

const BAD_VALUES = [
  'A: b\r\n c',
  'A:\r\n b',
  'A: b\nC: d',
  'A: b\rC: d',
  'A: b\r',
  'A: b\0c',
  'A: b\x01c',
  'A: b\x7fc',
];
const values: RawRow[] = [
  ...['A:', 'A:b', 'A: \t b \t ', 'A: b\tc', 'A: \u00e9\u00ff', 'A: :::'].map((text) =>
    answered(`the header ${JSON.stringify(text)}`, headed(text), 200),
  ),
  ...BAD_VALUES.map((text) => refused(`the header ${JSON.stringify(text)}`, headed(text))),
  refused('headers that end in LF', `GET /health HTTP/1.1\r\n${OWN}\n`),
];

/** The head of a request, by RFC 9112 sections 2 to 5. */
export const HEAD_ROWS: readonly RawRow[] = [requestLines, versions, hosts, sizes, names, values].flat();

const N = BODY.length;
const SIZE = N.toString(16);

const lengths: RawRow[] = [
  ...[` ${N}`, `${N}`, `\t${N} \t`, ` 000${N}`].map((length) =>
    answered(`the length "${length}"`, post([`Content-Length:${length}`], BODY), 200),
  ),
  ...['', `+${N}`, '-1', '0x5', `${N}.0`, '1e2', '5 5', `${N}, ${N}`, '\u0665', '9'.repeat(1_000)].map((length) =>
    refused(`the length "${length}"`, post([`Content-Length: ${length}`], BODY)),
  ),
  refused('one length twice', post([LENGTH, LENGTH], BODY)),
  refused('two lengths', post([LENGTH, 'Content-Length: 5'], BODY)),
  refused('a length behind a space', post([`Content-Length : ${N}`], BODY)),
  refused('a folded length', post([`Content-Length:\r\n ${N}`], BODY)),
  closing('a length by another name', post([LENGTH.replace('-', '_')], BODY), 400),
  closing('a length over the limit', post(['Content-Length: 9007199254740991'], BODY), 400),
  closing('a body behind the length', post(['Content-Length: 2'], '{}XX'), 400),
  closing('a byte behind a complete notification', post([LENGTH], `${BODY}}`), 200),
  answered('a length of nothing', post(['Content-Length: 0'], ''), 400),
];

const coded = (coding: string) => post([`Transfer-Encoding: ${coding}`], CHUNKS);

const codings: RawRow[] = [
  ...['chunked', 'Chunked', '\tchunked '].map((coding) => answered(`the coding "${coding}"`, coded(coding), 200)),
  ...['', 'chunked, identity', 'chunked, chunked', '\vchunked', 'chunked\0'].map((coding) =>
    refused(`the coding "${coding}"`, coded(coding)),
  ),
  ...['identity', 'xchunked', 'chunked;q=1', '"chunked"', 'gzip, chunked', 'x, y, chunked'].map((coding) =>
    closing(`the coding "${coding}"`, coded(coding), 400),
  ),
  refused('chunked twice', post([CHUNKED, CHUNKED], CHUNKS)),
  refused('chunked before a length', post([CHUNKED, LENGTH], CHUNKS)),
  refused('chunked behind a length', post([LENGTH, CHUNKED], CHUNKS)),
  refused('chunked behind a space', post(['Transfer-Encoding : chunked'], CHUNKS)),
  refused('chunked on a folded line', post(['Transfer-Encoding:\r\n chunked'], CHUNKS)),
  closing('chunked by another name', post([CHUNKED.replace('-', '_')], CHUNKS), 400),
  closing('chunked in HTTP/1.0', post([CHUNKED, 'Connection: keep-alive'], CHUNKS, 'HTTP/1.0'), 400),
];

const chunked = (chunks: string) => post([CHUNKED], chunks);
const trailed = (trailers: string) => chunked(CHUNKS.replace(/\r\n$/, `${trailers}\r\n\r\n`));
const BYTES = [...BODY].map((byte) => `1\r\n${byte}\r\n`).join('');

const chunks: RawRow[] = [
  answered('leading zeros and capitals', chunked(CHUNKS.replace(SIZE, `000${SIZE.toUpperCase()}`)), 200),
  answered('a chunk for each byte', chunked(`${BYTES}0\r\n\r\n`), 200),
  ...[';a=b', ';a', ';a="b c"', ';a=b;c=d'].map((extension) =>
    answered(`the extension ${extension}`, chunked(CHUNKS.replace(SIZE, `${SIZE}${extension}`)), 200),
  ),
  ...['', 'g', '-1', '+5', '0x5', ' 5', `${SIZE} `, `${SIZE}\n`, `${SIZE}\r`, 'f'.repeat(17), `${SIZE};a\0`].map(
    (size) => closing(`the size ${JSON.stringify(size)}`, chunked(CHUNKS.replace(SIZE, size)), 400),
  ),
  closing('an extension of 20,000 bytes', chunked(CHUNKS.replace(SIZE, `${SIZE};a=${'b'.repeat(20_000)}`)), 400),
  closing('a size that ends in LF', chunked(CHUNKS.replace(`${SIZE}\r`, SIZE)), 400),
  closing('a chunk that is longer than its size', chunked(CHUNKS.replace('}', '}}}}')), 400),
  closing('a chunk that ends in LF', chunked(CHUNKS.replace('}\r\n', '}\n')), 400),
  answered('trailers', trailed('X-A: b'), 200),
  answered('trailers that would frame', trailed('Host: y\r\nX-Target-Server: z'), 200),
  answered(
    'a trailer that would grant',
    trailed('Authorization: {basic}').replace('Authorization: {basic}\r\n', ''),
    401,
  ),
  closing('a trailer without a colon', trailed('A b'), 400),
  closing('trailers of 200,000 bytes', trailed(`A: ${'x'.repeat(200_000)}`), 400),
];

/** Bodies and their ends, by RFC 9112 sections 6 and 7. */
export const BODY_ROWS: readonly RawRow[] = [lengths, codings, chunks].flat();

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
