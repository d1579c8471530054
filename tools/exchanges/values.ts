import { createHmac } from 'node:crypto';

/** An id that is the same in each recording. */
export function fixedId(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

export const JWT_SECRETS = {
  user: 'user-secret-user-secret-user-secret-1234',
  discover: 'discover-secret-discover-secret-discover',
  legacy: 'legacy-secret-legacy-secret-legacy-secre',
  userBefore: 'user-before-user-before-user-before-1234',
};

/** What the demo of a recorded instance is made of: the file that a start would generate and keep (`DATA_DIR/demo.json`). */
export const DEMO = {
  node_id: fixedId(1),
  account_id: fixedId(2),
  wallet_id: fixedId(3),
  user_id: fixedId(4),
  asset_id: fixedId(5),
  network_id: fixedId(6),
  second_network_id: fixedId(7),
  other_chain_network_id: fixedId(8),
  network_currency_id: fixedId(9),
  target_wallet_id: fixedId(10),
  supervisor: { username: 'admin', password: 'password-of-admin' },
  client: { client_id: fixedId(11), client_secret: 'secret-of-the-demo-client' },
  transactions: {
    token_transactions: fixedId(21),
    node_transactions: fixedId(22),
    currency_token_transactions: fixedId(23),
    user_transactions: fixedId(24),
    secondary_market_transactions: fixedId(25),
    otc_transactions: fixedId(26),
  },
  other_node: {
    node_id: fixedId(31),
    account_id: fixedId(32),
    wallet_id: fixedId(33),
    supervisor: { username: 'admin', password: 'password-of-neighbour' },
    client: { client_id: fixedId(34), client_secret: 'secret-of-the-neighbour' },
  },
};

export const NOBODY = fixedId(99);
export const PUBLIC_URL = 'https://gate.example';
export const CONSOLE = 'https://console.example';
export const WEBHOOK = { username: 'chain-processor', password: 'password-of-the-webhook' };
export const SIGNING_SECRET = 'whsec_bm90aWZpY2F0aW9ucyBhcmUgc2lnbmVkIGJ5IHRoaXM=';

/** The secrets that a start would generate and keep (`DATA_DIR/secrets.json`). */
export const GENERATED = {
  jwtUser: JWT_SECRETS.user,
  jwtDiscover: JWT_SECRETS.discover,
  jwtLegacy: JWT_SECRETS.legacy,
  pepper: 'pepper-pepper-pepper-pepper-pepper-1234',
  webhookPassword: WEBHOOK.password,
};

export function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

let ids = 1000;

/** No token is the same as one before, which the service would know already or not, as the seconds fall. */
function nextId(): string {
  ids += 1;
  return fixedId(ids);
}

type Claims = Record<string, unknown>;

function encoded(part: unknown): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

/** A token signed by hand: good for the demo node for an hour, but for what is given. */
export function forged(claims: Claims = {}, secret: string = JWT_SECRETS.user, header: Claims = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const { node_id, client } = DEMO;
  const standard = { iss: PUBLIC_URL, sub: client.client_id, aud: node_id, iat: now, exp: now + 3600 };
  const own = { jti: nextId(), scope: 'accounts:read', client_id: client.client_id, token_use: 'api' };
  const input = `${encoded({ alg: 'HS256', typ: 'JWT', ...header })}.${encoded({ ...standard, ...own, ...claims })}`;
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}

type Json = Record<string, unknown>;

const SPOILT: Record<string, unknown[]> = {
  string: [undefined, null, 7, '', 'x', '\0', true],
  number: [undefined, null, 'x', -1, 0, 1.5, 1e40],
  boolean: [undefined, null, 'x', 1],
  object: [undefined, null, 'x', [], {}],
};

/** A good body with one member spoilt at a time, at every depth: absent, null, of another type, out of range. */
export function* spoilt(good: Json, prefix = ''): Generator<[what: string, body: Json]> {
  for (const [name, value] of Object.entries(good)) {
    for (const bad of SPOILT[typeof value] ?? []) {
      yield [`${prefix}${name} = ${JSON.stringify(bad) ?? 'absent'}`, { ...good, [name]: bad }];
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) continue;
    for (const [what, inner] of spoilt({ ...value }, `${prefix}${name}.`)) yield [what, { ...good, [name]: inner }];
  }
}
