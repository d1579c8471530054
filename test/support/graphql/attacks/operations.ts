import { type Attack, httpGroup, nested, post, times } from './attack.ts';

const TYPE_REF = nested(Array(40).fill('ofType'), 'name');
const circle = (turns: number) => nested(Array(turns).fill(['fields', 'type']).flat(), 'name');

export const OPERATIONS_ATTACKS: readonly Attack[] = [
  ...httpGroup('operations', [
    [
      'as many as tokens go',
      'a validation for each',
      post(
        times(190, (at) => `query Q${at} { you }`),
        { operationName: 'Q1' },
      ),
      400,
      /Cannot query field/,
    ],
    [
      'a thousand',
      'a long time in the parser',
      post(
        times(1_000, (at) => `query Q${at} { you }`),
        { operationName: 'Q1' },
      ),
      400,
      /tokens/,
    ],
    [
      'of one name',
      'an error for each',
      post('query Q { me { nodeId } } '.repeat(120), { operationName: 'Q' }),
      400,
      /There can be only one operation/,
    ],
    ['without a name', 'an error for each', post('{ me { nodeId } } '.repeat(160)), 400, /what operation to execute/],
    [
      'without a choice',
      'a guess',
      post('query A { me { nodeId } } query B { me { nodeId } }'),
      400,
      /what operation to execute/,
    ],
    [
      'of a name that is not there',
      'a guess',
      post('query A { me { nodeId } }', { operationName: 'B' }),
      400,
      /what operation to execute/,
    ],
    [
      'of a name of half a megabyte',
      'a message as long',
      post('query A { me { nodeId } }', { operationName: 'x'.repeat(500_000) }),
      400,
      /what operation to execute/,
    ],
    [
      'of a name that is no string',
      'a crash',
      post('query A { me { nodeId } }', { operationName: { toString: 1 } }),
      400,
      /what operation to execute/,
    ],
    [
      'as many as tokens go, each with many fragments',
      'a walk for each',
      post(
        `${times(60, (at) => `query Q${at} { me { ...F0 } }`)} ${times(40, (at) => `fragment F${at} on Viewer { ...F${at + 1} }`)} fragment F40 on Viewer { you }`,
        { operationName: 'Q1' },
      ),
      400,
      /Cannot query field/,
    ],
  ]),
  ...httpGroup('introspection', [
    [
      'types within types',
      'an answer beyond measure',
      post(`{ __schema { types { ${circle(6)} } } }`),
      400,
      /introspection/i,
    ],
    [
      'types within types, to what the engine allows',
      'a megabyte of answer',
      post(`{ ${times(6, (at) => `a${at}: __schema { types { ${circle(2)} } }`)} }`),
      400,
      /6 fields of introspection, at most 5/,
    ],
    [
      'the possible types within types',
      'an answer beyond measure',
      post('{ __schema { types { possibleTypes { fields { type { possibleTypes { name } } } } } } }'),
      400,
      /Maximum introspection depth/,
    ],
    [
      'through a fragment that is spread many times',
      'a megabyte of answer',
      post(
        '{ ...F ...G ...H } fragment F on Query { a: __schema { types { name } } b: __schema { types { name } } } fragment G on Query { ...F } fragment H on Query { ...F ...G }',
      ),
      400,
      /8 fields of introspection, at most 5/,
    ],
    [
      'ofType within ofType',
      'an answer beyond depth',
      post(`{ __schema { types { fields { type { ${TYPE_REF} } } } } }`),
      400,
      /the depth is/,
    ],
    [
      '30 times over',
      'a megabyte of answer',
      post(
        `{ ${times(30, (at) => `a${at}: __schema { types { fields { name args { name type { name kind } } } } }`)} }`,
      ),
      400,
      /introspection/,
    ],
    [
      'of a type, 30 times over',
      'a megabyte of answer',
      post(`{ ${times(30, (at) => `a${at}: __type(name: "Query") { ${circle(2)} }`)} }`),
      400,
      /introspection/,
    ],
    [
      'through fragments',
      'types within types out of sight',
      post(
        `{ __schema { types { ...T } } } fragment T on __Type { fields { type { ...U } } } fragment U on __Type { fields { type { fields { name } } } }`,
      ),
      400,
      /introspection/i,
    ],
  ]),
  ...httpGroup(
    'production',
    [
      ['__schema', 'the whole schema', post('{ __schema { types { name } } }'), 400, /introspection has been disabled/],
      [
        '__type',
        'a guess at a type',
        post('{ __type(name: "Client") { fields { name } } }'),
        400,
        /introspection has been disabled/,
      ],
      [
        '__schema under an alias, in a fragment',
        'the schema out of sight',
        post('{ ...F } fragment F on Query { a: __schema { queryType { name } } }'),
        400,
        /introspection has been disabled/,
      ],
      [
        '__schema by GET',
        'the whole schema',
        () => ({ method: 'GET', query: '?query={__schema{types{name}}}', headers: {} }),
        400,
        /introspection has been disabled/,
      ],
      [
        'a field nearly right',
        'a suggestion of its name',
        post('{ acounts { totalCount } }'),
        400,
        /^(?!.*Did you mean)(?!.*accounts).*Cannot query field/,
      ],
      [
        'an argument nearly right',
        'a suggestion of its name',
        post('{ accounts(firts: 1) { totalCount } }'),
        400,
        /^(?!.*Did you mean).*Unknown argument/,
      ],
      [
        'a type nearly right',
        'a suggestion of its name',
        post('{ me { ... on Viewe { nodeId } } }'),
        400,
        /^(?!.*Did you mean).*Unknown type/,
      ],
      [
        'a member of an input nearly right',
        'a suggestion of its name',
        post('query ($f: AccountFilter) { accounts(filter: $f) { totalCount } }', { variables: { f: { serch: 'x' } } }),
        400,
        /^(?!.*Did you mean)(?!.*search).*serch/,
      ],
      [
        'a value of an enum nearly right',
        'a suggestion of its name',
        post('query ($f: TransactionFilter) { transactions(filter: $f) { totalCount } }', {
          variables: { f: { status: 'DON' } },
        }),
        400,
        /^(?!.*Did you mean)(?!.*DONE).*TransactionStatus/,
      ],
      [
        '__typename of a union nearly right',
        'the members of a union',
        post('mutation { eraseUser(id: "x") { messge } }'),
        400,
        /^(?!.*Did you mean)(?!.*Error).*Cannot query field/,
      ],
    ],
    { isProduction: true },
  ),
];
