import { createServer } from 'node:http';
import Provider from 'oidc-provider';
import { shortestRecords } from '../lib/shortest-record.ts';
import { type PeerOptions, peerOptions } from './peer.ts';
import { importKey, LIFETIME_SECONDS } from './sign.ts';

const MASKED = JSON.stringify({ client_secret: '***', access_token: '***' });

/**
 * Run as a process of its own: oidc-provider with its adapter in memory, its client credentials grant, and access tokens
 * as JWTs signed with HS256, which it gives for a resource server. By RFC 6749 section 4.4.3 it gives no refresh token. With a file for
 * records it also keeps a record of each request, by a middleware as its documentation has them.
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
  if (options.records) {
    const keep = shortestRecords(options.records);
    provider.use(async ({ req }, next) => {
      const startedTick = performance.now();
      await next();
      // Both bodies hold secrets, which a record does not show.
      await new Promise<void>((kept) => keep({ req, startedTick, requestBody: MASKED, responseBody: MASKED }, kept));
    });
  }
  const answer = provider.callback();
  createServer((req, res) => {
    if (req.url === '/health') res.end('{}');
    else answer(req, res);
  }).listen(options.port, '127.0.0.1');
}

await serve(peerOptions());
