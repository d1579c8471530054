import { answered, closing, OWN, type RawRow, refused } from './raw-row.ts';

function line(text: string): string {
  return `${text}\r\n${OWN}\r\n`;
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
