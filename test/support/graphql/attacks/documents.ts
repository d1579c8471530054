import { type Attack, httpGroup, post, stream, times } from './attack.ts';

const ALIASES = /there are \d+ aliases, at most 30 are allowed/;
const TOKENS = /more than 1000 tokens/;
const DIRECTIVES = /there are \d+ directives, at most 9 are allowed/;
const COMMENTS = /the document has more than 1000 comments/;

const aliases = (count: number, field: string) => times(count, (index) => `a${index}: ${field}`);

export const DOCUMENTS_ATTACKS: readonly Attack[] = [
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
