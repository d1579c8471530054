import { type Attack, httpGroup, nested, post, times } from './attack.ts';

const ring = (length: number) =>
  `{ me { ...F0 } } ${times(length, (at) => `fragment F${at} on Viewer { ...F${(at + 1) % length} }`)}`;
const REPEATS = /a field stands \d+ times in one selection, at most 30/;
const CIRCLE = /Cannot spread fragment/;
const doubling = (count: number, last: string) =>
  `{ me { ...F0 } } ${times(count, (at) => `fragment F${at} on Viewer { ...F${at + 1} ...F${at + 1} }`)} fragment F${count} on Viewer { ${last} }`;

/** Levels of lists, each three times the same field with a fragment of its own. */
function overlapping(levels: number, copies: number): string {
  const type = (level: number) => (level % 2 === 0 ? 'Account' : 'Wallet');
  const field = (level: number) => (level % 2 === 0 ? 'wallets(first: 1) { edges { node {' : 'account {');
  const close = (level: number) => (level % 2 === 0 ? '} } }' : '}');
  return times(levels, (level) =>
    times(copies, (copy) => {
      const next = level === levels - 1 ? 'id' : times(copies, (other) => `...F${level + 1}x${other}`);
      return `fragment F${level}x${copy} on ${type(level)} { ${field(level)} ${next} ${close(level)} }`;
    }),
  );
}

export const FRAGMENTS_ATTACKS: readonly Attack[] = [
  ...httpGroup('fragments', [
    ['within itself', 'an endless loop', post('{ me { ...A } } fragment A on Viewer { nodeId ...A }'), 400, CIRCLE],
    [
      'within itself, within a field',
      'an endless loop',
      post(
        '{ account(id: "x") { ...A } } fragment A on Account { wallets(first: 1) { edges { node { account { ...A } } } } }',
      ),
      400,
      CIRCLE,
    ],
    ['a ring of 2', 'an endless loop', post(ring(2)), 400, CIRCLE],
    ['a ring of 100', 'an endless loop', post(ring(100)), 400, CIRCLE],
    ['a ring that nobody enters', 'an endless loop', post(`{ me { nodeId } } ${ring(100).slice(16)}`), 400, CIRCLE],
    [
      'all within each other',
      'a number of rings beyond counting',
      post(`{ me { ...F0 } } ${times(15, (at) => `fragment F${at} on Viewer { ${times(15, (to) => `...F${to}`)} }`)}`),
      400,
      CIRCLE,
    ],
    ['that double', 'a billion laughs', post(doubling(60, 'you')), 400, /Cannot query field|aliases/],
    [
      'that double, with lists',
      'a billion rows',
      post(
        `{ account(id: "x") { ...F0 } } ${times(50, (at) => `fragment F${at} on Account { ...F${at + 1} ...F${at + 1} }`)} fragment F50 on Account { wallets(first: 1) { edges { cursor } } }`,
      ),
      400,
      /the cost is/,
    ],
    [
      '10,000 that are not used',
      'a long time in the parser',
      post(`{ me { nodeId } } ${times(10_000, (at) => `fragment F${at} on Viewer { nodeId }`)}`),
      400,
      /tokens/,
    ],
    [
      'as many as tokens go that are not used',
      'an error for each',
      post(`{ me { nodeId } } ${times(140, (at) => `fragment F${at} on Viewer { nodeId }`)}`),
      400,
      /is never used/,
    ],
    [
      'of one name',
      'an error for each',
      post(`{ me { ...F } } ${'fragment F on Viewer { nodeId } '.repeat(140)}`),
      400,
      /There can be only one fragment/,
    ],
    [
      'unknown ones',
      'an error for each',
      post(`{ me { ${times(480, (at) => `...F${at}`)} } }`),
      400,
      /Unknown fragment/,
    ],
    [
      'on unknown types',
      'suggestions for each',
      post(`{ ${times(160, (at) => `... on Accoumt${at} { f${at} }`)} }`),
      400,
      /Unknown type/,
    ],
  ]),
  ...httpGroup('fields that overlap', [
    [
      'one leaf as often as tokens go',
      'a quadratic comparison',
      post(`{ me { ${'nodeId '.repeat(980)} you } }`),
      400,
      REPEATS,
    ],
    [
      'one object as often as tokens go',
      'a quadratic comparison',
      post(`{ ${'me { nodeId } '.repeat(240)} you }`),
      400,
      REPEATS,
    ],
    [
      'objects within objects',
      'a comparison of each with each at each level',
      post(`{ ${'accounts { edges { node { id } } } '.repeat(99)} you }`),
      400,
      REPEATS,
    ],
    [
      'with arguments',
      'a comparison of long values',
      post(`{ ${`account(id: "${'x'.repeat(2_000)}") { id } `.repeat(100)} you }`),
      400,
      REPEATS,
    ],
    [
      'with arguments that differ',
      'an error for each pair',
      post(`{ ${times(100, (at) => `account(id: "${at}") { id }`)} }`),
      400,
      REPEATS,
    ],
    [
      'with arguments that differ, within the limit',
      'an error for each pair',
      post(`{ ${times(30, (at) => `account(id: "${at}") { id }`)} }`),
      400,
      /conflict/,
    ],
    [
      'in fragments at each level',
      'a comparison of each with each at each level',
      post(`{ account(id: "x") { you ${times(3, (copy) => `...F0x${copy}`)} } } ${overlapping(5, 3)}`),
      400,
      /Cannot query field|the cost is/,
    ],
    [
      'in 90 fragments beside each other',
      'a comparison of each with each',
      post(
        `{ me { you ${times(90, (at) => `...F${at}`)} } } ${times(90, (at) => `fragment F${at} on Viewer { nodeId }`)}`,
      ),
      400,
      /Cannot query field/,
    ],
    [
      'in inline fragments within each other',
      'a comparison of each with each',
      post(`{ me { ${'... { nodeId '.repeat(230)}you${' }'.repeat(230)} } }`),
      400,
      REPEATS,
    ],
    [
      'in unknown fields within each other',
      'an exponential comparison',
      post(`{ ${nested(['a', 'a', 'a', 'a', 'a', 'a'], 'b '.repeat(30)).repeat(15)} }`),
      400,
      /Cannot query field|conflict|complexity/i,
    ],
    [
      'in fragments that spread each other',
      'an exponential comparison',
      post(
        `{ me { ...F0 ...G0 you } } ${times(40, (at) => `fragment F${at} on Viewer { nodeId ...F${at + 1} ...G${at + 1} } fragment G${at} on Viewer { nodeId ...F${at + 1} ...G${at + 1} }`)} fragment F40 on Viewer { nodeId } fragment G40 on Viewer { nodeId }`,
      ),
      400,
      /Cannot query field|complexity/,
    ],
  ]),
];
