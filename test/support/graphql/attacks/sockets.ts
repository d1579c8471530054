import { nested, type SocketAttack, times } from './attack.ts';

type Expected = SocketAttack['expected'];

function group(expected: Expected, rows: Record<string, readonly string[]>, isInitialised = true): SocketAttack[] {
  return Object.entries(rows).map(([name, messages]) => {
    return { transport: 'socket', group: 'sockets', name, messages: () => messages, expected, isInitialised };
  });
}

const INIT = JSON.stringify({ type: 'connection_init' });
const LIVE = 'subscription { transactionUpdates { cursor } }';
const COSTLY = '{ accounts(first: 100) { edges { node { wallets(first: 100) { edges { node { id } } } } } } }';
const UPLOAD = 'mutation ($f: File!) { startUserMigration(file: $f) { __typename } }';
const DEEP = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
const EVENTS = times(30, (at) => `a${at}: events(first: 100) { edges { node { cursor } } }`);
const operation = (query: string, id = '1', more: object = {}) => subscribe({ query, ...more }, id);
const subscribe = (payload: unknown, id: string | undefined = '1') =>
  JSON.stringify({ type: 'subscribe', id, payload });
const many = (count: number, message: (at: number) => string) => Array.from({ length: count }, (_, at) => message(at));

export const SOCKET_ATTACKS: readonly SocketAttack[] = [
  ...group(
    { closed: 4401 },
    {
      'an operation before connection_init': [operation(COSTLY)],
      '1,000 of connection_init without a token': many(1_000, () => INIT),
      'connection_init with a token of 60 KB': [
        JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${'x'.repeat(60_000)}` } }),
      ],
    },
    false,
  ),
  ...group({ closed: 4400 }, { 'malformed JSON': ['nonsense'], '20,000 lists in a message': [DEEP] }, false),
  ...group({ closed: 4429 }, { 'connection_init twice': [INIT] }),
  ...group({ closed: 4409 }, { 'one id twice': [operation(LIVE), operation(LIVE)] }),
  ...group({ closed: 1009 }, { 'a frame of a megabyte': [operation(`{ you # ${'x'.repeat(1_000_000)}\n }`)] }),
  ...group(
    { closed: 4400 },
    {
      'unknown messages': many(1_000, (at) => JSON.stringify({ type: `unknown${at}` })),
      'a message that is a list': ['[]'],
      'a message without an id': [JSON.stringify({ type: 'subscribe', payload: { query: '{ you }' } })],
      'an operation without a query': [subscribe({})],
      'variables that are not an object': [operation('{ me { nodeId } }', '1', { variables: 'x' })],
      'a batch': [subscribe([{ query: '{ you }' }])],
      'a message of text that is not UTF-8': ['\u0000\uFFFE'],
    },
  ),
  ...group(
    { says: /the message must not nest values more than 10100 levels deep/ },
    {
      '20,000 lists in variables': [operation('{ you }', '1', { variables: { a: 0 } }).replace('0', DEEP)],
      '19,990 lists in variables': [
        operation('{ you }', '1', { variables: { a: 0 } }).replace('0', `${'['.repeat(19_990)}${']'.repeat(19_990)}`),
      ],
    },
  ),
  ...group(
    { says: /Cannot query field/ },
    {
      '95 lists in variables': [
        operation('{ you }', '1', { variables: { a: 0 } }).replace('0', `${'['.repeat(95)}${']'.repeat(95)}`),
      ],
      'an id of 60 KB': [operation('{ you }', 'x'.repeat(60_000))],
      'an id that is __proto__': [operation('{ you }', '__proto__')],
      '1,000 pings, and one operation': [...many(1_000, () => '{"type":"ping"}'), operation('{ you }')],
      '1,000 completions of unknown ids, and one operation': [
        ...many(1_000, (at) => `{"type":"complete","id":"${at}"}`),
        operation('{ you }'),
      ],
    },
  ),
  ...group(
    { says: /at most 100 operations may run at once/ },
    { '101 operations': many(101, (at) => operation(LIVE, `${at}`)) },
  ),
  ...group(
    { says: /the (?:depth|cost) is \d+; at most|31 aliases|tokens/ },
    {
      'a deep query': [operation(`{ account(id: "x") { ${nested(Array(16).fill('wallets'), 'id')} } }`)],
      'a costly query': [operation(COSTLY)],
      'a costly subscription': [operation(`subscription { transaction(id: "x") { ${EVENTS} } }`)],
      'a subscription of many aliases': [
        operation(`subscription { transactionUpdates { ${times(31, (at) => `a${at}: cursor`)} } }`),
      ],
      '1,001 tokens': [operation(`{ me { ${'nodeId '.repeat(1_000)}} }`)],
    },
  ),
  ...group({ says: /File must be sent as a part/ }, { 'a file': [operation(UPLOAD, '1', { variables: { f: {} } })] }),
];
