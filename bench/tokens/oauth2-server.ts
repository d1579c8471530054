import OAuth2Server from '@node-oauth/oauth2-server';
import express from 'express';
import { type PeerOptions, peerOptions } from './peer.ts';
import { LIFETIME_SECONDS, type Sign, signer } from './sign.ts';

/** A model that knows one client and holds no token: both are JWTs. The library's grant asks for no refresh token. */
function modelOf(options: PeerOptions, sign: Sign): OAuth2Server.ClientCredentialsModel {
  const { clientId, clientSecret, scopes } = options;
  const client = { id: clientId, secret: clientSecret, grants: ['client_credentials'] };
  const clients = new Map([[clientId, client]]);
  const nowSeconds = () => Math.floor(Date.now() / 1000);
  return {
    getClient: async (id, secret) => {
      const known = clients.get(id);
      return known?.secret === secret ? known : undefined;
    },
    getUserFromClient: async ({ id }) => ({ id }),
    validateScope: async () => [...scopes],
    generateAccessToken: async () => sign('api', nowSeconds()),
    saveToken: async (token, of, user) => {
      const refreshToken = await sign('refresh', nowSeconds());
      return { ...token, refreshToken, client: of, user };
    },
    getAccessToken: async () => undefined,
  };
}

/** Run as a process of its own: Express with @node-oauth/oauth2-server at its token endpoint, as its documentation says. */
async function serve(options: PeerOptions): Promise<void> {
  const model = modelOf(options, await signer(options));
  const oauth = new OAuth2Server({ model, accessTokenLifetime: LIFETIME_SECONDS });
  const app = express();
  app.get('/health', (_req, res) => {
    res.json({});
  });
  app.post('/token', express.urlencoded({ extended: false }), async (req, res) => {
    const response = new OAuth2Server.Response(res);
    try {
      await oauth.token(new OAuth2Server.Request(req), response);
    } catch {
      // The library has put the error into the response.
    }
    res.set(response.headers ?? {});
    res.status(response.status ?? 200).json(response.body);
  });
  app.listen(options.port, '127.0.0.1');
}

await serve(peerOptions());
