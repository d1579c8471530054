/** What a spelling of a registered path is: the same path, none that is registered (404), or not even a word of a request line (400). */
export type Verdict = 'same' | 'other' | 'no request';

export interface Spelling {
  name: string;
  spell: (path: string) => string;
  verdict: Verdict;
  /** Whether it is another path only where nothing is a parameter, which would take it for its value. */
  literal?: boolean;
}

type Between = [text: string, verdict?: Verdict];

function escaped(text: string): string {
  return [...text].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
}

/** What a parameter before or behind it takes for a part of its value. */
const VALUES: ReadonlySet<string> = new Set([';/', '%20/', '/%09', '%3F/', '%23/']);

/** In the place of the last slash, and of the one behind the version. */
const slashes: Spelling[] = (
  [
    ...[
      '%2F',
      '%2f',
      '%5C',
      '%5c',
      '\\',
      '/\\',
      '\\/',
      '//',
      '///',
      '/%2F',
      '%2F/',
      '%252F',
      '%252f',
      '%255C',
      '%25252F',
    ],
    ...['/./', '/%2e/', '/%2E/', '/x/../', '/x/..\\', '/x/%2e%2e/', '/x/%2E%2E/', '/x/.%2e/', '/x/%2e./', '/x/..%2f'],
    ...[
      '/x/..%5c',
      '/x/..%2F..%2Fx/',
      '/x/%252e%252e/',
      '/..;/',
      '/;/',
      '/.;/',
      ';/',
      '/x/..;a=b/',
      '/%20/',
      '%20/',
      '/%09',
    ],
    ...[
      '%C0%AF',
      '%c0%af',
      '%E0%80%AF',
      '%F0%80%80%AF',
      '%C0%2F',
      '/%C0%AE%C0%AE/',
      '%EF%BC%8F',
      '%E2%88%95',
      '%E2%81%84',
    ],
    ...['\u00ef\u00bc\u008f', '%u2215', '%00/', '/%00', '%3F/', '%23/', '/:/', '/*/', '/~/', '|', '.', ''],
    ...['#/', '\0/', '\t/', '\r/', '\x7f/', '\x01/'],
    ...[[' /', 'no request'] as Between, ['\n/', 'no request'] as Between, ['\r\n/', 'no request'] as Between],
  ] as (string | Between)[]
).flatMap((one): Spelling[] => {
  const [text, verdict = 'other'] = typeof one === 'string' ? ([one] as Between) : one;
  return [
    {
      name: `${JSON.stringify(text)} behind the version`,
      spell: (path) => path.replace(/^(\/\w+)\//, `$1${text.replaceAll('$', '$$')}`),
      verdict,
    },
    {
      name: `${JSON.stringify(text)} before the last segment`,
      spell: (path) => path.replace(/\/(?=[^/]*$)/, () => text),
      verdict,
      literal: VALUES.has(text),
    },
  ];
});

/** Before the path. */
const prefixes: Spelling[] = (
  [
    ...[
      '/',
      '//',
      '/.',
      '/..',
      '/%2e',
      '/%2E%2e',
      '/.%2e',
      '/%2F',
      '/%5C',
      '/\\',
      '/x/..',
      '/health/..',
      '/health/%2e%2e',
    ],
    ...[
      '/swagger/..',
      '/swagger/%2e%2e',
      '/swagger/x/../..',
      '/v2/mcp/../..',
      '/v2/mcp/%2e%2e/%2E%2E',
      '/v2/mcp/..%2f..',
    ],
    ...[
      '/graphql/..',
      '/graphql/%2e%2e',
      '/v2/oauth/token/../../..',
      '/health;',
      '/health;/..',
      '/health%3F/..',
      '/health%00',
    ],
    ...[
      '/health#',
      '/%00',
      '/%20',
      '/%0d%0a',
      '/%ff',
      '/%',
      '/~',
      '/:',
      '/*',
      '/C:',
      '/http://x',
      '/http:/x',
      '/localhost',
    ],
    ...['*', '%2F', '.', '..', '\\', '@', 'x', '\u00e9', '?', '#', 'http:', 'http://', 'file://', 'ftp://x', 'ws://x'],
    ...[
      'javascript:',
      'data:,',
      'http://x/',
      'http://x/.',
      'http://x/..',
      'http://x/%2e%2e',
      'http://x\\',
      'http://x?',
      'http://x#',
    ],
    ...['http://x/x/..', 'http://x%2F', 'http://@', 'http://a@b@c', 'http://x:y', 'http://[::1'],
  ] as const
).map((text) => ({ name: `${text} before it`, spell: (path) => text + path, verdict: 'other' as const }));

const absolute: Spelling[] = [
  ...[
    'http://portcullis',
    'http://other.example',
    'HTTP://PORTCULLIS',
    'https://portcullis:443',
    'http://127.0.0.1:99',
  ],
  ...['http://[::1]:80', 'http://user@portcullis', 'https://user:pass@portcullis'],
].map((text) => ({ name: `absolute: ${text}`, spell: (path) => text + path, verdict: 'same' as const }));

/** Behind the path: another one, but where it is a part of a parameter. */
const suffixes: Spelling[] = [
  ...[
    '.',
    '..',
    '...',
    '.json',
    '.html',
    '%20',
    '%0a',
    '%0d%0aX-A:b',
    '%09',
    ';',
    ';a=b',
    ';jsessionid=1',
    '%3B',
    '%3Fpage=1',
  ],
  ...[
    '%23',
    '~',
    '*',
    ':80',
    '@x',
    ',',
    '+',
    '&a=b',
    '=',
    '%7F',
    '%26',
    '%25',
    '%252e',
    '%252F',
    '%E2%80%8B',
    '%C3%A9',
    '\u00c3\u00a9',
    '%EF%BB%BF',
  ],
  ...['%41'.repeat(10_000)],
].map((text) => ({
  name: `${text.slice(0, 20)} behind it`,
  spell: (path) => path + text,
  verdict: 'other' as const,
  literal: true,
}));

const ends: Spelling[] = [
  ...[
    '/',
    '//',
    '/.',
    '/..',
    '/%2e',
    '/x',
    '/;a=b',
    '%2F',
    '%2f',
    '%5C',
    '\\',
    '%00',
    '%00.json',
    '%',
    '%2',
    '%zz',
    '%u0041',
    '%+1',
    '% 1',
  ],
  ...['%FF', '%C0%AF', '%C0%80', '%E0%80%AF', '%ED%A0%80', '%F5%80%80%80', '%80', '#', '#x', '#?page=1', '?a#b'],
].map((text) => ({
  name: `${text} behind it`,
  spell: (path) => path + text,
  verdict: text.includes(' ') ? ('no request' as const) : ('other' as const),
}));

/** A query is none of the path's business. */
const queries: Spelling[] = [
  '?',
  '??',
  '?a?b',
  '?/../../health',
  '?%00%2F..%zz',
  '?%',
  '?a=//\\',
  '?;',
  `?a=${'x'.repeat(100_000)}`,
].map((text) => ({
  name: `the query ${text.slice(0, 20)}`,
  spell: (path) => path + text,
  verdict: 'same' as const,
}));

/** An `s`, which every path has and no id: letters that some take for it, and its escapes. */
const letters: Spelling[] = (
  [
    ...[
      'S',
      '%53',
      '%C5%BF',
      '\u00c5\u00bf',
      '%D1%95',
      '%EF%BD%93',
      '%C1%B3',
      '%E0%81%B3',
      '%2573',
      '%25%37%33',
      '%u0073',
      '%s',
      '%7',
      '$',
      's%E2%80%8D',
      's%CC%87',
    ],
    ...[['%73', 'same'] as Between],
  ] as (string | Between)[]
).map((one) => {
  const [text, verdict = 'other'] = typeof one === 'string' ? ([one] as Between) : one;
  return { name: `${text} for s`, spell: (path) => path.replace('s', () => text), verdict };
});

const wholes: Spelling[] = [
  { name: 'a query behind the version', spell: (path) => path.replace(/^(\/\w+)\//, '$1?/'), verdict: 'other' },
  { name: 'capitals', spell: (path) => path.toUpperCase(), verdict: 'other' },
  { name: 'the version in a capital', spell: (path) => path.replace('/v', '/V'), verdict: 'other' },
  { name: 'the version in a capital that is escaped', spell: (path) => path.replace('/v', '/%56'), verdict: 'other' },
  {
    name: 'the version escaped',
    spell: (path) => path.replace(/^\/(v\d)/, (_all, version: string) => `/${escaped(version)}`),
    verdict: 'same',
  },
  { name: 'every character escaped', spell: (path) => path.replace(/[^/]+/g, escaped), verdict: 'same' },
  {
    name: 'every character escaped in capitals',
    spell: (path) => path.replace(/[^/]+/g, (text) => escaped(text).toUpperCase()),
    verdict: 'same',
  },
  {
    name: 'every character escaped twice',
    spell: (path) => path.replace(/[^/]+/g, (text) => escaped(text).replaceAll('%', '%25')),
    verdict: 'other',
  },
  { name: 'slashes escaped too', spell: escaped, verdict: 'other' },
  { name: 'no slash before it', spell: (path) => path.slice(1), verdict: 'other' },
  { name: 'a way in of 10,000 turns', spell: (path) => `${'/x/..'.repeat(10_000)}${path}`, verdict: 'other' },
  { name: 'a way in of 10,000 slashes', spell: (path) => '/'.repeat(10_000) + path, verdict: 'other' },
  { name: 'a first segment of 100,000 letters', spell: (path) => `/${'a'.repeat(100_000)}${path}`, verdict: 'other' },
  { name: 'an asterisk', spell: () => '*', verdict: 'other' },
  { name: 'an authority', spell: () => 'portcullis:80', verdict: 'other' },
  { name: 'an authority and a path', spell: (path) => `portcullis:80${path}`, verdict: 'other' },
];

export const SPELLINGS: readonly Spelling[] = [
  ...[slashes, prefixes, absolute, suffixes, ends, queries, letters, wholes].flat(),
];
