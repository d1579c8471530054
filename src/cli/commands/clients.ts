import { OPERATOR } from '../../access/administration/administration.ts';
import { type ClientRow, clientMembers, DEFAULT_DURATION_SECONDS } from '../../access/clients/clients.service.ts';
import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import { clientInput, clientPatchInput, GRANT_TYPES, rotationInput } from '../../features/clients/client.input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { type CommandBody, CommandError, type CommandInput, printable, UsageError } from '../kit/command.ts';
import { checked, list, text, uuid, wholeNumber } from '../kit/flags.ts';
import { changed, nodeOf, openAdministration, openReading, orCommandError } from '../kit/open-services.ts';
import { changeCommand, listCommand, statusCommand } from '../kit/row-commands.ts';

/** Returns a client in the REST names, without its secret; null stands for a limit that is not set. */
function clientView(row: ClientRow) {
  return {
    client_id: row.id,
    node_id: row.node_id,
    ...clientMembers(row),
    status: row.status,
    last_used_at: row.last_used_at && isoFromPg(row.last_used_at),
    created_at: isoFromPg(row.created_at),
    updated_at: isoFromPg(row.updated_at),
  };
}

const NO_TOKEN_EXPIRY = { help: 'issue access tokens that do not expire', isSwitch: true };
const REUSE_DETECTION = { help: 'revoke the session if a refresh token is used twice', isSwitch: true };
/** The flags that restrict a client. */
const GUARD_FLAGS = {
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
};

/** `portcullis client create`: creates a client of a tenant and prints its secret. */
export const clientCreate: CommandBody = {
  description: [
    'Creates a client with one secret, which is shown only once. The secret is stored as a hash that depends on the',
    "servers' pepper: set the same SECRET_PEPPER here, or use their DATA_DIR.",
    'Without a limit flag, that limit does not apply. Running processes accept the client immediately.',
  ].join(' '),
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
    'no-token-expiry': NO_TOKEN_EXPIRY,
    ...GUARD_FLAGS,
    console: { help: 'create a client for signing in to the console: it has no secret and no limits', isSwitch: true },
    'refresh-reuse-detection': REUSE_DETECTION,
  },
  examples: [
    'portcullis client create --node ID --name Books --grants password --scopes accounts:read',
    'portcullis client create --node ID --name Console --console',
    'portcullis client create --node ID --name Desk --grants password,refresh_token --scopes "" --json',
  ],
  async run(input) {
    const nodeId = uuid('--node', text(input.flags, 'node'));
    const flagMembers = { ...NEW_CLIENT, ...members(input.flags), is_console: input.flags.console };
    flagMembers.token_expiry = { ...NEW_CLIENT.token_expiry, ...flagMembers.token_expiry };
    const client = checked(clientInput, flagMembers, { grant_types: '--grants', token_expiry: '--token-duration' });
    const { clientAdministration, record } = await openAdministration(input);
    await record(input.flags, { nodeId });
    const creating = clientAdministration.create(nodeId, OPERATOR, client);
    return input.answer(...withSecret(await orCommandError(`there is no node ${nodeId}`, creating), ''));
  },
};

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

/** What a new client has unless a flag says otherwise. */
const NEW_CLIENT = {
  grant_types: ['password', 'refresh_token'],
  scopes: [],
  token_expiry: { enabled: true, duration: DEFAULT_DURATION_SECONDS },
};

/** Returns the members that flags give, without those that no flag gives. */
function members(flags: CommandInput['flags']) {
  return defined({
    name: text(flags, 'name'),
    grant_types: list(flags, 'grants', GRANT_TYPES),
    scopes: list(flags, 'scopes', PERMISSIONS),
    token_expiry: defined({
      enabled: toggle(flags, 'token-expiry'),
      duration: wholeNumber(flags, 'token-duration', DEFAULT_DURATION_SECONDS),
    }),
    allowed_ips: list(flags, 'allowed-ips'),
    require_certificate: toggle(flags, 'require-certificate'),
    cert_fingerprint: text(flags, 'cert-fingerprint'),
    rate_limit: defined({
      requests_per_second: wholeNumber(flags, 'requests-per-second', 10),
      requests_per_minute: wholeNumber(flags, 'requests-per-minute', 600),
      requests_per_hour: wholeNumber(flags, 'requests-per-hour', 10_000),
    }),
    monthly_limit: wholeNumber(flags, 'monthly-limit', 1_000_000),
    refresh_reuse_detection: toggle(flags, 'refresh-reuse-detection'),
  });
}

function toggle(flags: CommandInput['flags'], name: string): boolean | undefined {
  return flags[`no-${name}`] === true ? false : flags[name] === true || undefined;
}

/** Returns an object without the members that are undefined; undefined if no other is left. */
function defined<Members extends object>(all: Members): Partial<Members> | undefined {
  const entries = Object.entries(all).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Partial<Members>);
}

/** `portcullis client update`: changes the given members of a client. */
export const clientUpdate = changeCommand({
  noun: 'client',
  positional: 'CLIENT_ID',
  description: [
    'Changes only what flags give, and shows the client. --allowed-ips "" and --cert-fingerprint "" remove that restriction,',
    'and 0 removes a limit. A scope that is taken away, and --token-expiry, revoke its own tokens. Running processes follow',
    'within a second.',
  ].join(' '),
  flags: {
    name: { help: 'display name' },
    grants: { help: `of ${GRANT_TYPES.join(',')}` },
    scopes: { help: 'all scopes that it has from now on, comma-separated' },
    'token-duration': { help: 'lifetime of its access tokens in seconds' },
    'token-expiry': { help: 'issue access tokens that expire', isSwitch: true },
    'no-token-expiry': NO_TOKEN_EXPIRY,
    ...GUARD_FLAGS,
    'no-require-certificate': { help: 'do not require a client certificate', isSwitch: true },
    'refresh-reuse-detection': REUSE_DETECTION,
    'no-refresh-reuse-detection': { help: 'allow a refresh token to be used again', isSwitch: true },
  },
  examples: [
    'portcullis client update CLIENT_ID --monthly-limit 2000000',
    'portcullis client update CLIENT_ID --requests-per-second 0 --allowed-ips "" --json',
  ],
  readFlags({ flags }) {
    const changes = members(flags);
    if (!changes) throw new UsageError('nothing to change: give at least one flag, such as --name');
    return checked(clientPatchInput, changes, { grant_types: '--grants', token_expiry: '--token-duration' });
  },
  change: async ({ clientAdministration }, nodeId, id, patch) =>
    clientView(await clientAdministration.patch(nodeId, OPERATOR, id, patch)),
  now: () => 'updated',
});

/** `portcullis client list`: prints the clients of one tenant or of all. */
export const clientList = listCommand({
  name: 'clients',
  description:
    'Lists clients, active or not, oldest first within each tenant. Secrets are not stored and cannot be shown.',
  pages: ({ clientPages }) => clientPages,
  head: `${'CLIENT'.padEnd(36)}  ${'NODE'.padEnd(36)}  STATUS    GRANTS  NAME\n`,
  view: clientView,
  line: ({ id, node_id: nodeId, status, grant_types: grants, name }) =>
    `${id}  ${nodeId}  ${status.padEnd('disabled'.length)}  ${grants.join(',')}  ${printable(name)}\n`,
});

/** `portcullis client show`: prints one client with its use and its secrets' ends. */
export const clientShow: CommandBody = {
  description: [
    'Shows a client: its restrictions, the requests that count for its quota this month as last saved (processes save them',
    'every few seconds), and from when until when each of its secrets is valid. Secrets are not stored and cannot be shown.',
  ].join(' '),
  positionals: ['CLIENT_ID'],
  examples: ['portcullis client show CLIENT_ID', 'portcullis client show CLIENT_ID --json'],
  async run(input) {
    const id = uuid('CLIENT_ID', input.positionals[0]);
    const db = await openReading(input);
    const absent = `there is no client ${id}`;
    const scoped = db.forNode(await nodeOf(db, 'clients', id, absent));
    const now = new Date().toISOString();
    const month = now.slice(0, 'YYYY-MM'.length);
    const [[row], [quota], secrets] = await Promise.all([
      scoped.run((k) => k.selectFrom('clients').selectAll().where('id', '=', id)),
      scoped.run((k) =>
        k.selectFrom('client_quotas').select('used').where('client_id', '=', id).where('month', '=', month),
      ),
      scoped.run((k) =>
        k
          .selectFrom('client_secrets')
          .select(['created_at', 'expires_at'])
          .where('client_id', '=', id)
          .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
          .orderBy('created_at'),
      ),
    ]);
    if (!row) throw new CommandError(absent);
    const document = {
      ...clientView(row),
      used: { month, requests: Number(quota?.used ?? 0) },
      secrets: secrets.map((secret) => ({
        created_at: isoFromPg(secret.created_at),
        expires_at: secret.expires_at && isoFromPg(secret.expires_at),
      })),
    };
    const lines = Object.entries(document).map(([name, value]) => `${name.padEnd(LABEL_WIDTH)}${shown(value)}\n`);
    return input.answer(document, lines.join(''));
  },
};

const LABEL_WIDTH = 'refresh_reuse_detection  '.length;

/** Returns a member of a client as text: `2 of 3, 4 of 5` for the members of an object, `-` where it has no value. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(shown).join(', ') || '-';
  if (typeof value !== 'object' || value === null) return value === null ? '-' : printable(String(value));
  return Object.entries(value)
    .map(([name, member]) => `${name} ${shown(member)}`)
    .join(' ');
}

/** `portcullis client rotate-secret`: adds a new secret and sets when the previous one expires. */
export const clientRotateSecret: CommandBody = {
  description: [
    'Issues a new secret for a client and shows it only once. The current secret stops working immediately, or after',
    '--overlap. Until then both work. A client never has more than two secrets. Running processes follow within a second.',
    "Set the servers' SECRET_PEPPER here, or use their DATA_DIR.",
  ].join(' '),
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
    const rotated = await changed(input, 'client', clientId, ({ clientAdministration: clients }, nodeId) =>
      clients.rotateSecret(nodeId, OPERATOR, clientId, overlap),
    );
    const before = overlap === 0 ? 'no longer works' : `stops working within ${overlap} seconds`;
    return input.answer(...withSecret(rotated, ` The previous secret ${before}.`));
  },
};

/** `portcullis client disable`: revokes the credentials, tokens and sessions of a client. */
export const clientDisable = statusCommand(
  {
    noun: 'client',
    positional: 'CLIENT_ID',
    description: [
      'Disables a client and revokes its secrets, its tokens and the sessions created through it. Running processes follow',
      'within a second. Enabling the client again does not restore tokens or sessions.',
    ].join(' '),
    change: async ({ clientAdministration }, nodeId, id) =>
      clientView(await clientAdministration.setStatus(nodeId, OPERATOR, id, 'disabled')),
  },
  'disabled',
);

/** `portcullis client enable`: makes the credentials of a client work again. */
export const clientEnable = statusCommand(
  {
    noun: 'client',
    positional: 'CLIENT_ID',
    description:
      'Enables a client: its secrets work again. Tokens and sessions that were revoked when it was disabled stay revoked.',
    change: async ({ clientAdministration }, nodeId, id) =>
      clientView(await clientAdministration.setStatus(nodeId, OPERATOR, id, 'active')),
  },
  'active',
);
