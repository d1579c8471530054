import { type Attack, httpGroup, nested, post, stream, times } from './attack.ts';

const TURN = ['wallets(first: 1)', 'edges', 'node', 'account'];
const path = (length: number) => Array.from({ length }, (_, index) => TURN[index % TURN.length] ?? '');
const account = (inner: string) => `{ account(id: "x") { ${inner} } }`;
/** Fragments that each go four levels deeper and spread the next. */
const ladder = (length: number) => {
  const step = (index: number) => (index < length - 1 ? `...F${index + 1}` : 'id');
  return times(length, (at) => `fragment F${at} on Account { ${nested(path(4), step(at))} }`);
};

const DEPTH = /the depth is \d+; at most 15 is allowed/;
const COST = /the cost is [\d.e+]+; at most 5000 is allowed/;
const PAGE = /first or last is [\d.e+-]+; 0 to 100 is allowed/;
const ALIASES = /there are [\d.e+]+ aliases; at most 30 are allowed/;
const TOKENS = /more than 1000 tokens/;
const COMMENTS = /the document has more than 1000 comments/;
const DIRECTIVES = /there are \d+ directives; at most 9 are allowed/;
const REPEATS = /a field occurs \d+ times in one selection; at most 30/;
const CIRCLE = /Cannot spread fragment/;
const CHOICE = /what operation to execute/;
const INTROSPECTION = /introspection/i;
const NO_FIELD = /Cannot query field/;

const aliases = (count: number, field: string) => times(count, (index) => `a${index}: ${field}`);
const wallets = (page: string, inner = 'edges { node { id } }') => `wallets(${page}) { ${inner} }`;
const accounts = (page: string, inner: string) => `{ accounts(${page}) { edges { node { ${inner} } } } }`;
/** A list of 100 in a list of 100. */
const rows = (outer: string, inner: string) =>
  `{ ${outer}(first: 100) { edges { node { ${inner}(first: 100) { edges { cursor } } } } } }`;
const FIRST = 'query ($n: Int) { accounts(first: $n) { edges { node { id } } } }';
const IN_VARIABLES = `query ($n: Int) ${accounts('first: $n', wallets('first: $n'))}`;
const AB = `query A { me { nodeId } } query B ${accounts('first: 100', wallets('first: 100'))}`;

const A400 = '@a '.repeat(400);
const ring = (length: number) =>
  `{ me { ...F0 } } ${times(length, (at) => `fragment F${at} on Viewer { ...F${(at + 1) % length} }`)}`;
const doubling = (count: number, type: string, last: string) =>
  `${times(count, (at) => `fragment F${at} on ${type} { ...F${at + 1} ...F${at + 1} }`)} fragment F${count} on ${type} { ${last} }`;
const circle = (turns: number) => nested(Array(turns).fill(['fields', 'type']).flat(), 'name');
const pair = (at: number) =>
  `fragment F${at} on Viewer { nodeId ...F${at + 1} ...G${at + 1} } fragment G${at} on Viewer { nodeId ...F${at + 1} ...G${at + 1} }`;
/** Levels of lists, each several times the same field with a fragment of its own. */
function overlapping(levels: number, copies: number): string {
  const [type, open, close] = [
    ['Account', 'Wallet'],
    ['wallets(first: 1) { edges { node {', 'account {'],
    ['} } }', '}'],
  ];
  return times(levels, (level) =>
    times(copies, (copy) => {
      const next = level === levels - 1 ? 'id' : times(copies, (other) => `...F${level + 1}x${other}`);
      return `fragment F${level}x${copy} on ${type?.[level % 2]} { ${open?.[level % 2]} ${next} ${close?.[level % 2]} }`;
    }),
  );
}

/** What a document alone would do where nobody refused it: an answer beyond measure, an overflow, a long time in rules. */
export const DOCUMENT_ATTACKS: readonly Attack[] = [
  ...httpGroup('depth', DEPTH, {
    plain: account(nested(path(15), 'id')),
    'as deep as tokens go': account(nested(path(110), 'id')),
    'through fragments': `${account('...F0')} ${ladder(4)}`,
    'through fragments as many as tokens go': `${account('...F0')} ${ladder(30)}`,
    'through inline fragments': account(
      `${path(16)
        .map((field) => `...{ ${field}`)
        .join(' { ')} { id${' }'.repeat(32)}`,
    ),
    'of unknown fields': `{ ${'a { '.repeat(300)}b${' }'.repeat(300)} }`,
    'of a subscription': stream(
      `subscription { transactionUpdates { ${nested(Array(16).fill('transaction'), 'id')} } }`,
    ),
    'of ofType within ofType': `{ __schema { types { fields { type { ${nested(Array(40).fill('ofType'), 'name')} } } } } }`,
  }),
  ...httpGroup('depth of values', /ID cannot represent|AccountFilter|never used/, {
    'of lists in an argument': `{ account(id: ${'['.repeat(490)}${']'.repeat(490)}) { id } }`,
    'of objects in an argument': `{ accounts(filter: ${'{a:'.repeat(240)}1${'}'.repeat(240)}) { totalCount } }`,
    'of list types of a variable': `query ($a: ${'['.repeat(400)}Int${']'.repeat(400)}) { me { nodeId } }`,
  }),
  ...httpGroup(
    'depth without fields',
    /"nodeId"/,
    { 'inline fragments without a field between': `{ ${'... { '.repeat(300)}me { nodeId }${' }'.repeat(300)} }` },
    { status: 200 },
  ),
  ...httpGroup('cost', COST, {
    'nested lists': accounts('first: 100', wallets('first: 100')),
    'nested lists of the default size': `{ accounts { edges { node { wallets { edges { node { account { wallets { edges { node { id } } } } } } } } } } }`,
    'first in a variable': post(IN_VARIABLES, { variables: { n: 100 } }),
    'first by the default of a variable': IN_VARIABLES.replace('Int', 'Int = 100'),
    'last instead of first': accounts('last: 100', wallets('last: 100')),
    'first of 0 and last of 100': accounts('first: 0, last: 100', wallets('first: 0, last: 100')),
    'first twice': accounts('first: 1, first: 100', wallets('first: 100')),
    'of a subscription': stream(
      `subscription { transaction(id: "x") { ${aliases(30, 'events(first: 100) { edges { node { cursor } } }')} } }`,
    ),
    'of the most expensive of several operations': post(AB, { operationName: 'B' }),
    'through a fragment that is spread many times': `{ ${times(30, (at) => `a${at}: accounts(first: 100) { edges { ...E } }`)} } fragment E on AccountEdge { node { id } }`,
    'through aliases': `{ ${aliases(30, accounts('first: 100', 'id').slice(2, -2))} }`,
    'in fragments on types that it is not': accounts(
      'first: 100',
      `... on Account { ${wallets('first: 100')} } ... on Wallet { id }`,
    ),
    'in a fragment on an interface': `${accounts('first: 100', '... on Error { message } ...A')} fragment A on Account { ${wallets('first: 100')} }`,
    'of the rows of migrations': rows('migrations', 'rows'),
    'of the events of transactions': rows('transactions', 'events'),
    'of the rules of wallets': rows('wallets', 'rules'),
    'of the networks of wallets': rows('wallets', 'networks'),
    'through fragments that double': `${account('...F0')} ${doubling(50, 'Account', 'wallets(first: 1) { edges { cursor } }')}`,
  }),
  ...httpGroup('pages', PAGE, {
    'of 101': post(FIRST, { variables: { n: 101 } }),
    'of 2^31 - 1': '{ accounts(first: 2147483647) { totalCount } }',
    'below 0': accounts('first: -100', wallets('first: 100')),
    'below 0 in a variable': post(FIRST, { variables: { n: -1 } }),
  }),
  ...httpGroup(
    'pages that are no number',
    /Int cannot represent|\$n|first or last is Infinity|used in position expecting/,
    {
      'a thousand digits': `{ accounts(first: ${'9'.repeat(1_000)}) { totalCount } }`,
      'a float': accounts('first: 1e2', wallets('first: 1e2')),
      'a float in a variable': post(FIRST, { variables: { n: 99.5 } }),
      '1e999 in a variable': () => ({
        ...post(FIRST)(),
        body: `{"query":${JSON.stringify(FIRST)},"variables":{"n":1e999}}`,
      }),
      'a string': '{ accounts(first: "100") { totalCount } }',
      'a string in a variable': post(FIRST, { variables: { n: '100' } }),
      'a list in a variable': post(FIRST, { variables: { n: [100] } }),
      'a variable of another type': post(FIRST.replace('Int', 'Float'), { variables: { n: 1e2 } }),
    },
  ),
  ...httpGroup('aliases', ALIASES, {
    'of a field': `{ ${aliases(160, 'me { nodeId }')} }`,
    'of __typename': `{ ${aliases(300, '__typename')} }`,
    'of a mutation': `mutation { ${aliases(80, 'eraseUser(id: "x") { __typename }')} }`,
    'through fragments': `{ me { ...F } b: me { ...F } c: me { ...F } } fragment F on Viewer { ${aliases(15, 'nodeId')} }`,
    'through fragments that double': `{ me { ...F0 } } ${doubling(60, 'Viewer', 'x: nodeId')}`,
    'of a subscription': stream(`subscription { transactionUpdates { ${aliases(31, 'cursor')} } }`),
  }),
  ...httpGroup('tokens', TOKENS, {
    'of 1,001': `{ me { ${times(996, (at) => `field${at}`)} } }`,
    'of a megabyte': `{ me { ${'a '.repeat(500_000)} } }`,
    'of 10,000 fragments': `{ me { nodeId } } ${times(10_000, (at) => `fragment F${at} on Viewer { nodeId }`)}`,
    'of a thousand operations': times(1_000, (at) => `query Q${at} { you }`),
  }),
  ...httpGroup('comments', COMMENTS, {
    alone: '#\n'.repeat(300_000),
    'before an operation': `${'#a\n'.repeat(250_000)} { you }`,
  }),
  ...httpGroup('long tokens', /Cannot query field|Unterminated string/, {
    commas: `{${','.repeat(1_000_000)} you }`,
    'byte order marks': `${'\uFEFF'.repeat(300_000)}{ you }`,
    'white space': `{${'\n'.repeat(500_000)} you }`,
    'one string': `{ account(id: "${'x'.repeat(1_000_000)}") { you } }`,
    'one string of escapes': `{ account(id: "${'\\u0041'.repeat(140_000)}") { you } }`,
    'one string without an end': `{ account(id: "${'x'.repeat(1_000_000)}`,
    'one block string': `{ account(id: """${' x\n'.repeat(200_000)}""") { you } }`,
    'one name': `{ ${'n'.repeat(1_000_000)} }`,
    'one number': `{ account(id: ${'1'.repeat(1_000_000)}) { you } }`,
    'unknown names by the hundred': `{ ${times(990, (at) => `accountx${at}`)} }`,
  }),
  ...httpGroup('directives', DIRECTIVES, {
    'many of one on a field': `{ me ${'@include(if: true) '.repeat(120)}{ nodeId } }`,
    'of two kinds on a field': `{ me ${'@include(if: true) @skip(if: false) '.repeat(60)}{ nodeId } }`,
    'unknown ones on a field': `{ me ${A400}{ nodeId } }`,
    'on an operation': `query ${A400}{ me { nodeId } }`,
    'on a fragment': `{ me { ...F } } fragment F on Viewer ${A400}{ nodeId }`,
    'on a spread': `{ me { ...F ${A400} } } fragment F on Viewer { nodeId }`,
    'on an inline fragment': `{ me { ... ${A400}{ nodeId } } }`,
    'on a variable': `query ($a: Int ${A400}) { accounts(first: $a) { totalCount } }`,
    'one on each of many fields': `{ me { ${'nodeId @include(if: true) '.repeat(120)} } }`,
  }),
  ...httpGroup('fragments', CIRCLE, {
    'within itself': '{ me { ...A } } fragment A on Viewer { nodeId ...A }',
    'within itself, within a field': `${account('...A')} fragment A on Account { wallets(first: 1) { edges { node { account { ...A } } } } }`,
    'a cycle of 2': ring(2),
    'a cycle of 100': ring(100),
    'a cycle that no operation uses': `{ me { nodeId } } ${ring(100).slice(16)}`,
    'all within each other': `{ me { ...F0 } } ${times(15, (at) => `fragment F${at} on Viewer { ${times(15, (to) => `...F${to}`)} }`)}`,
  }),
  ...httpGroup('an error for each', /is never used|only one|Unknown|is not defined|directive|Cannot query field/i, {
    'directive on a fragment that is not spread': `{ you } fragment F on Viewer ${A400}{ nodeId }`,
    'fragment that is not used': `{ me { nodeId } } ${times(140, (at) => `fragment F${at} on Viewer { nodeId }`)}`,
    'fragment of one name': `{ me { ...F } } ${'fragment F on Viewer { nodeId } '.repeat(140)}`,
    'unknown fragment': `{ me { ${times(480, (at) => `...F${at}`)} } }`,
    'unknown type': `{ ${times(160, (at) => `... on Accoumt${at} { f${at} }`)} }`,
    'operation of one name': post('query Q { me { nodeId } } '.repeat(120), { operationName: 'Q' }),
    'operation of many': post(
      times(190, (at) => `query Q${at} { you }`),
      { operationName: 'Q1' },
    ),
    'operation with many fragments': post(
      `${times(60, (at) => `query Q${at} { me { ...F0 } }`)} ${times(40, (at) => `fragment F${at} on Viewer { ...F${at + 1} }`)} fragment F40 on Viewer { you }`,
      { operationName: 'Q1' },
    ),
    'variable that is not used': `query (${times(240, (at) => `$a${at}: Int`)}) { you }`,
    'variable that is not declared': `{ me { nodeId } ${times(90, (at) => `f${at}(first: $a${at}) { you }`)} }`,
    'variable with a default': `query (${times(160, (at) => `$a${at}: Int = 1`)}) { accounts(first: $a0) { totalCount } }`,
    'variable of one name': `query (${'$a: Int '.repeat(240)}) { accounts(first: $a) { totalCount } }`,
  }),
  ...httpGroup('fields that overlap', REPEATS, {
    'one leaf as often as tokens go': `{ me { ${'nodeId '.repeat(980)} you } }`,
    'one object as often as tokens go': `{ ${'me { nodeId } '.repeat(240)} you }`,
    'objects within objects': `{ ${'accounts { edges { node { id } } } '.repeat(99)} you }`,
    'with arguments': `{ ${`account(id: "${'x'.repeat(2_000)}") { id } `.repeat(100)} you }`,
    'with arguments that differ': `{ ${times(100, (at) => `account(id: "${at}") { id }`)} }`,
    'in inline fragments within each other': `{ me { ${'... { nodeId '.repeat(230)}you${' }'.repeat(230)} } }`,
  }),
  ...httpGroup('fields that overlap, within the limit', /conflict|Cannot query field|the cost is|complexity|aliases/i, {
    'with arguments that differ': `{ ${times(30, (at) => `account(id: "${at}") { id }`)} }`,
    'in fragments at each level': `${account(`you ${times(3, (copy) => `...F0x${copy}`)}`)} ${overlapping(5, 3)}`,
    'in 90 sibling fragments': `{ me { you ${times(90, (at) => `...F${at}`)} } } ${times(90, (at) => `fragment F${at} on Viewer { nodeId }`)}`,
    'in unknown fields within each other': `{ ${nested(Array(6).fill('a'), 'b '.repeat(30)).repeat(15)} }`,
    'in fragments that spread each other': `{ me { ...F0 ...G0 you } } ${times(40, pair)} fragment F40 on Viewer { nodeId } fragment G40 on Viewer { nodeId }`,
    'in fragments that double': `{ me { ...F0 } } ${doubling(60, 'Viewer', 'you')}`,
  }),
  ...httpGroup('operations', CHOICE, {
    'without a name': '{ me { nodeId } } '.repeat(160),
    'without a choice': AB,
    'of an unknown name': post('query A { me { nodeId } }', { operationName: 'B' }),
    'of a name of half a megabyte': post('query A { me { nodeId } }', { operationName: 'x'.repeat(500_000) }),
    'of a name that is not a string': post('query A { me { nodeId } }', { operationName: { toString: 1 } }),
  }),
  ...httpGroup('introspection', INTROSPECTION, {
    'types within types': `{ __schema { types { ${circle(6)} } } }`,
    'types within types, to what the engine allows': `{ ${times(6, (at) => `a${at}: __schema { types { ${circle(2)} } }`)} }`,
    'the possible types within types':
      '{ __schema { types { possibleTypes { fields { type { possibleTypes { name } } } } } } }',
    'through a fragment that is spread many times':
      '{ ...F ...G ...H } fragment F on Query { a: __schema { types { name } } b: __schema { types { name } } } fragment G on Query { ...F } fragment H on Query { ...F ...G }',
    '30 times over': `{ ${times(30, (at) => `a${at}: __schema { types { fields { name args { name type { name kind } } } } }`)} }`,
    'of a type, 30 times over': `{ ${times(30, (at) => `a${at}: __type(name: "Query") { ${circle(2)} }`)} }`,
    'through fragments':
      '{ __schema { types { ...T } } } fragment T on __Type { fields { type { ...U } } } fragment U on __Type { fields { type { fields { name } } } }',
    'by a subscription': stream('subscription { __typename }'),
  }),
  ...httpGroup(
    'the schema in production',
    /introspection has been disabled/,
    {
      __schema: '{ __schema { types { name } } }',
      __type: '{ __type(name: "Client") { fields { name } } }',
      '__schema under an alias, in a fragment': '{ ...F } fragment F on Query { a: __schema { queryType { name } } }',
      '__schema by GET': () => ({ method: 'GET', query: '?query={__schema{types{name}}}', headers: {} }),
    },
    { isProduction: true },
  ),
  ...httpGroup(
    'names nearly right in production',
    /^(?!.*Did you mean)(?!.*(?:search|DONE|NotFoundError)\b).*(?:Cannot query|Unknown|serch|TransactionStatus)/,
    {
      'a field': '{ acounts { totalCount } }',
      'an argument': '{ accounts(firts: 1) { totalCount } }',
      'a type': '{ me { ... on Viewe { nodeId } } }',
      'a member of an input': post('query ($f: AccountFilter) { accounts(filter: $f) { totalCount } }', {
        variables: { f: { serch: 'x' } },
      }),
      'a value of an enum': post('query ($f: TransactionFilter) { transactions(filter: $f) { totalCount } }', {
        variables: { f: { status: 'DON' } },
      }),
      'a member of a union': 'mutation { eraseUser(id: "x") { messge } }',
    },
    { isProduction: true },
  ),
  ...httpGroup('subscriptions', NO_FIELD, { 'of an unknown field': stream('subscription { you }') }),
  ...httpGroup('subscriptions', /only one (top level|root) field|must select only one/i, {
    'of two fields': stream('subscription { transactionUpdates { cursor } transaction(id: "x") { id } }'),
  }),
];
