import { type Attack, httpGroup, nested, post, stream, times } from './attack.ts';

const TURN = ['wallets(first: 1)', 'edges', 'node', 'account'];
const path = (length: number) => Array.from({ length }, (_, index) => TURN[index % TURN.length] ?? '');

/** Fragments that each go four levels deeper and spread the next. */
function ladder(length: number): string {
  const step = (index: number) => (index < length - 1 ? `...F${index + 1}` : 'id');
  return times(length, (at) => `fragment F${at} on Account { ${nested(path(4), step(at))} }`);
}

const DEPTH = /the depth is \d+, at most 15 is allowed/;

export const DEPTH_ATTACKS: readonly Attack[] = [
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
];
