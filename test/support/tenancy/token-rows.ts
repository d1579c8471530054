import { PASSWORD } from '../graphql/administration.ts';
import type { Answer } from '../harness.ts';
import type { Things } from './marked-node.ts';
import { type Call, surfaceRow as row, type SurfaceRow } from './surface-row.ts';

const GRANT = { grant_type: 'client_credentials' };

function byClient(call: Call, path: string, json: object): Promise<Answer> {
  return call('POST', path, { json, headers: { authorization: '' } });
}

/** Ways to name a client, a person or a token of a node at the token routes. */
export const TOKEN_ROWS: readonly SurfaceRow[] = [
  row(
    'POST /v2/oauth/token client_id',
    (of) => of.client.client_id,
    '401\n',
    (call, id, own) => byClient(call, '/v2/oauth/token', { ...GRANT, ...own.client, client_id: id }),
  ),
  row(
    'POST /v2/oauth/token client_secret',
    (of) => of.client.client_secret,
    '401\n',
    (call, id, own) => byClient(call, '/v2/oauth/token', { ...GRANT, ...own.client, client_secret: id }),
  ),
  row(
    'POST /v2/oauth/token username',
    (of) => of.username,
    '401\n',
    (call, id, own) =>
      byClient(call, '/v2/oauth/token', {
        ...{ grant_type: 'password', ...own.client, username: id, password: PASSWORD },
      }),
  ),
  ...[(of: Things) => of.refreshToken, (of: Things) => of.login.refresh_token].map((thing) =>
    row('POST /v2/oauth/token refresh_token', thing, '401\n', (call, id, own) =>
      byClient(call, '/v2/oauth/token', { grant_type: 'refresh_token', ...own.client, refresh_token: id }),
    ),
  ),
  ...['revoke', 'introspect'].flatMap((name) => [
    row(
      `POST /v2/oauth/${name} client_id`,
      (of) => of.client.client_id,
      '401\n',
      (call, id, own) => byClient(call, `/v2/oauth/${name}`, { ...own.client, client_id: id, token: 'x' }),
    ),
    ...[
      (of: Things) => of.token,
      (of: Things) => of.refreshToken,
      (of: Things) => of.login.access_token,
      (of: Things) => of.login.refresh_token,
    ].map((thing) =>
      row(
        `POST /v2/oauth/${name} token`,
        thing,
        name === 'revoke' ? '\n{}' : '\n{"active":false}',
        (call, id, own) => byClient(call, `/v2/oauth/${name}`, { ...own.client, token: id }),
        name === 'revoke' ? 'whether there was anything to revoke is not told' : undefined,
      ),
    ),
  ]),
];
