import { type Attack, httpGroup, post, stream, times } from './attack.ts';

const COST = /the cost is [\d.e+]+, at most 5000 is allowed/;
const PAGE = /first or last is [\d.e+-]+, 0 to 100 are allowed/;
const wallets = (page: string, inner = 'edges { node { id } }') => `wallets(${page}) { ${inner} }`;
const accounts = (page: string, inner: string) => `{ accounts(${page}) { edges { node { ${inner} } } } }`;
const IN_VARIABLES = `query ($n: Int) ${accounts('first: $n', wallets('first: $n'))}`;
const FIRST = 'query ($n: Int) { accounts(first: $n) { edges { node { id } } } }';
const EVENTS = 'transactions(first: 100) { edges { node { events(first: 100) { edges { node { cursor } } } } } }';
const aliases = (count: number, field: string) => times(count, (index) => `a${index}: ${field}`);

export const COST_ATTACKS: readonly Attack[] = [
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
];
