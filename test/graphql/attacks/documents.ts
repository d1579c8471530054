import { type Attack, httpGroup, nested, post, stream, times } from './attack.ts';

const TURN = ['wallets(first: 1)', 'edges', 'node', 'account'];
const path = (length: number) => Array.from({ length }, (_, index) => TURN[index % TURN.length] ?? '');

/** Fragments that each go four levels deeper and spread the next. */
function ladder(length: number): string {
  const step = (index: number) => (index < length - 1 ? `...F${index + 1}` : 'id');
  return times(length, (at) => `fragment F${at} on Account { ${nested(path(4), step(at))} }`);
}

const DEPTH = /the depth is \d+, at most 15 is allowed/;
const COST = /the cost is [\d.e+]+, at most 5000 is allowed/;
const PAGE = /first or last is [\d.e+-]+, 0 to 100 are allowed/;
const ALIASES = /there are \d+ aliases, at most 30 are allowed/;
const TOKENS = /Document contains more than 1000 tokens/;
const DIRECTIVES = /there are \d+ directives, at most 9 are allowed/;
const COMMENTS = /the document has more than 1000 comments/;

const wallets = (page: string, inner = 'edges { node { id } }') => `wallets(${page}) { ${inner} }`;
const accounts = (page: string, inner: string) => `{ accounts(${page}) { edges { node { ${inner} } } } }`;
const IN_VARIABLES = `query ($n: Int) ${accounts('first: $n', wallets('first: $n'))}`;
const FIRST = 'query ($n: Int) { accounts(first: $n) { edges { node { id } } } }';
const EVENTS = 'transactions(first: 100) { edges { node { events(first: 100) { edges { node { cursor } } } } } }';
const aliases = (count: number, field: string) => times(count, (index) => `a${index}: ${field}`);

export const DOCUMENT_ATTACKS: readonly Attack[] = [
  ...httpGroup('depth', [
    ['plain', 'an answer of any depth', post(`{ account(id: "x") { ${nested(path(15), 'id')} } }`), 400, DEPTH],
    [
      'as deep as tokens go',
      'a stack overflow',
      post(`{ account(id: "x") { ${nested(path(110), 'id')} } }`),
      400,
      DEPTH,
    ],
    ['through fragments', 'depth out of sight', post(`{ account(id: "x") { ...F0 } } ${ladder(4)}`), 400, DEPTH],
    [
      'through fragments as many as tokens go',
      'depth out of sight',
      post(`{ account(id: "x") { ...F0 } } ${ladder(30)}`),
      400,
      DEPTH,
    ],
    [
      'through inline fragments',
      'depth out of sight',
      post(
        `{ account(id: "x") { ${nested(
          path(16).map((field) => `...{ ${field}`),
          'id',
        )}${' }'.repeat(16)} } }`,
      ),
      400,
      DEPTH,
    ],
    [
      'inline fragments without a field between',
      'a stack overflow',
      post(`{ ${'... { '.repeat(300)}me { nodeId }${' }'.repeat(300)} }`),
      200,
      /"nodeId"/,
    ],
    ['of unknown fields', 'a stack overflow', post(`{ ${'a { '.repeat(300)}b${' }'.repeat(300)} }`), 400, DEPTH],
    [
      'of lists in an argument',
      'a stack overflow',
      post(`{ account(id: ${'['.repeat(490)}${']'.repeat(490)}) { id } }`),
      400,
      /ID cannot represent/,
    ],
    [
      'of objects in an argument',
      'a stack overflow',
      post(`{ accounts(filter: ${'{a:'.repeat(240)}1${'}'.repeat(240)}) { totalCount } }`),
      400,
      /AccountFilter/,
    ],
    [
      'of list types of a variable',
      'a stack overflow',
      post(`query ($a: ${'['.repeat(400)}Int${']'.repeat(400)}) { me { nodeId } }`),
      400,
      /never used/,
    ],
    [
      'of a subscription',
      'depth in each event',
      stream(`subscription { transactionUpdates { ${nested(Array(16).fill('transaction'), 'id')} } }`),
      400,
      DEPTH,
    ],
  ]),
  ...httpGroup('cost', [
    ['nested lists', 'ten thousand rows', post(accounts('first: 100', wallets('first: 100'))), 400, COST],
    [
      'nested lists of the default size',
      'eight thousand rows',
      post(
        accounts('', wallets('', 'edges { node { account { wallets { edges { node { id } } } } } }')).replaceAll(
          '()',
          '',
        ),
      ),
      400,
      COST,
    ],
    [
      'first in a variable',
      'a size that the document does not tell',
      post(IN_VARIABLES, { variables: { n: 100 } }),
      400,
      COST,
    ],
    [
      'first by the default of a variable',
      'a size that the variables do not tell',
      post(IN_VARIABLES.replace('Int', 'Int = 100')),
      400,
      COST,
    ],
    ['last in the place of first', 'ten thousand rows', post(accounts('last: 100', wallets('last: 100'))), 400, COST],
    [
      'first of 0 beside last of 100',
      'a product of nothing',
      post(accounts('first: 0, last: 100', wallets('first: 0, last: 100'))),
      400,
      COST,
    ],
    ['first of 101', 'a page beyond the limit', post(FIRST, { variables: { n: 101 } }), 400, PAGE],
    ['first of 2^31 - 1', 'a table as a page', post('{ accounts(first: 2147483647) { totalCount } }'), 400, PAGE],
    [
      'first of a thousand digits',
      'a number that is no number',
      post(`{ accounts(first: ${'9'.repeat(1_000)}) { totalCount } }`),
      400,
      /first or last is Infinity/,
    ],
    ['first below 0', 'a cost below 0', post(accounts('first: -100', wallets('first: 100'))), 400, PAGE],
    ['first below 0 in a variable', 'a cost below 0', post(FIRST, { variables: { n: -1 } }), 400, PAGE],
    [
      'first as a float',
      'a size that is not counted',
      post('{ accounts(first: 1e2) { edges { node { wallets(first: 1e2) { totalCount } } } } }'),
      400,
      /Int cannot represent/,
    ],
    [
      'first as a float in a variable',
      'a size that is not counted',
      post(FIRST, { variables: { n: 99.5 } }),
      400,
      /\$n/,
    ],
    [
      'first as 1e999 in a variable',
      'a size that is not counted',
      () => ({ ...post(FIRST)(), body: `{"query":${JSON.stringify(FIRST)},"variables":{"n":1e999}}` }),
      400,
      /\$n/,
    ],
    [
      'first as a string',
      'a size that is not counted',
      post('{ accounts(first: "100") { totalCount } }'),
      400,
      /Int cannot represent/,
    ],
    [
      'first as a string in a variable',
      'a size that is not counted',
      post(FIRST, { variables: { n: '100' } }),
      400,
      /\$n/,
    ],
    [
      'first as a list in a variable',
      'a size that is not counted',
      post(FIRST, { variables: { n: [100] } }),
      400,
      /\$n/,
    ],
    [
      'first in a variable of another type',
      'a size that is not counted',
      post(`query ($n: Float) ${accounts('first: $n', 'id')}`, { variables: { n: 1e2 } }),
      400,
      /used in position expecting type/,
    ],
    [
      'first twice',
      'the size that is not counted',
      post('{ accounts(first: 1, first: 100) { edges { node { wallets(first: 100) { edges { node { id } } } } } } }'),
      400,
      COST,
    ],
    [
      'a subscription',
      'a cost with each event',
      stream(
        `subscription { transaction(id: "x") { ${aliases(30, 'events(first: 100) { edges { node { cursor } } }')} } }`,
      ),
      400,
      COST,
    ],
    [
      'of the dearest of several operations',
      'an operation that is not measured',
      post(`query A { me { nodeId } } query B ${accounts('first: 100', wallets('first: 100'))}`, {
        operationName: 'B',
      }),
      400,
      COST,
    ],
    [
      'of several operations without a name',
      'an operation that is not measured',
      post(`query A { me { nodeId } } query B ${accounts('first: 100', wallets('first: 100'))}`),
      400,
      /what operation to execute/,
    ],
    [
      'through a fragment that is spread many times',
      'a list times over',
      post(
        `{ ${times(30, (at) => `a${at}: accounts(first: 100) { edges { ...E } }`)} } fragment E on AccountEdge { node { id } }`,
      ),
      400,
      COST,
    ],
    [
      'through aliases',
      'a list times over',
      post(`{ ${aliases(30, accounts('first: 100', 'id').slice(2, -2))} }`),
      400,
      COST,
    ],
    [
      'in fragments on types that it is not',
      'rows that are not counted',
      post(
        `{ accounts(first: 100) { edges { node { ... on Account { ${wallets('first: 100')} } ... on Wallet { id } } } } }`,
      ),
      400,
      COST,
    ],
    [
      'in a fragment on an interface',
      'rows that are not counted',
      post(
        `{ accounts(first: 100) { edges { node { ... on Error { message } ...A } } } } fragment A on Account { ${wallets('first: 100')} }`,
      ),
      400,
      COST,
    ],
    [
      'of the rows of migrations',
      'ten thousand rows',
      post('{ migrations(first: 100) { edges { node { rows(first: 100) { edges { node { index } } } } } } }'),
      400,
      COST,
    ],
    ['of the events of transactions', 'ten thousand rows', post(`{ ${EVENTS} }`), 400, COST],
    [
      'of the rules of wallets',
      'ten thousand rows',
      post('{ wallets(first: 100) { edges { node { rules(first: 100) { edges { node { id } } } } } } }'),
      400,
      COST,
    ],
    [
      'of the networks of wallets',
      'ten thousand rows',
      post('{ wallets(first: 100) { edges { node { networks(first: 100) { edges { node { id } } } } } } }'),
      400,
      COST,
    ],
  ]),
  ...httpGroup('aliases', [
    ['of a field', 'a field a thousand times', post(`{ ${aliases(160, 'me { nodeId }')} }`), 400, ALIASES],
    ['of __typename', 'what other servers do not count', post(`{ ${aliases(300, '__typename')} }`), 400, ALIASES],
    [
      'of a mutation',
      'a change a hundred times',
      post(`mutation { ${aliases(80, 'eraseUser(id: "x") { __typename }')} }`),
      400,
      ALIASES,
    ],
    [
      'through fragments',
      'one written, many answered',
      post(`{ me { ...F } b: me { ...F } c: me { ...F } } fragment F on Viewer { ${aliases(15, 'nodeId')} }`),
      400,
      ALIASES,
    ],
    [
      'through fragments that double',
      'a number beyond counting',
      post(
        `{ me { ...F0 } } ${times(60, (at) => `fragment F${at} on Viewer { ...F${at + 1} ...F${at + 1} }`)} fragment F60 on Viewer { x: nodeId }`,
      ),
      400,
      /there are [\d.e+]+ aliases, at most 30/,
    ],
    [
      'of a subscription',
      'a field times over with each event',
      stream(`subscription { transactionUpdates { ${aliases(31, 'cursor')} } }`),
      400,
      ALIASES,
    ],
  ]),
  ...httpGroup('tokens', [
    ['of 1,001', 'a document beyond the limit', post(`{ me { ${times(996, (at) => `field${at}`)} } }`), 400, TOKENS],
    ['of a megabyte', 'a long time in the parser', post(`{ me { ${'a '.repeat(500_000)} } }`), 400, TOKENS],
    ['of comments alone', 'a long time in the parser', post('#\n'.repeat(300_000)), 400, COMMENTS],
    [
      'of comments before an operation',
      'a long time in the parser',
      post(`${'#a\n'.repeat(250_000)} { you }`),
      400,
      COMMENTS,
    ],
    ['of commas', 'a long time in the parser', post(`{${','.repeat(1_000_000)} you }`), 400, /Cannot query field/],
    [
      'of byte order marks',
      'a long time in the parser',
      post(`${'\uFEFF'.repeat(300_000)}{ you }`),
      400,
      /Cannot query field/,
    ],
    ['of white space', 'a long time in the parser', post(`{${'\n'.repeat(500_000)} you }`), 400, /Cannot query field/],
    [
      'one string',
      'a long time in the parser',
      post(`{ account(id: "${'x'.repeat(1_000_000)}") { you } }`),
      400,
      /Cannot query field/,
    ],
    [
      'one string of escapes',
      'a long time in the parser',
      post(`{ account(id: "${'\\u0041'.repeat(140_000)}") { you } }`),
      400,
      /Cannot query field/,
    ],
    [
      'one string without an end',
      'a long time in the parser',
      post(`{ account(id: "${'x'.repeat(1_000_000)}`),
      400,
      /Unterminated string/,
    ],
    [
      'one block string',
      'a long time in the parser',
      post(`{ account(id: """${' x\n'.repeat(200_000)}""") { you } }`),
      400,
      /Cannot query field/,
    ],
    ['one name', 'a long time in the suggestions', post(`{ ${'n'.repeat(1_000_000)} }`), 400, /Cannot query field/],
    [
      'one number',
      'a long time in the conversion',
      post(`{ account(id: ${'1'.repeat(1_000_000)}) { you } }`),
      400,
      /Cannot query field/,
    ],
    [
      'unknown names by the hundred',
      'a long time in the suggestions',
      post(`{ ${times(990, (at) => `accountx${at}`)} }`),
      400,
      /Cannot query field/,
    ],
  ]),
  ...httpGroup('directives', [
    [
      'many of one on a field',
      'a quadratic comparison',
      post(`{ me ${'@include(if: true) '.repeat(120)}{ nodeId } }`),
      400,
      DIRECTIVES,
    ],
    [
      'of two kinds on a field',
      'a quadratic comparison',
      post(`{ me ${'@include(if: true) @skip(if: false) '.repeat(60)}{ nodeId } }`),
      400,
      DIRECTIVES,
    ],
    ['unknown ones on a field', 'an error for each', post(`{ me ${'@a '.repeat(400)}{ nodeId } }`), 400, DIRECTIVES],
    ['on an operation', 'an error for each', post(`query ${'@a '.repeat(400)}{ me { nodeId } }`), 400, DIRECTIVES],
    [
      'on a fragment',
      'an error for each',
      post(`{ me { ...F } } fragment F on Viewer ${'@a '.repeat(400)}{ nodeId }`),
      400,
      DIRECTIVES,
    ],
    [
      'on a spread',
      'an error for each',
      post(`{ me { ...F ${'@a '.repeat(400)} } } fragment F on Viewer { nodeId }`),
      400,
      DIRECTIVES,
    ],
    [
      'on an inline fragment',
      'an error for each',
      post(`{ me { ... ${'@a '.repeat(400)}{ nodeId } } }`),
      400,
      DIRECTIVES,
    ],
    [
      'on a variable',
      'an error for each',
      post(`query ($a: Int ${'@a '.repeat(400)}) { accounts(first: $a) { totalCount } }`),
      400,
      DIRECTIVES,
    ],
    [
      'one on each of many fields',
      'a decision for each',
      post(`{ me { ${'nodeId @include(if: true) '.repeat(120)} } }`),
      400,
      DIRECTIVES,
    ],
    [
      'on a fragment that is not spread',
      'an error for each',
      post(`{ you } fragment F on Viewer ${'@a '.repeat(400)}{ nodeId }`),
      400,
      /directive/i,
    ],
  ]),
];
