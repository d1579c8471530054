import type { Attack, SocketAttack } from './attack.ts';
import { nested, times } from './attack.ts';

type Row = [name: string, tries: string, messages: () => readonly string[], expected: SocketAttack['expected']];

const group = (rows: readonly Row[], isInitialised: boolean): Attack[] =>
  rows.map(([name, tries, messages, expected]) => ({
    ...{ transport: 'socket', group: 'sockets', name, tries, messages, expected, isInitialised },
  }));

const operation = (query: string, id = '1', more: object = {}) =>
  JSON.stringify({ type: 'subscribe', id, payload: { query, ...more } });
const LIVE = 'subscription { transactionUpdates { cursor } }';
const COSTLY = '{ accounts(first: 100) { edges { node { wallets(first: 100) { edges { node { id } } } } } } }';
const DEEP = `{ account(id: "x") { ${nested(Array(16).fill('wallets'), 'id')} } }`;
const INIT = JSON.stringify({ type: 'connection_init' });
const many = (count: number, message: (at: number) => string) => () =>
  Array.from({ length: count }, (_, at) => message(at));

export const SOCKET_ATTACKS: readonly Attack[] = [
  ...group(
    [
      ['an operation before connection_init', 'work for nobody', () => [operation(COSTLY)], { closed: 4401 }],
      ['connection_init without a token', 'a socket for nobody', () => [INIT], { closed: 4401 }],
      [
        'connection_init with a token of 60 KB',
        'a signature as long',
        () => [JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${'x'.repeat(60_000)}` } })],
        { closed: 4401 },
      ],
      ['1,000 of connection_init', 'a judgement for each', many(1_000, () => INIT), { closed: 4401 }],
      ['no JSON', 'a crash', () => ['nonsense'], { closed: 4400 }],
      [
        '20,000 lists in a message',
        'a stack overflow',
        () => [`${'['.repeat(20_000)}${']'.repeat(20_000)}`],
        { closed: 4400 },
      ],
    ],
    false,
  ),
  ...group(
    [
      ['connection_init twice', 'a second token', () => [INIT], { closed: 4429 }],
      [
        '101 operations',
        'a stream for each',
        many(101, (at) => operation(LIVE, `${at}`)),
        { says: /at most 100 operations may run at once/ },
      ],
      ['one id twice', 'two streams under one name', () => [operation(LIVE), operation(LIVE)], { closed: 4409 }],
      [
        'an id of 60 KB',
        'memory for each',
        () => [operation('{ you }', 'x'.repeat(60_000))],
        { says: /Cannot query field/ },
      ],
      [
        'an id that is __proto__',
        'members of every object',
        () => [operation('{ you }', '__proto__')],
        { says: /Cannot query field/ },
      ],
      ['a frame of a megabyte', 'memory', () => [operation(`{ you # ${'x'.repeat(1_000_000)}\n }`)], { closed: 1009 }],
      ['unknown messages', 'a crash', many(1_000, (at) => JSON.stringify({ type: `unknown${at}` })), { closed: 4400 }],
      ['a message that is a list', 'a crash', () => ['[]'], { closed: 4400 }],
      [
        'a message without an id',
        'a crash',
        () => [JSON.stringify({ type: 'subscribe', payload: { query: '{ you }' } })],
        { closed: 4400 },
      ],
      [
        'an operation without a query',
        'a crash',
        () => [JSON.stringify({ type: 'subscribe', id: '1', payload: {} })],
        { closed: 4400 },
      ],
      [
        'variables that are no object',
        'a crash',
        () => [operation('{ me { nodeId } }', '1', { variables: 'x' })],
        { closed: 4400 },
      ],
      [
        '20,000 lists in variables',
        'a stack overflow',
        () => [
          `{"type":"subscribe","id":"1","payload":{"query":"{ you }","variables":{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}}}`,
        ],
        { closed: 4400 },
      ],
      [
        '1,000 pings, and one operation',
        'an answer for each',
        () => [...many(1_000, () => '{"type":"ping"}')(), operation('{ you }')],
        { says: /Cannot query field/ },
      ],
      [
        '1,000 completions of nothing, and one operation',
        'a search for each',
        () => [...many(1_000, (at) => JSON.stringify({ type: 'complete', id: `${at}` }))(), operation('{ you }')],
        { says: /Cannot query field/ },
      ],
      ['a deep query', 'an answer of any depth', () => [operation(DEEP)], { says: /the depth is \d+, at most 15/ }],
      ['a costly query', 'ten thousand rows', () => [operation(COSTLY)], { says: /the cost is \d+, at most 5000/ }],
      [
        'a costly subscription',
        'a cost with each event',
        () => [
          operation(
            `subscription { transaction(id: "x") { ${times(30, (at) => `a${at}: events(first: 100) { edges { node { cursor } } }`)} } }`,
          ),
        ],
        { says: /the cost is \d+, at most 5000/ },
      ],
      [
        'a subscription of many aliases',
        'a field times over with each event',
        () => [operation(`subscription { transactionUpdates { ${times(31, (at) => `a${at}: cursor`)} } }`)],
        { says: /31 aliases/ },
      ],
      [
        '1,001 tokens',
        'a document beyond the limit',
        () => [operation(`{ me { ${'nodeId '.repeat(1_000)}} }`)],
        { says: /tokens/ },
      ],
      [
        'a batch',
        'ten in one',
        () => [JSON.stringify({ type: 'subscribe', id: '1', payload: [{ query: '{ you }' }] })],
        { closed: 4400 },
      ],
      [
        'a file',
        'a file without a form',
        () => [
          operation('mutation ($f: File!) { startUserMigration(file: $f) { __typename } }', '1', {
            variables: { f: {} },
          }),
        ],
        { says: /File must be a part/ },
      ],
      ['a message of text that is not UTF-8', 'text that was never sent', () => ['\u0000\uFFFE'], { closed: 4400 }],
    ],
    true,
  ),
];
