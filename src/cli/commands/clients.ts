import { OPERATOR } from '../../access/administration/administration.ts';
import { type ClientRow, DEFAULT_DURATION_SECONDS } from '../../access/clients/clients.service.ts';
import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import { clientInput, GRANT_TYPES, rotationInput } from '../../features/clients/client.input.ts';
import { camelName } from '../../lib/camel-name.ts';
import { isoFromPg, isoFromPgOrNull } from '../../lib/instants.ts';
import type { PageKey } from '../../lib/keyset.ts';
import type { Db } from '../../platform/database/database.ts';
import { changeCommand } from '../kit/change-command.ts';
import { type CommandBody, CommandError, type CommandInput } from '../kit/command.ts';
import { checked, list, text, uuid, wholeNumber } from '../kit/flags.ts';
import { changed, nodesOf, openAdministration, openReading, orCommandError } from '../kit/open-services.ts';
import { printRows } from '../kit/print-rows.ts';
import { printable } from '../kit/progress.ts';
import { graphql, mutation } from '../kit/running-instance.ts';

/** Returns a client in the REST names, without its secret; null stands for a limit that is not set. */
function clientView(row: ClientRow) {
  return {
    client_id: row.id,
    node_id: row.node_id,
    name: row.name,
    grant_types: row.grant_types,
    scopes: row.scopes,
    token_expiry: {
      enabled: row.token_expiry_enabled,
      duration: row.token_expiry_duration ?? DEFAULT_DURATION_SECONDS,
    },
    allowed_ips: row.allowed_ips,
    require_certificate: row.require_certificate,
    cert_fingerprint: row.cert_fingerprint,
    rate_limit: {
      requests_per_second: row.requests_per_second,
      requests_per_minute: row.requests_per_minute,
      requests_per_hour: row.requests_per_hour,
    },
    monthly_limit: row.monthly_limit,
    refresh_reuse_detection: row.refresh_reuse_detection,
    is_console: row.is_console,
    status: row.status,
    last_used_at: isoFromPgOrNull(row.last_used_at),
    created_at: isoFromPg(row.created_at),
    updated_at: isoFromPg(row.updated_at),
  };
}

/** `portcullis client create`: creates a client of a tenant and prints its secret. */
export const clientCreate: CommandBody = {
  description: [
    'Creates a client with one secret, which is shown only once. The secret is stored as a hash that depends on the',
    "servers' pepper: set the same SECRET_PEPPER here, or use their DATA_DIR.",
    'Without a limit flag, that limit does not apply. Running processes accept the client immediately.',
  ].join('\n'),
  flags: {
    node: { help: 'id of the tenant (node) that the client belongs to', required: 'ID' },
    name: { help: 'display name', required: 'NAME' },
    grants: { help: `of ${GRANT_TYPES.join(',')}; not with --console`, required: 'LIST', unless: 'console' },
    scopes: {
      help: 'comma-separated scopes, such as accounts:read,wallets:read; not with --console',
      required: 'LIST',
      unless: 'console',
    },
    'token-duration': { help: `lifetime of its access tokens in seconds (${DEFAULT_DURATION_SECONDS})` },
    'no-token-expiry': { help: 'issue access tokens that do not expire', isSwitch: true },
    'allowed-ips': { help: 'comma-separated IP addresses or CIDR ranges, such as 192.0.2.7,2001:db8::/32' },
    'require-certificate': {
      help: 'require a client certificate; without --cert-fingerprint every request is rejected',
      isSwitch: true,
    },
    'cert-fingerprint': {
      help: 'fingerprint of the certificate (SHA-1, SHA-256, SHA-384 or SHA-512), with or without colons',
    },
    'requests-per-second': { help: 'maximum requests per second' },
    'requests-per-minute': { help: 'maximum requests per minute' },
    'requests-per-hour': { help: 'maximum requests per hour' },
    'monthly-limit': { help: 'maximum requests per calendar month (UTC)' },
    console: { help: 'create a client for signing in to the console: it has no secret and no limits', isSwitch: true },
    'refresh-reuse-detection': { help: 'revoke the session if a refresh token is used twice', isSwitch: true },
  },
  examples: [
    'portcullis client create --node ID --name Books --grants password --scopes accounts:read',
    'portcullis client create --node ID --name Console --console',
    'portcullis client create --node ID --name Desk --grants password,refresh_token --scopes "" --json',
  ],
  async run(input) {
    const nodeId = uuid('--node', text(input.flags, 'node'));
    const flagMembers = members(input.flags);
    const client = checked(clientInput, flagMembers, { grant_types: '--grants', token_expiry: '--token-duration' });
    const variables = {
      input: { ...inCamelCase(flagMembers), grantTypes: client.grant_types.map((grant) => grant.toUpperCase()) },
    };
    const advice = mutation('createClient', '$input: ClientInput!', variables, SECRET_RESULT);
    const { clientAdministration } = await openAdministration(input, advice);
    const creating = clientAdministration.create(nodeId, OPERATOR, client);
    return input.answer(...withSecret(await orCommandError(`there is no node ${nodeId}`, creating), ''));
  },
};

/** What the mutations select that give a client a secret. */
const SECRET_RESULT = 'CreatedClient { clientSecret client { clientId } }';

function inCamelCase(members: object): object {
  const isObject = (value: unknown) => typeof value === 'object' && !Array.isArray(value);
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [camelName(name), isObject(value) ? inCamelCase(value) : value]),
  );
}

/** Returns the JSON document and the text that show a secret once; `more` is added to the text. */
function withSecret({ client, secret }: { client: ClientRow; secret: string }, more: string): [object, string] {
  const notice = `The secret is shown only once; only its hash is stored.${more}`;
  if (client.is_console) {
    return [
      clientView(client),
      `client_id      ${client.id}\nIt has no secret. Sign in at /console/?client=${client.id}\n`,
    ];
  }
  return [
    { ...clientView(client), client_secret: secret },
    `client_id      ${client.id}\nclient_secret  ${secret}\n${notice}\n`,
  ];
}

function members(flags: CommandInput['flags']): object {
  return {
    name: text(flags, 'name'),
    grant_types: list(flags, 'grants', GRANT_TYPES) ?? ['password', 'refresh_token'],
    scopes: list(flags, 'scopes', PERMISSIONS) ?? [],
    token_expiry: {
      enabled: flags['no-token-expiry'] !== true,
      duration: wholeNumber(flags, 'token-duration', DEFAULT_DURATION_SECONDS) ?? DEFAULT_DURATION_SECONDS,
    },
    allowed_ips: list(flags, 'allowed-ips'),
    require_certificate: flags['require-certificate'] === true,
    cert_fingerprint: text(flags, 'cert-fingerprint'),
    rate_limit: {
      requests_per_second: wholeNumber(flags, 'requests-per-second', 10),
      requests_per_minute: wholeNumber(flags, 'requests-per-minute', 600),
      requests_per_hour: wholeNumber(flags, 'requests-per-hour', 10_000),
    },
    monthly_limit: wholeNumber(flags, 'monthly-limit', 1_000_000),
    refresh_reuse_detection: flags['refresh-reuse-detection'] === true,
    is_console: flags.console,
  };
}

const PAGE_SIZE = 500;
/** The most clients that one query lists. */
const MAX_PAGE = 100;
const QUERY = `query ($first: Int, $after: String) {
  clients(first: $first, after: $after) {
    edges { node { clientId nodeId status grantTypes name } }
    pageInfo { hasNextPage endCursor }
  }
}`;

/** `portcullis client list`: prints the clients of one tenant or of all. */
export const clientList: CommandBody = {
  description:
    'Lists clients, active or not, oldest first within each tenant. Secrets are not stored and cannot be shown.',
  flags: { node: { help: 'limit to clients of this tenant' } },
  examples: ['portcullis client list', 'portcullis client list --node ID --json'],
  async run(input) {
    const node = text(input.flags, 'node');
    const nodeId = node === undefined ? undefined : uuid('--node', node);
    const db = await openReading(input, graphql(QUERY, { first: MAX_PAGE }));
    const nodes = await nodesOf(db, nodeId);
    if (nodeId !== undefined && nodes.length === 0) throw new CommandError(`there is no node ${nodeId}`);
    return printRows(input, { name: 'clients', rows: rowsOf(db, nodes), head: HEAD, view: clientView, line });
  },
};

/** Yields the clients of the tenants page by page, so that only one page is in memory. */
async function* rowsOf(db: Db, nodes: readonly string[]): AsyncGenerator<ClientRow> {
  const { clientPages } = (await import('../../app/access.ts')).buildAccessPages(db);
  for (const nodeId of nodes) {
    let after: PageKey | undefined;
    for (;;) {
      const request = { size: PAGE_SIZE, backward: false, after, before: undefined };
      const { rows, hasMore } = await clientPages.page(nodeId, {}, request);
      yield* rows;
      const last = rows.at(-1);
      if (!hasMore || !last) break;
      after = { at: last.created_at, id: last.id };
    }
  }
}

const HEAD = `${'CLIENT'.padEnd(36)}  ${'NODE'.padEnd(36)}  STATUS    GRANTS  NAME\n`;

function line({ id, node_id: nodeId, status, grant_types: grants, name }: ClientRow): string {
  return `${id}  ${nodeId}  ${status.padEnd('disabled'.length)}  ${grants.join(',')}  ${printable(name)}\n`;
}

/** `portcullis client rotate-secret`: adds a new secret and sets when the previous one expires. */
export const clientRotateSecret: CommandBody = {
  description: [
    'Issues a new secret for a client and shows it only once. The current secret stops working immediately, or after',
    '--overlap. Until then both work. A client never has more than two secrets. Running processes follow within a second.',
    "Set the servers' SECRET_PEPPER here, or use their DATA_DIR.",
  ].join('\n'),
  positionals: ['CLIENT_ID'],
  flags: { overlap: { help: 'seconds the current secret stays valid (0 to 2,592,000; default 0)' } },
  examples: [
    'portcullis client rotate-secret CLIENT_ID --overlap 86400',
    'portcullis client rotate-secret CLIENT_ID --json',
  ],
  async run(input) {
    const clientId = uuid('CLIENT_ID', input.positionals[0]);
    const members = { overlap_seconds: wholeNumber(input.flags, 'overlap', 86_400) };
    const { overlap_seconds: overlap } = checked(rotationInput, members, { overlap_seconds: '--overlap' });
    const variables = { id: clientId, overlapSeconds: overlap };
    const advice = mutation('rotateClientSecret', '$id: ID!, $overlapSeconds: Int', variables, SECRET_RESULT);
    const rotated = await changed(input, 'client', clientId, advice, ({ clientAdministration: clients }, nodeId) =>
      clients.rotateSecret(nodeId, OPERATOR, clientId, overlap),
    );
    const before = overlap === 0 ? 'no longer works' : `stops working within ${overlap} seconds`;
    return input.answer(...withSecret(rotated, ` The previous secret ${before}.`));
  },
};

/** `portcullis client disable`: revokes the credentials, tokens and sessions of a client. */
export const clientDisable = changeCommand({
  noun: 'client',
  positional: 'CLIENT_ID',
  description: [
    'Disables a client and revokes its secrets, its tokens and the sessions created through it. Running processes follow',
    'within a second. Enabling the client again does not restore tokens or sessions.',
  ].join('\n'),
  examples: ['portcullis client disable CLIENT_ID', 'portcullis client disable CLIENT_ID --json'],
  advice: (id) =>
    mutation('setClientStatus', '$id: ID!, $status: ClientStatus!', { id, status: 'DISABLED' }, 'Client { id status }'),
  readFlags: () => undefined,
  change: async ({ clientAdministration }, nodeId, id) =>
    clientView(await clientAdministration.setStatus(nodeId, OPERATOR, id, 'disabled')),
  now: () => 'disabled',
});
