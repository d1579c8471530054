import { createServer } from 'node:http';
import Provider from 'oidc-provider';
import { type PeerOptions, peerOptions } from './peer.ts';
import { importKey, LIFETIME_SECONDS } from './sign.ts';

/**
 * Run as a process of its own: oidc-provider with its adapter in memory, its client credentials grant, and access tokens
 * as JWTs signed with HS256, which it gives for a resource server. By RFC 6749 section 4.4.3 it gives no refresh token.
 */
async function serve(options: PeerOptions): Promise<void> {
  const scope = options.scopes.join(' ');
  const resourceServer = {
    scope,
    audience: options.audience,
    accessTokenTTL: LIFETIME_SECONDS,
    accessTokenFormat: 'jwt',
    jwt: { sign: { alg: 'HS256', key: await importKey(options.signingSecret), kid: 'bench' } },
  };
  const provider = new Provider(options.issuer, {
    scopes: options.scopes,
    clients: [
      {
        client_id: options.clientId,
        client_secret: options.clientSecret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        token_endpoint_auth_method: 'client_secret_post',
        scope,
      },
    ],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => options.audience,
        getResourceServerInfo: () => resourceServer,
      },
    },
  });
  const answer = provider.callback();
  createServer((req, res) => {
    if (req.url === '/health') res.end('{}');
    else answer(req, res);
  }).listen(options.port, '127.0.0.1');
}

await serve(peerOptions());
