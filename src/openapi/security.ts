import type { oas31 } from 'zod-openapi';
import type { Endpoint } from '../gateway/gateway-config.ts';
import { PERMISSIONS } from '../oauth/permissions.rules.ts';

const scopes = Object.fromEntries(PERMISSIONS.map((permission) => [permission, `The permission ${permission}.`]));
const flow = { tokenUrl: '/v2/oauth/token', refreshUrl: '/v2/oauth/token', scopes };

/** How a caller shows who it is (specification section 5). */
export const securitySchemes = {
  oauth2: {
    type: 'oauth2',
    description:
      'Gets a user token. What it may do is what the client (client credentials) or the role of the supervisor (password) has; a requested scope is ignored.',
    flows: { clientCredentials: flow, password: flow },
  },
  userToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'An access token of the token endpoint.',
  },
  legacyToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'A token of the legacy integration, accepted wherever a user token is.',
  },
  clientBasic: {
    type: 'http',
    scheme: 'basic',
    description: 'The client_id and client_secret of a client, form-encoded each (RFC 6749 section 2.3.1).',
  },
  webhookBasic: { type: 'http', scheme: 'basic', description: 'The credentials of the chain processor.' },
  clientSecret: { type: 'http', scheme: 'bearer', description: 'The secret of a client.' },
} satisfies Record<string, oas31.SecuritySchemeObject>;

type Scheme = keyof typeof securitySchemes;

/** What a protected endpoint takes, one of several: a token of a class that is accepted, with the permissions that it needs. */
export function bearerSecurity({ tokens, permissions }: Endpoint): oas31.SecurityRequirementObject[] {
  const schemes: Scheme[] = tokens.flatMap((tokenClass): Scheme[] => {
    switch (tokenClass) {
      case 'user':
        return ['oauth2', 'userToken'];
      case 'legacy':
        return ['legacyToken'];
      case 'discover':
        throw new Error('no documented endpoint takes discover tokens');
      default:
        return tokenClass satisfies never;
    }
  });
  return schemes.map((scheme) => ({ [scheme]: [...permissions] }));
}
