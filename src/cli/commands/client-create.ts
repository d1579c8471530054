import { clientInput, GRANT_TYPES } from '../../clients/client.input.ts';
import { OPERATOR } from '../../oauth/administration.rules.ts';
import { PERMISSIONS } from '../../oauth/permissions.rules.ts';
import { openAdministration, orCommandError } from '../administration.ts';
import { clientView } from '../client-view.ts';
import { type Command, type CommandInput, EXIT_OK } from '../command.ts';
import { checked, list, listOf, text, uuid, wholeNumber } from '../flags.ts';

const DEFAULT_DURATION_SECONDS = 3_600;

/** The flag of each member of a client. */
const FLAG_OF = {
  name: '--name',
  grant_types: '--grants',
  scopes: '--scopes',
  token_expiry: '--token-duration',
  allowed_ips: '--allowed-ips',
  cert_fingerprint: '--cert-fingerprint',
  requests_per_second: '--requests-per-second',
  requests_per_minute: '--requests-per-minute',
  requests_per_hour: '--requests-per-hour',
  monthly_limit: '--monthly-limit',
};

/** `portcullis client create`: a client of a node, and its secret. */
export const clientCreate: Command = {
  name: 'client create',
  summary: 'create a client of a node and show its secret once',
  description: [
    'Creates a client of a node, with one secret that is shown this once. The secret is kept as a hash',
    "under the servers' pepper: SECRET_PEPPER, or the one in their DATA_DIR, must be theirs here too.",
    'A limit that is not given is no limit. Running servers know the client at once.',
  ].join('\n'),
  positionals: [],
  required: { node: 'ID', name: 'NAME', grants: 'LIST', scopes: 'LIST' },
  flags: {
    node: { type: 'string' },
    name: { type: 'string' },
    grants: { type: 'string' },
    scopes: { type: 'string' },
    'token-duration': { type: 'string' },
    'no-token-expiry': { type: 'boolean' },
    'allowed-ips': { type: 'string' },
    'require-certificate': { type: 'boolean' },
    'cert-fingerprint': { type: 'string' },
    'requests-per-second': { type: 'string' },
    'requests-per-minute': { type: 'string' },
    'requests-per-hour': { type: 'string' },
    'monthly-limit': { type: 'string' },
    'refresh-reuse-detection': { type: 'boolean' },
  },
  flagHelp: {
    node: 'the node that the client is of',
    name: 'what people call it',
    grants: `of ${GRANT_TYPES.join(',')}`,
    scopes: 'permissions between commas: accounts:read,wallets:read',
    'token-duration': `how long its tokens live, in seconds (${DEFAULT_DURATION_SECONDS})`,
    'no-token-expiry': 'its access tokens do not expire',
    'allowed-ips': 'addresses and networks between commas: 192.0.2.7,2001:db8::/32',
    'require-certificate': 'it must show its certificate: without a fingerprint nobody passes',
    'cert-fingerprint': 'the fingerprint of that certificate, with or without colons',
    'requests-per-second': 'the most requests in a second',
    'requests-per-minute': 'the most requests in a minute',
    'requests-per-hour': 'the most requests in an hour',
    'monthly-limit': 'the most requests in a calendar month (UTC)',
    'refresh-reuse-detection': 'a refresh token that is used twice ends its login',
  },
  lists: { grants: GRANT_TYPES, scopes: PERMISSIONS },
  examples: [
    'portcullis client create --node ID --name Books --grants password --scopes accounts:read',
    'portcullis client create --node ID --name Desk --grants password,refresh_token --scopes "" --json',
  ],
  async run({ flags, env, json, print }) {
    const nodeId = uuid('--node', text(flags, 'node'));
    const input = checked(clientInput, members(flags), FLAG_OF);
    await using stack = new AsyncDisposableStack();
    const { clients } = await openAdministration(env, 'mutation createClient', stack);
    const created = clients.create(nodeId, OPERATOR, input);
    const { client, secret } = await orCommandError(`there is no node ${nodeId}`, created);
    if (json) print(`${JSON.stringify({ ...clientView(client), client_secret: secret })}\n`);
    else
      print(
        `client_id      ${client.id}\nclient_secret  ${secret}\nThe secret is shown this once: only its hash is kept.\n`,
      );
    return EXIT_OK;
  },
};

function members(flags: CommandInput['flags']): object {
  return {
    name: text(flags, 'name'),
    grant_types: listOf(flags, 'grants', GRANT_TYPES),
    scopes: listOf(flags, 'scopes', PERMISSIONS),
    token_expiry: {
      enabled: flags['no-token-expiry'] !== true,
      duration: wholeNumber(flags, 'token-duration') ?? DEFAULT_DURATION_SECONDS,
    },
    allowed_ips: list(flags, 'allowed-ips'),
    require_certificate: flags['require-certificate'] === true,
    cert_fingerprint: text(flags, 'cert-fingerprint'),
    rate_limit: {
      requests_per_second: wholeNumber(flags, 'requests-per-second'),
      requests_per_minute: wholeNumber(flags, 'requests-per-minute'),
      requests_per_hour: wholeNumber(flags, 'requests-per-hour'),
    },
    monthly_limit: wholeNumber(flags, 'monthly-limit'),
    refresh_reuse_detection: flags['refresh-reuse-detection'] === true,
  };
}
