/** What a spelling of a registered path is: the same path, a path that is not registered (404), or no request line (400). */
type Verdict = 'same' | 'other' | 'no request';

export interface Spelling {
  name: string;
  spell: (path: string) => string;
  verdict: Verdict;
  /** Whether it is another path only without parameters: a parameter would take it as part of its value. */
  literal?: boolean;
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

function escaped(text: string): string {
  return [...text].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
}

function all(texts: readonly string[], verdict: Verdict, name: string, spell: (text: string, path: string) => string) {
  return texts.map((text): Spelling => {
    return { name: `${JSON.stringify(text.slice(0, 40))} ${name}`, spell: (path) => spell(text, path), verdict };
  });
}

/** A parameter takes these as part of its value. */
const VALUES: ReadonlySet<string> = new Set([';/', '%20/', '/%09', '%3F/', '%23/']);

const SLASHES = [
  ...words(String.raw`
    %2F %2f %5C %5c \ /\ \/ // /// /%2F %2F/ %252F %252f %255C %25252F /./ /%2e/ /%2E/ /x/../ /x/..\ /x/%2e%2e/
    /x/%2E%2E/ /x/.%2e/ /x/%2e./ /x/..%2f /x/..%5c /x/..%2F..%2Fx/ /x/%252e%252e/ /..;/ /;/ /.;/ ;/ /x/..;a=b/ /%20/
    %20/ /%09 %C0%AF %c0%af %E0%80%AF %F0%80%80%AF %C0%2F /%C0%AE%C0%AE/ %EF%BC%8F %E2%88%95 %E2%81%84 %u2215 %00/ /%00
    %3F/ %23/ /:/ /*/ /~/ | . #/`),
  ...['\u00ef\u00bc\u008f', '', '\0/', '\t/', '\r/', '\x7f/', '\x01/'],
];
const NO_WORDS = [' /', '\n/', '\r\n/'];

function betweenSegments(texts: readonly string[], verdict: Verdict): Spelling[] {
  return [
    ...all(texts, verdict, 'after the version', (text, path) =>
      path.replace(/^(\/\w+)\//, (_all, first) => first + text),
    ),
    ...texts.flatMap((text) =>
      all([text], verdict, 'before the last segment', (_text, path) => path.replace(/\/(?=[^/]*$)/, () => text)).map(
        (spelling) => ({ ...spelling, literal: VALUES.has(text) }),
      ),
    ),
  ];
}

const PREFIXES = words(String.raw`
  / // /. /.. /%2e /%2E%2e /.%2e /%2F /%5C /\ /x/.. /health/.. /health/%2e%2e /swagger/.. /swagger/%2e%2e
  /swagger/x/../.. /v2/mcp/../.. /v2/mcp/%2e%2e/%2E%2E /v2/mcp/..%2f.. /graphql/.. /v2/oauth/token/../../.. /health;
  /health;/.. /health%3F/.. /health%00 /health# /%00 /%20 /%0d%0a /%ff /% /~ /: /* /C: /http://x /http:/x /localhost
  * %2F . .. \ @ x é ? # http: http:// file:// ftp://x ws://x javascript: data:,
  http://x/ http://x/. http://x/.. http://x/%2e%2e http://x\ http://x? http://x# http://x/x/.. http://x%2F http://@
  http://a@b@c http://x:y http://[::1 http://a:65536 http://1.2.3.999`);
const ORIGINS = words(`
  http://portcullis http://other.example HTTP://PORTCULLIS https://portcullis:443 http://127.0.0.1:99 http://[::1]:80
  http://user@portcullis https://user:pass@portcullis`);
/** Another path, unless a parameter takes it. */
const SUFFIXES = [
  ...words(`
    . .. ... .json .html %20 %0a %0d%0aX-A:b %09 ; ;a=b ;jsessionid=1 %3B %3Fpage=1 %23 ~ * :80 @x , + &a=b = %7F %26
    %25 %252e %252F %E2%80%8B %C3%A9 %EF%BB%BF`),
  ...['\u00c3\u00a9', '%41'.repeat(10_000)],
];
const ENDS = words(String.raw`
  / // /. /.. /%2e /x /;a=b %2F %2f %5C \ %00 %00.json % %2 %zz %u0041 %+1 %FF %C0%AF %C0%80 %E0%80%AF %ED%A0%80
  %F5%80%80%80 %80 # #x #?page=1 ?a#b`);
const QUERIES = [...words(String.raw`? ?? ?a?b ?/../../health ?%00%2F..%zz ?% ?a=//\ ?;`), `?a=${'x'.repeat(100_000)}`];
/** For an `s`, which every path has and no id. */
const LETTERS = [
  ...words('S %53 %C5%BF %D1%95 %EF%BD%93 %C1%B3 %E0%81%B3 %2573 %25%37%33 %u0073 %s %7 $ s%E2%80%8D s%CC%87'),
  '\u00c5\u00bf',
];

const append = (text: string, path: string) => path + text;
const prepend = (text: string, path: string) => text + path;
const forAnS = (text: string, path: string) => path.replace('s', () => text);

const WHOLES: [name: string, verdict: Verdict, spell: (path: string) => string][] = [
  ['a query after the version', 'other', (path) => path.replace(/^(\/\w+)\//, '$1?/')],
  ['capitals', 'other', (path) => path.toUpperCase()],
  ['the version in a capital', 'other', (path) => path.replace('/v', '/V')],
  ['the version in an escaped capital', 'other', (path) => path.replace('/v', '/%56')],
  ['the version escaped', 'same', (path) => path.replace(/^\/(v\d)/, (_all, version) => `/${escaped(version)}`)],
  ['every character escaped', 'same', (path) => path.replace(/[^/]+/g, escaped)],
  ['escapes in capitals', 'same', (path) => path.replace(/[^/]+/g, (text) => escaped(text).toUpperCase())],
  ['escaped twice', 'other', (path) => path.replace(/[^/]+/g, (text) => escaped(text).replaceAll('%', '%25'))],
  ['slashes escaped too', 'other', escaped],
  ['no slash before it', 'other', (path) => path.slice(1)],
  ['10,000 dot segments before it', 'other', (path) => `${'/x/..'.repeat(10_000)}${path}`],
  ['10,000 slashes before it', 'other', (path) => '/'.repeat(10_000) + path],
  ['a first segment of 100,000 letters', 'other', (path) => `/${'a'.repeat(100_000)}${path}`],
  ['an asterisk', 'other', () => '*'],
  ['an authority', 'other', () => 'portcullis:80'],
  ['an authority and a path', 'other', (path) => `portcullis:80${path}`],
];

/** Letters that are not escaped make a request line malformed. */
function judged(spelling: Spelling): Spelling {
  const isUnescaped = /^[\x20-\x7e]*[\x80-\xff]/.test(spelling.spell('/v1/wallets/s/rules'));
  return isUnescaped ? { ...spelling, verdict: 'no request' } : spelling;
}

export const SPELLINGS: readonly Spelling[] = [
  ...betweenSegments(SLASHES, 'other'),
  ...betweenSegments(NO_WORDS, 'no request'),
  ...all(PREFIXES, 'other', 'before it', prepend),
  ...all(ORIGINS, 'same', 'as its origin', prepend),
  ...all(SUFFIXES, 'other', 'at its end', append).map((spelling) => ({ ...spelling, literal: true })),
  ...all(ENDS, 'other', 'at the end', append),
  ...all(['% 1'], 'no request', 'at the end', append),
  ...all(QUERIES, 'same', 'as the query', append),
  ...all(LETTERS, 'other', 'for s', forAnS),
  ...all(['%73'], 'same', 'for s', forAnS),
  ...WHOLES.map(([name, verdict, spell]) => ({ name, verdict, spell })),
].map(judged);
