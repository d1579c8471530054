import type { Answer } from '../harness.ts';
import { autoTransfer, leaf, limit } from '../wallet-rules/rules.ts';
import { keyedUser } from './marked-node.ts';
import { type Call, surfaceRow as row, type SurfaceRow } from './surface-row.ts';
import { TOKEN_ROWS } from './token-rows.ts';

const RULES = 'POST /v1/wallets/{wallet_id}/rules';
const RULE = 'PUT /v1/wallets/{wallet_id}/rules/{id}';
const NETWORK = 'POST /v1/wallets/{wallet_id}/networks/{network_id}';
const NOT_FOUND = '404\n';
const STORED = 'the id is stored as it came, and resolved nowhere';

function createRule(call: Call, wallet: string, json: unknown = limit(), headers = {}): Promise<Answer> {
  return call('POST', `/v1/wallets/${wallet}/rules`, { json, headers });
}

function replaceRule(call: Call, wallet: string, rule: string, json: unknown = limit()): Promise<Answer> {
  return call('PUT', `/v1/wallets/${wallet}/rules/${rule}`, { json });
}

/** Where the body of a rule names a thing. */
const RULE_BODIES: Record<string, (id: string) => unknown> = {
  network_id: (id) => limit({ network_id: id }),
  network_currency_id: (id) => limit({ network_currency_id: id }),
  target_wallet_id: (id) => autoTransfer({}, { target_wallet_id: id }),
  rule_logic: (id) => autoTransfer({}, { rule_logic: { not: { and: [leaf({ network_currency_id: id })] } } }),
  mandatory_user_id: (id) => limit({ sign_and_approve_rule: { mandatory_user_id: id } }),
};

const WALLETS: SurfaceRow[] = [
  row(
    `${RULES} {wallet_id}`,
    (of) => of.wallet,
    NOT_FOUND,
    (call, id) => createRule(call, id),
  ),
  row(
    `${RULES} Idempotency-Key`,
    (of) => of.key,
    NOT_FOUND,
    (call, id, _own, other) => createRule(call, other.wallet, limit(), { 'idempotency-key': id }),
  ),
  row(
    `${RULE} {wallet_id}`,
    (of) => of.wallet,
    NOT_FOUND,
    (call, id, own) => replaceRule(call, id, own.rule),
  ),
  row(
    `${RULE} {id}`,
    (of) => of.rule,
    NOT_FOUND,
    (call, id, own) => replaceRule(call, own.wallet, id),
  ),
  row(
    `${RULE} both`,
    (of) => of.rule,
    NOT_FOUND,
    (call, id, _own, other) => replaceRule(call, other.wallet, id),
  ),
  ...Object.entries(RULE_BODIES).flatMap(([name, body]) => [
    row(
      `${RULES} ${name}`,
      (of) => of.wallet,
      '201\n',
      (call, id, own) => createRule(call, own.wallet, body(id)),
      STORED,
    ),
    row(
      `${RULE} ${name}`,
      (of) => of.wallet,
      '200\n',
      async (call, id, own) => withoutVersion(await replaceRule(call, own.wallet, own.rule, body(id))),
      STORED,
    ),
  ]),
  row(
    `${NETWORK} {wallet_id}`,
    (of) => of.wallet,
    NOT_FOUND,
    (call, id, own) => call('POST', `/v1/wallets/${id}/networks/${own.network}`),
  ),
  row(
    `${NETWORK} {network_id}`,
    (of) => of.network,
    NOT_FOUND,
    (call, id, _own, other) => call('POST', `/v1/wallets/${other.wallet}/networks/${id}`),
  ),
];

/** Replacing raises the version of the caller's own rule, whatever it names. */
function withoutVersion(answer: Answer): Answer {
  const headers = new Headers(answer.headers);
  headers.delete('etag');
  return { ...answer, headers };
}

const SINGLE = '/v2/users/migrate/with-wallet';
const BULK = `${SINGLE}/bulk`;
const IDENTIFIERS = ['email', 'external_id', 'wallet_address'] as const;

const USERS: SurfaceRow[] = [
  ...IDENTIFIERS.flatMap((name, index) => {
    const user = (id: string) => ({
      wallet_address: `r-of-${id}`,
      external_id: `y-of-${id}`,
      kyc_sent: false,
      [name]: id,
    });
    return [
      row(
        `POST ${SINGLE} ${name}`,
        (of) => of.users[index + 7]?.[name] ?? '',
        '201\n',
        (call, id) => call('POST', SINGLE, { json: user(id) }),
      ),
      row(
        `POST ${BULK} ${name}`,
        (of) => of.users[index + 10]?.[name] ?? '',
        '"success":1',
        (call, id) => call('POST', BULK, { json: { users: [user(id)] } }),
      ),
    ];
  }),
  row(
    `POST ${SINGLE} Idempotency-Key`,
    (of) => of.key,
    '201\n',
    async (call, id) => {
      const answer = await call('POST', SINGLE, { json: keyedUser(id), headers: { 'idempotency-key': id } });
      const { kyc: _time, ...user } = answer.json;
      const headers = new Headers(answer.headers);
      return { ...answer, headers, text: JSON.stringify(user) };
    },
    'the own node is told its first answer again',
  ),
];

const NOTHING_NAMED = 'no id is taken';
const BY_OTHER_CREDENTIALS = 'a token opens nothing here';

const OTHERS_ROWS: SurfaceRow[] = [
  ...['/v2/webhooks', '/v2/webhooks/custodial'].map((path) =>
    row(
      `POST ${path}`,
      (of) => of.transaction,
      '401\n',
      (call, id) => {
        const at = '2026-03-01T00:00:00Z';
        return call('POST', path, { json: { id, type: 1, status: 3, created_at: at, updated_at: at } });
      },
      BY_OTHER_CREDENTIALS,
    ),
  ),
  row(
    'GET /v2/admin/tokens/{id} {id}',
    (of) => of.asset,
    NOT_FOUND,
    (call, id) => call('GET', `/v2/admin/tokens/${id}`),
  ),
  row(
    'GET /v1/accounts',
    (of) => of.nodeId,
    '"page":1,',
    (call, id) => call('GET', `/v1/accounts?node_id=${id}&nodeId=${id}&id=${id}&type=organisation`),
    'other parameters are ignored',
  ),
  row(
    'GET /graphql',
    (of) => of.account,
    '{"data":{"account":null}}',
    (call, id) => call('GET', `/graphql?query=${encodeURIComponent(`{account(id:"${id}"){id}}`)}`),
  ),
  row(
    'POST /graphql',
    (of) => of.wallet,
    '[{"data":{"wallet":null}}]',
    (call, id) => call('POST', '/graphql', { json: [{ query: `{wallet(id:"${id}"){id}}` }] }),
  ),
  row(
    'OPTIONS **',
    (of) => of.wallet,
    '204\n',
    (call, id) => call('OPTIONS', `/v1/wallets/${id}/rules`),
    NOTHING_NAMED,
  ),
];

/** Endpoints that name nothing: only that their answers tell nothing of another node. */
export const NAMELESS: readonly string[] = [
  'GET /.well-known/oauth-authorization-server',
  ...['/health', '/v1/health', '/v2/health'].flatMap((path) => [`GET ${path}`, `HEAD ${path}`]),
  'GET /console',
  'GET /console/**',
  'GET /swagger',
  'GET /swagger/*',
  'GET /v2/blockchain/gas-fee',
];

/** Agents show the secret of a client instead of a token. */
export const MCP: readonly string[] = [
  'GET /v2/mcp',
  'POST /v2/mcp',
  'DELETE /v2/mcp',
  'GET /v2/mcp/**',
  'POST /v2/mcp/**',
];

/** Every way in which a route can name a thing of a node. */
export const REST_ROWS: readonly SurfaceRow[] = [...WALLETS, ...USERS, ...TOKEN_ROWS, ...OTHERS_ROWS];
