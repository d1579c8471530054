import { setTimeout as delay } from 'node:timers/promises';
import { openSocket, request } from '../gateway/raw.ts';
import { FORM_TYPE, OPERATIONS } from '../graphql/upload-requests.ts';
import { withPostgres } from '../services/pg-client.ts';
import { type Attacker, many, networkOf, post, type Target } from './attacker.ts';

/** One way of an attack: sends its requests, and resolves when each is answered or held. */
export type Attack = (attacker: Attacker) => Promise<unknown>;

/** What is attacked, the promise that holds, and the ways in which it is tried. */
export interface Row {
  clause: string;
  ways: Readonly<Record<string, Attack>>;
  /** What is done to the servers meanwhile. */
  during?: 'postgres hangs' | 'postgres is slow' | 'a transaction hangs';
}

const SAME_ORIGIN = { 'Sec-Fetch-Site': 'same-origin' };
const SSE = { Accept: 'text/event-stream' };
const MCP = { Host: 'localhost', Accept: 'application/json, text/event-stream' };
const ME = '{ me { nodeId } }';
const HELD_MS = 1_000;
const MAX_SIGN_INS = 60;

let serial = 0;
/** A name that nothing else has. */
function fresh(): string {
  serial += 1;
  return `n${serial}`;
}
const list = (count: number, item: (at: number) => string) =>
  `[${Array.from({ length: count }, (_, at) => item(at)).join()}]`;

/** JSON values of many kinds that take much more memory than bytes. */
const VALUES: Record<string, (count: number) => string> = {
  'small objects': (count) => list(count, () => '{}'),
  'nested arrays': (count) => list(count / 10, () => '[[[[[[[[[]]]]]]]]]'),
  'names that never repeat': (count) => list(count / 2, () => `{"${fresh()}":0}`),
  'strings of escapes': (count) => list(count / 5, () => '"\\u0041\\n\\ud83d\\ude00"'),
  'small numbers': (count) => list(count, () => '1.5'),
};
const each = (make: (what: string, values: (count: number) => string) => Attack) =>
  Object.fromEntries(Object.entries(VALUES).map(([what, values]) => [what, make(what, values)]));

/** A sign-in at the console, with a further member. */
function signIn({ target }: Attacker, values: string, length?: number): string {
  const text = `{"client_id":"${target.demo.console_client_id}","username":"${fresh()}","password":"p","more":${values}}`;
  return post('/console/session', SAME_ORIGIN, text, length);
}

const USERS = Array.from({ length: 500 }, (_, at) => ({
  wallet_address: `0x${at}`,
  email: `e${at}@example.com`,
  name: 'n'.repeat(1_000),
  surname: 's'.repeat(1_000),
  external_id: `x${at}${'y'.repeat(400)}`,
}));
const BULK = JSON.stringify({ users: USERS });
const BULK_PATH = '/v2/users/migrate/with-wallet/bulk';

/** The beginning of an upload, up to where its file begins. */
function upload(operations: object, file = 'wallet_address,email\n'): string {
  const [, boundary] = FORM_TYPE.split('boundary=');
  const part = (head: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name=${head}\r\n\r\n${value}`;
  return `${part('"operations"', JSON.stringify(operations))}\r\n${part('"map"', '{"0":["variables.file"]}')}\r\n${part('"0"; filename="f.csv"\r\nContent-Type: text/csv', file)}`;
}
function uploads(count: number, make: () => string): Attack {
  return (attacker) => {
    const headers = { ...attacker.bearer, 'Content-Type': FORM_TYPE };
    return many(count, () => attacker.send(post('/graphql', headers, make(), 90_000_000), { heldMs: HELD_MS }));
  };
}
const { query: UPLOAD } = JSON.parse(OPERATIONS);

/** Selections of about 900 tokens, in which no field occurs too often. */
const LARGE = `transaction { ${'id '.repeat(28)} } `.repeat(28);
const subscription = (more: string) => `subscription ${fresh()} { transactionUpdates { cursor ${more} } }`;
function streams(count: number, make: () => { query: string; variables?: object }, headers = {}): Attack {
  return (attacker) =>
    many(count, () =>
      attacker.send(post('/graphql', { ...attacker.bearer, ...SSE, ...headers }, make()), { heldMs: HELD_MS }),
    );
}

const ANSWERS: Record<string, string> = {
  location: `HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /${'x'.repeat(17_000)}\r\n\r\n`,
  'long-location': `HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /${'x'.repeat(70_000)}\r\n\r\n`,
  continue: 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  fields: `HTTP/1.1 200 OK\r\nContent-Length: 0\r\n${`X-Field: ${'y'.repeat(1_000)}\r\n`.repeat(70)}\r\n`,
  'no-http': 'SSH-2.0-OpenSSH_9.6\r\n',
  ok: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
};

/** Answers a request to the remote service as its path says. */
export function answerRemote(socket: ReturnType<typeof openSocket>, head: string): void {
  const name = /^\S+ \/remote\/([\w-]+)/.exec(head)?.[1] ?? '';
  if (name === 'reset') socket.destroy();
  else if (name === 'slowly') void slowly(socket);
  else socket.write(ANSWERS[name] ?? '');
}

async function slowly(socket: ReturnType<typeof openSocket>): Promise<void> {
  for (const character of 'HTTP/1.1 200 OK\r\nX-Long: ') {
    socket.write(character);
    await delay(200);
    if (socket.destroyed) return;
  }
}
const remote =
  (name: string): Attack =>
  (attacker) =>
    many(200, () => attacker.send(request('GET', `/remote/${name}`, attacker.bearer)), 20);

const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const deepBody = (query: string, levels: number) =>
  `{"query":${JSON.stringify(query)},"variables":{"v":${deep(levels)}}}`;
const DECLARED = 'query ($v: [[String]]) { me { nodeId } }';
const DEEP = 9_990;

const PREVIEWED_FACTS = (count: number) => ({
  balances: Array.from({ length: count }, (_, at) => ({
    field: `balance ${at}`,
    networkCurrencyId: CURRENCY,
    value: '1',
  })),
});
const CURRENCY = '00000000-0000-4000-8000-000000000000';
function preview({ tenant }: Attacker, aliases: number, balances: number) {
  const fields = Array.from(
    { length: aliases },
    (_, at) => `a${at}: previewWallet(walletId: $w, facts: $f) { rules { name } }`,
  );
  return {
    query: `query ($w: ID!, $f: PreviewFacts!) { ${fields.join(' ')} }`,
    variables: { w: tenant.nodeId, f: PREVIEWED_FACTS(balances) },
  };
}
const previews =
  (count: number, aliases: number, balances: number): Attack =>
  (attacker) => {
    const bytes = post('/graphql', attacker.bearer, preview(attacker, aliases, balances));
    return many(count, () => attacker.send(bytes));
  };
const tool = (name: string, args: object) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
});

/** Gives a tenant a wallet, whose id is the tenant's, with so many rules of 64 conditions. */
export async function addRules(databaseUrl: string, nodeId: string, like: string, rules = 500): Promise<void> {
  const leaf = (at: number) => ({ field: `balance ${at}`, op: 'lt', value: '0', network_currency_id: CURRENCY });
  const transfer = {
    type: 'auto',
    amount: '1',
    target_wallet_id: nodeId,
    rule_logic: { or: Array.from({ length: 64 }, (_, at) => leaf(at)) },
  };
  await withPostgres(databaseUrl, async (client) => {
    await client.query(
      `insert into accounts (id, node_id, name, type, status, created_at, updated_at)
       select $1, $1, name, type, status, created_at, updated_at from accounts where node_id = $2 limit 1`,
      [nodeId, like],
    );
    await client.query(
      `insert into wallets (id, node_id, account_id, chain_id, created_at, updated_at)
       select $1, $1, $1, chain_id, created_at, updated_at from wallets where node_id = $2 limit 1`,
      [nodeId, like],
    );
    await client.query(
      `insert into wallet_rules (id, node_id, wallet_id, name, type, network_id, network_currency_id, auto_transfer_rule, created_at, updated_at)
       select gen_random_uuid(), $1, $1, 'rule', 'auto_transfer', $2, $2, $3, now(), now() from generate_series(1, $4)`,
      [nodeId, CURRENCY, JSON.stringify(transfer), rules],
    );
  });
}

/** A token that none of our keys has signed; with the id of one of ours in its head, if it names that. */
function forged(kid: string | undefined, at: number): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'HS256', ...(kid && { kid }) })}.${part({ n: at, token_use: 'refresh' })}.${'A'.repeat(43)}`;
}
function cookies(count: number, value: (at: number) => string): (attacker: Attacker) => Record<string, string> {
  return ({ target }) => ({
    ...SAME_ORIGIN,
    Cookie: Array.from({ length: count }, (_, at) => `portcullis-${target.demo.console_client_id}=${value(at)}`).join(
      '; ',
    ),
  });
}
const ends =
  (count: number, value: (at: number) => string, method = 'DELETE', path = '/console/session'): Attack =>
  (attacker) => {
    const body = JSON.stringify({ client_id: attacker.target.demo.console_client_id });
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': `${body.length}`,
      ...cookies(count, value)(attacker),
    };
    const bytes = Buffer.from(request(method, path, headers) + body);
    return many(600, (at) => attacker.send(bytes, { from: networkOf(at) }), 60);
  };

/** A supervisor's session at the console, its cookie; while many sign in, one is refused at first. */
async function consoleCookie({ demo, gatewayUrls: [url] }: Target): Promise<string> {
  const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' };
  const body = JSON.stringify({ client_id: demo.console_client_id, ...demo.supervisor });
  for (let attempt = 0; ; attempt += 1) {
    const answer = await fetch(`${url}/console/session`, { method: 'POST', headers, body });
    const cookie = answer.headers.getSetCookie()[0]?.split(';')[0];
    if (cookie !== undefined) return cookie;
    if (attempt === MAX_SIGN_INS) throw new Error(`a sign-in is answered ${answer.status} ${await answer.text()}`);
    await delay(1_000);
  }
}

/** Renews a session with one cookie so many times at once at both gateways, and counts the successors. */
const renewals =
  (count: number, rounds: number): Attack =>
  async (attacker) => {
    const { target } = attacker;
    let cookie = await consoleCookie(target);
    for (let round = 0; round < rounds; round += 1) {
      const body = JSON.stringify({ client_id: target.demo.console_client_id });
      const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', cookie };
      const renewed = await Promise.all(
        Array.from({ length: count }, async () => {
          const answer = await fetch(`${attacker.nextUrl}/console/session/renew`, { method: 'POST', headers, body });
          attacker.count(answer.status);
          return answer.status === 200 ? (answer.headers.getSetCookie()[0]?.split(';')[0] ?? '') : undefined;
        }),
      );
      const successors = new Set(renewed.filter((one) => one !== undefined));
      attacker.count(`${successors.size} successors`);
      [cookie = cookie] = successors;
    }
  };

/** The rows of the table of attacks, by what is attacked. */
export const ROWS: Readonly<Record<string, Row>> = {
  'sign-ins at the console from twenty networks': {
    clause: 'D6-25 D3-40',
    ways: {
      ...each((_what, values) => (attacker) => {
        const bytes = signIn(attacker, values(4_500));
        return many(400, (at) => attacker.send(bytes, { from: networkOf(at) }), 400);
      }),
      'bodies that do not end': (attacker) => {
        const bytes = signIn(
          attacker,
          list(20_000, () => '{}'),
          65_000,
        );
        return many(1_300, (at) => attacker.send(bytes, { from: networkOf(at), heldMs: HELD_MS }));
      },
    },
  },
  'JSON texts of many small values': {
    clause: 'D6-25',
    ways: {
      ...each((_what, values) => (attacker) => {
        const text = (count: number) => `{"query":"${ME}","variables":{"v":${values(count)}}}`;
        const bodies = [text(330_000), text(48_000)].map((body) =>
          Buffer.from(post('/graphql', attacker.bearer, body)),
        );
        return many(80, (at) => attacker.send(bodies[at % 2] ?? ''));
      }),
      'MCP arguments': (attacker) => {
        const text = (count: number) =>
          JSON.stringify(tool('get_access', {})).replace(
            '"arguments":{}',
            `"arguments":{"v":${list(count, () => '{}')}}`,
          );
        const bodies = [text(330_000), text(48_000)].map((body) =>
          Buffer.from(post('/v2/mcp', { ...attacker.bearer, ...MCP }, body)),
        );
        return many(40, (at) => attacker.send(bodies[at % 2] ?? ''));
      },
      'WebSocket messages': (attacker) => {
        const message = (id: number) =>
          `{"type":"subscribe","id":"${id}","payload":{"query":"${ME}","variables":{"v":${list(20_000, () => '{}')}}}}`;
        return many(20, async () => {
          await attacker.socket(Array.from({ length: 50 }, (_, id) => message(id)));
          await delay(2_000);
        });
      },
      'batches of declared lists': (attacker) => {
        const one = `{"query":"query ($v: [String]) { me { nodeId @include(if: true) } }","variables":{"v":${list(4_500, () => '"x"')}}}`;
        const bytes = Buffer.from(post('/graphql', attacker.bearer, `[${Array(10).fill(one).join()}]`));
        return many(80, () => attacker.send(bytes));
      },
    },
  },
  'bulk migrations and others that wait for each other': {
    clause: 'D6-25',
    during: 'a transaction hangs',
    ways: {
      'bulk migrations': (attacker) => {
        const bytes = Buffer.from(post(BULK_PATH, attacker.bearer, BULK));
        return many(1_000, () => attacker.send(bytes));
      },
      'bulk migrations of one idempotency key': (attacker) => {
        const bytes = Buffer.from(post(BULK_PATH, { ...attacker.bearer, 'Idempotency-Key': fresh() }, BULK));
        return many(300, () => attacker.send(bytes));
      },
      'migrations of single users': (attacker) => {
        const bytes = post('/v2/users/migrate/with-wallet', attacker.bearer, { ...USERS[0], name: 'n'.repeat(60_000) });
        return many(2_000, () => attacker.send(bytes));
      },
      'queries that wait for the database': (attacker) => {
        const fields = Array.from(
          { length: 20 },
          (_, at) => `a${at}: users(first: ${at + 1}) { edges { node { id } } }`,
        );
        const bytes = post('/graphql', attacker.bearer, { query: `{ ${fields.join(' ')} } # ${'x'.repeat(50_000)}` });
        return many(2_000, () => attacker.send(bytes));
      },
      'rules with idempotency keys': (attacker) => {
        const bytes = post(
          `/v1/wallets/${attacker.tenant.nodeId}/rules`,
          { ...attacker.bearer, 'Idempotency-Key': 'one' },
          { name: 'n'.repeat(50_000) },
        );
        return many(2_000, () => attacker.send(bytes));
      },
    },
  },
  'uploads whose file never arrives': {
    clause: 'D6-25',
    ways: {
      'undeclared small objects': uploads(120, () =>
        upload({ query: UPLOAD, variables: { file: null, other: Array.from({ length: 45_000 }, () => ({})) } }),
      ),
      'undeclared text': uploads(120, () =>
        upload({ query: UPLOAD, variables: { file: null, other: 'é'.repeat(400_000) } }),
      ),
      'long documents': uploads(120, () =>
        upload({ query: `${UPLOAD} # ${'x'.repeat(500_000)}`, variables: { file: null } }),
      ),
      'operations that do not end': uploads(120, () =>
        upload({ query: UPLOAD, variables: { o: 'x'.repeat(900_000) } }).slice(0, 900_000),
      ),
      'a cell of megabytes': uploads(60, () =>
        upload({ query: UPLOAD, variables: { file: null } }, `wallet_address,email\n"${'c'.repeat(2_000_000)}`),
      ),
    },
  },
  'subscriptions with long documents': {
    clause: 'D6-25 D6-24',
    ways: {
      'fields and comments': streams(1_600, () => ({
        query: `${subscription(LARGE)} # ${'x'.repeat(20_000)}`,
      })),
      'small documents': streams(2_000, () => ({ query: subscription('') })),
      'variables of 60 KB': streams(1_000, () => ({
        query: 'subscription ($f: TransactionFilter) { transactionUpdates(filter: $f) { cursor } }',
        variables: { f: { idOrHash: '表'.repeat(20_000) } },
      })),
      aliases: streams(1_000, () => ({
        query: subscription(Array.from({ length: 28 }, () => `${fresh()}: transaction { id status }`).join(' ')),
      })),
      'long heads': streams(600, () => ({ query: subscription('') }), { 'X-Filler': 'x'.repeat(12_000) }),
      'a hundred on each WebSocket': (attacker) =>
        many(40, async () => {
          const messages = Array.from({ length: 100 }, (_, id) => ({
            type: 'subscribe',
            id: `${id}`,
            payload: { query: `${subscription(LARGE)} # ${'x'.repeat(50_000)}` },
          }));
          await attacker.socket(messages);
          await delay(HELD_MS);
        }),
    },
  },
  'work without a tenant while PostgreSQL hangs': {
    clause: 'D6-25',
    during: 'postgres hangs',
    ways: {
      'token requests': (attacker) => {
        const bytes = post(
          '/v2/oauth/token',
          {},
          `{"grant_type":"client_credentials","client_id":"${CURRENCY}","client_secret":"x","more":${list(4_500, () => '{}')}}`,
        );
        return many(1_200, (at) => attacker.send(bytes, { from: networkOf(at) }), 600);
      },
      'sign-ins at the console': (attacker) => {
        const bytes = signIn(attacker, '""');
        return many(600, (at) => attacker.send(bytes, { from: networkOf(at) }), 600);
      },
      introspections: (attacker) => {
        const bytes = post(
          '/v2/oauth/introspect',
          {},
          { client_id: CURRENCY, client_secret: 'x', token: 'x'.repeat(60_000) },
        );
        return many(600, (at) => attacker.send(bytes, { from: networkOf(at) }), 600);
      },
      'agents with unknown secrets': (attacker) => {
        const bytes = post(
          '/v2/mcp',
          { ...MCP, Authorization: `Bearer ${fresh()}${'s'.repeat(60)}` },
          JSON.stringify(tool('get_access', {})) + ' '.repeat(60_000),
        );
        return many(600, (at) => attacker.send(bytes, { from: networkOf(at) }), 600);
      },
      'tokens of unknown tenants': (attacker) => {
        const bytes = request('GET', '/v1/accounts', { Authorization: `Bearer ${forged(undefined, 1)}` });
        return many(600, (at) => attacker.send(bytes, { from: networkOf(at) }), 600);
      },
    },
  },
  'previews of a wallet with 500 rules': {
    clause: 'D6-26',
    ways: {
      'twelve aliases': previews(20, 12, 1_000),
      'eighteen aliases': previews(20, 18, 1_000),
      'one alias, many requests': previews(200, 1, 1_000),
      batches: (attacker) => {
        const one = JSON.stringify(preview(attacker, 1, 1_000));
        const bytes = post('/graphql', attacker.bearer, `[${Array(10).fill(one).join()}]`);
        return many(20, () => attacker.send(bytes));
      },
      'operations on WebSockets': (attacker) =>
        many(4, async () => {
          const payload = preview(attacker, 2, 300);
          await attacker.socket(Array.from({ length: 60 }, (_, id) => ({ type: 'subscribe', id: `${id}`, payload })));
          await delay(5_000);
        }),
      'tools of MCP': (attacker) => {
        const facts = PREVIEWED_FACTS(1_000).balances.map(({ networkCurrencyId: network_currency_id, ...one }) => ({
          ...one,
          network_currency_id,
        }));
        const bytes = post(
          '/v2/mcp',
          { ...attacker.bearer, ...MCP },
          tool('preview_wallet_rule', { wallet_id: attacker.tenant.nodeId, balances: facts }),
        );
        return many(60, () => attacker.send(bytes));
      },
      'clients that disconnect': (attacker) => {
        const bytes = post('/graphql', attacker.bearer, preview(attacker, 12, 1_000));
        return many(
          100,
          async () => {
            const socket = openSocket(attacker.nextUrl).on('error', () => undefined);
            socket.write(bytes);
            await delay(100);
            socket.destroy();
            attacker.count('left');
          },
          10,
        );
      },
    },
  },
  'cookies of the console': {
    clause: 'D3-40',
    ways: {
      'that are no tokens': ends(1_200, (at) => `x${at}`),
      'without a kid': ends(100, (at) => forged(undefined, at)),
      'with a kid of nobody': ends(100, (at) => forged(`user.${at}`, at)),
      'of one value': ends(100, () => forged('user.0', 0)),
      'at the renewal': ends(100, (at) => forged(undefined, at), 'POST', '/console/session/renew'),
      'with our kid': async (attacker) => {
        const [, token = ''] = (await consoleCookie(attacker.target)).split('=');
        const { kid } = JSON.parse(String(Buffer.from(token.split('.')[0] ?? '', 'base64url')));
        await ends(80, (at) => forged(kid, at))(attacker);
      },
    },
  },
  'responses of a remote service': {
    clause: 'D6-27',
    ways: Object.fromEntries(
      [...Object.keys(ANSWERS).filter((name) => name !== 'ok'), 'reset', 'slowly'].map((name) => [name, remote(name)]),
    ),
  },
  'variables of thousands of levels': {
    clause: 'D6-25',
    ways: {
      'as server-sent events': (attacker) =>
        many(200, () => attacker.send(post('/graphql', { ...attacker.bearer, ...SSE }, deepBody(DECLARED, DEEP)))),
      'over the limit': (attacker) =>
        many(200, () => attacker.send(post('/graphql', { ...attacker.bearer, ...SSE }, deepBody(DECLARED, 19_990)))),
      'on a WebSocket': (attacker) =>
        many(10, async () => {
          const texts = [DEEP, 19_990].map(
            (levels, id) => `{"type":"subscribe","id":"${id}","payload":${deepBody(DECLARED, levels)}}`,
          );
          await attacker.socket([...texts, { type: 'subscribe', id: 'other', payload: { query: ME } }]);
          await delay(1_000);
        }),
      'in objects': (attacker) => {
        const text = deepBody('subscription ($v: TransactionFilter) { transactionUpdates(filter: $v) { cursor } }', 0);
        const objects = `${'{"and":'.repeat(9_000)}{}${'}'.repeat(9_000)}`;
        return many(200, () =>
          attacker.send(
            post(
              '/graphql',
              { ...attacker.bearer, ...SSE },
              text.replace('"v":', `"v":${objects},"w":[]`).replace('"w":[]', '"w":[]'),
            ),
          ),
        );
      },
      'as arguments of MCP': (attacker) =>
        many(200, () =>
          attacker.send(
            post(
              '/v2/mcp',
              { ...attacker.bearer, ...MCP },
              JSON.stringify(tool('get_access', {})).replace('"arguments":{}', `"arguments":{"v":${deep(DEEP)}}`),
            ),
          ),
        ),
      'as literals': (attacker) =>
        many(200, () =>
          attacker.send(post('/graphql', attacker.bearer, { query: `{ me(v: ${deep(450)}) { nodeId } }` })),
        ),
    },
  },
  'sessions that are renewed at once': {
    clause: 'D3-40',
    ways: {
      'three times': renewals(3, 10),
      'twenty times': renewals(20, 3),
      'fifty times': renewals(50, 1),
      'one after the other': renewals(1, 10),
    },
  },
};

/** Callers without a token, of twenty networks. */
export const ANONYMOUS: Readonly<Record<string, Attack>> = {
  'heads that do not end': (attacker) => {
    const head = `GET /health HTTP/1.1\r\nHost: x\r\n${`X-Filler: ${'x'.repeat(990)}\r\n`.repeat(150)}`;
    return many(2_000, (at) => attacker.send(head, { from: networkOf(at), heldMs: HELD_MS }));
  },
  'connections that send nothing': (attacker) =>
    many(2_000, (at) => attacker.send('', { from: networkOf(at), heldMs: HELD_MS })),
  'requests without a token': (attacker) =>
    many(3_000, (at) => attacker.send(request('GET', '/v1/accounts'), { from: networkOf(at) })),
  'bodies without a token': (attacker) => {
    const bytes = post('/graphql', {}, `{"query":"${ME}","variables":{"v":${list(40_000, () => '{}')}}}`);
    return many(1_000, (at) => attacker.send(bytes, { from: networkOf(at) }));
  },
};
