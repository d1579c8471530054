import { basic } from '../webhook/stand.ts';
import type { Tries } from './cases.ts';
import { form, type OpenApiStand, type Options } from './stand.ts';

export const TOKEN = '/v2/oauth/token';

function grant(members: object) {
  return ({ p }: OpenApiStand): Options => ({ json: { ...p.demo.client, ...members } });
}

function byBasic(members: Record<string, string>, secret?: string) {
  return ({ p }: OpenApiStand): Options => {
    const { client_id: id, client_secret: own } = p.demo.client;
    return form(members, { authorization: basic(id, secret ?? own) });
  };
}

function ofLogin(password?: string) {
  return (stand: OpenApiStand): Options => {
    const { username, password: own } = stand.p.demo.supervisor;
    return grant({ grant_type: 'password', username, password: password ?? own })(stand);
  };
}

const CLIENT = { grant_type: 'client_credentials' };

/** Calls of the routes for tokens. */
export const tokenCases: readonly Tries[] = [
  {
    method: 'POST',
    path: TOKEN,
    tries: [
      ['client credentials', 200, grant(CLIENT)],
      ['password', 200, ofLogin()],
      ['a form with Basic', 200, byBasic(CLIENT)],
      ['a client with limits', 200, ({ limited }) => ({ json: { ...limited, ...CLIENT } })],
      ['no username', 400, grant({ grant_type: 'password' })],
      ['a form without a grant', 400, byBasic({ scope: 'x' })],
      ['too long', 400, grant({ grant_type: 'x'.repeat(70_000) })],
      ['a wrong password', 401, ofLogin('wrong')],
      ['a wrong secret by Basic', 401, byBasic(CLIENT, 'wrong')],
      ['an unknown grant', 403, grant({ grant_type: 'implicit' })],
      ['an unknown grant in a form', 403, byBasic({ grant_type: 'implicit' })],
      ['another service', 404, (stand) => ({ ...grant(CLIENT)(stand), headers: { 'x-target-server': 'wallets' } })],
    ],
  },
  {
    method: 'POST',
    path: '/v2/oauth/revoke',
    tries: [
      ['an unknown token', 200, grant({ token: 'x' })],
      ['no token', 400, grant({})],
      ['no client', 401, () => ({ json: { token: 'x' } })],
      ['a wrong secret', 401, byBasic({ token: 'x' }, 'wrong')],
    ],
  },
  {
    method: 'POST',
    path: '/v2/oauth/introspect',
    tries: [
      ['a login token', 200, (stand) => grant({ token: stand.login })(stand)],
      ['an API token', 200, (stand) => byBasic({ token: stand.token })(stand)],
      ['no token of ours', 200, grant({ token: 'x' })],
      ['no token', 400, byBasic({})],
      ['a wrong secret', 401, grant({ client_secret: 'wrong', token: 'x' })],
    ],
  },
  { method: 'GET', path: '/.well-known/oauth-authorization-server', tries: [['metadata', 200]] },
  { method: 'GET', path: '/.well-known/oauth-protected-resource/v2/mcp', tries: [['metadata', 200]] },
];
