import { PASSWORD } from '../graphql/administration.ts';
import { autoTransfer, leaf, limit } from '../wallet-rules/rules.ts';
import { keyedUser, type Things } from './marked-node.ts';
import { type Call, STORED, type SurfaceRow, type Thing, thingOf } from './surface-row.ts';

const NOT_FOUND = '404\n';
const RULES = '/v1/wallets/{wallet_id}/rules';
const NETWORK = 'POST /v1/wallets/{wallet_id}/networks/{network_id}';

interface Sent {
  json?: unknown;
  headers?: Record<string, string>;
}

/** A row whose path has `{id}` for what is named and, as `{own.wallet}`, what else is of the caller or of the other. */
function row(
  covers: string,
  thing: Thing,
  says: string,
  path: string,
  { sent = () => ({}), alike }: { sent?: (id: string, own: Things) => Sent; alike?: string } = {},
): SurfaceRow {
  const ask = (call: Call, id: string, own: Things, other: Things) => {
    const of: Record<string, Things> = { own, other };
    const filled = path.replace(/\{(?:id|(\w+)\.(\w+))\}/g, (_all, whose?: string, key?: string) =>
      whose === undefined ? id : String(of[whose]?.[key as keyof Things]),
    );
    return call(covers.split(' ')[0] ?? '', filled, sent(id, own));
  };
  return { covers, thing: thingOf(thing), says, ask, ...(alike === undefined ? {} : { alike }) };
}

/** Where the body of a rule names a thing. */
const RULE_BODIES: Record<string, (id: string) => unknown> = {
  network_id: (id) => limit({ network_id: id }),
  network_currency_id: (id) => limit({ network_currency_id: id }),
  target_wallet_id: (id) => autoTransfer({}, { target_wallet_id: id }),
  rule_logic: (id) => autoTransfer({}, { rule_logic: { not: { and: [leaf({ network_currency_id: id })] } } }),
  mandatory_user_id: (id) => limit({ sign_and_approve_rule: { mandatory_user_id: id } }),
};

const rule = { sent: () => ({ json: limit() }) };
const keyed = { sent: (id: string) => ({ json: limit(), headers: { 'idempotency-key': id } }) };
const WALLETS: SurfaceRow[] = [
  row(`POST ${RULES} {wallet_id}`, 'wallet', NOT_FOUND, '/v1/wallets/{id}/rules', rule),
  row(`POST ${RULES} Idempotency-Key`, 'key', NOT_FOUND, '/v1/wallets/{other.wallet}/rules', keyed),
  row(`PUT ${RULES}/{id} {wallet_id}`, 'wallet', NOT_FOUND, '/v1/wallets/{id}/rules/{own.rule}', rule),
  row(`PUT ${RULES}/{id} {id}`, 'rule', NOT_FOUND, '/v1/wallets/{own.wallet}/rules/{id}', rule),
  row(`PUT ${RULES}/{id} both`, 'rule', NOT_FOUND, '/v1/wallets/{other.wallet}/rules/{id}', rule),
  // Replacing a rule parses the same body.
  ...Object.entries(RULE_BODIES).map(([name, body]) =>
    row(`POST ${RULES} ${name}`, 'wallet', '201\n', '/v1/wallets/{own.wallet}/rules', {
      ...{ sent: (id) => ({ json: body(id) }), alike: STORED },
    }),
  ),
  row(`${NETWORK} {wallet_id}`, 'wallet', NOT_FOUND, '/v1/wallets/{id}/networks/{own.network}'),
  row(`${NETWORK} {network_id}`, 'network', NOT_FOUND, '/v1/wallets/{other.wallet}/networks/{id}'),
];

const SINGLE = '/v2/users/migrate/with-wallet';
const USERS: SurfaceRow[] = [
  ...(['email', 'external_id', 'wallet_address'] as const).flatMap((name, index) => {
    const user = (id: string) => ({
      wallet_address: `r-of-${id}`,
      external_id: `y-of-${id}`,
      kyc_sent: false,
      [name]: id,
    });
    const nth = (at: number) => (of: Things) => of.users[index + at]?.[name] ?? '';
    const many = { sent: (id: string) => ({ json: { users: [user(id)] } }) };
    return [
      row(`POST ${SINGLE} ${name}`, nth(7), '201\n', SINGLE, { sent: (id) => ({ json: user(id) }) }),
      row(`POST ${SINGLE}/bulk ${name}`, nth(10), '"success":1', `${SINGLE}/bulk`, many),
    ];
  }),
  {
    ...{ covers: `POST ${SINGLE} Idempotency-Key`, thing: (of) => of.key, says: '201\n' },
    alike: 'the own node is told its first answer again',
    async ask(call, id) {
      const answer = await call('POST', SINGLE, { json: keyedUser(id), headers: { 'idempotency-key': id } });
      const { kyc: _time, ...user } = answer.json;
      return { ...answer, text: JSON.stringify(user) };
    },
  },
];

/** A request of a client that shows its credentials, of which some members are another's. */
function byClient(path: string, member: string, thing: Thing, says = '401\n', json: object = {}, alike?: string) {
  const sent = (id: string, own: Things) => ({
    json: { ...own.client, ...json, [member]: id },
    headers: { authorization: '' },
  });
  return row(`POST ${path} ${member}`, thing, says, path, { sent, ...(alike === undefined ? {} : { alike }) });
}

const TOKEN = '/v2/oauth/token';
const TOKENS: Thing[] = [
  ...(['token', 'refreshToken'] as const),
  ...[(of: Things) => of.login.access_token, (of: Things) => of.login.refresh_token],
];
/** Ways to name a client, a person or a token of a node at the token routes. */
const TOKEN_ROWS: readonly SurfaceRow[] = [
  ...(['client_id', 'client_secret'] as const).map((member) =>
    byClient(TOKEN, member, (of) => of.client[member], '401\n', { grant_type: 'client_credentials' }),
  ),
  byClient(TOKEN, 'username', 'username', '401\n', { grant_type: 'password', password: PASSWORD }),
  ...[TOKENS[1], TOKENS[3]].map((thing = 'token') =>
    byClient(TOKEN, 'refresh_token', thing, '401\n', { grant_type: 'refresh_token' }),
  ),
  ...['/v2/oauth/revoke', '/v2/oauth/introspect'].map((path) =>
    byClient(path, 'client_id', (of) => of.client.client_id, '401\n', { token: 'x' }),
  ),
  ...TOKENS.flatMap((thing) => [
    byClient('/v2/oauth/revoke', 'token', thing, '\n{}', {}, 'whether there was anything to revoke is not told'),
    byClient('/v2/oauth/introspect', 'token', thing, '\n{"active":false}'),
  ]),
];

const AT = '2026-03-01T00:00:00Z';
const others = '/v1/accounts?node_id={id}&nodeId={id}&id={id}&type=organisation';
const OTHERS_ROWS: SurfaceRow[] = [
  ...['/v2/webhooks', '/v2/webhooks/custodial'].map((path) =>
    row(`POST ${path}`, 'transaction', '401\n', path, {
      sent: (id) => ({ json: { id, type: 1, status: 3, created_at: AT, updated_at: AT } }),
      alike: 'a token opens nothing here',
    }),
  ),
  row('GET /v2/admin/tokens/{id} {id}', 'asset', NOT_FOUND, '/v2/admin/tokens/{id}'),
  row(
    'GET /graphql/audit-exports/{id}/{key} {id}',
    'auditExport',
    NOT_FOUND,
    '/graphql/audit-exports/{id}/{other.exportKey}',
  ),
  row(
    'GET /graphql/audit-exports/{id}/{key} {key}',
    'exportKey',
    NOT_FOUND,
    '/graphql/audit-exports/{other.auditExport}/{id}',
    { alike: 'a path works once: the row before has used it' },
  ),
  row('GET /v1/accounts', 'nodeId', '"page":1,', others, { alike: 'other parameters are ignored' }),
  row('GET /graphql', 'account', '{"data":{"account":null}}', '/graphql?query=%7Baccount(id:%22{id}%22)%7Bid%7D%7D'),
  row('POST /graphql', 'wallet', '[{"data":{"wallet":null}}]', '/graphql', {
    sent: (id) => ({ json: [{ query: `{wallet(id:"${id}"){id}}` }] }),
  }),
  row('OPTIONS **', 'wallet', '204\n', '/v1/wallets/{id}/rules', { alike: 'no id is taken' }),
];

/** Endpoints that name nothing: only that their answers tell nothing of another node. */
export const NAMELESS: readonly string[] = [
  'GET /.well-known/oauth-authorization-server',
  'GET /.well-known/oauth-protected-resource/v2/mcp',
  ...['/health', '/v1/health', '/v2/health'].flatMap((path) => [`GET ${path}`, `HEAD ${path}`]),
  ...[
    'GET /console',
    'GET /console/**',
    'GET /console/tenants/{client_id}',
    'POST /console/session',
    'POST /console/session/renew',
    'DELETE /console/session',
  ],
  ...['GET /swagger', 'GET /swagger/*', 'GET /v2/blockchain/gas-fee'],
];

/** Agents show the secret of a client instead of a token. */
export const MCP: readonly string[] = [
  ...['GET /v2/mcp', 'POST /v2/mcp', 'DELETE /v2/mcp', 'GET /v2/mcp/**', 'POST /v2/mcp/**'],
];

/** Every way in which a route can name a thing of a node. */
export const REST_ROWS: readonly SurfaceRow[] = [...WALLETS, ...USERS, ...TOKEN_ROWS, ...OTHERS_ROWS];
