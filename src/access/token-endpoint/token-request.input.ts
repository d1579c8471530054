import { z } from 'zod';
import { objectInput, textInput, uuidInput } from '../../lib/input.ts';

const required = () => textInput().min(1, 'must not be empty');

/** The credentials of a client in the body; HTTP Basic is the other way (RFC 6749 section 2.3.1). */
export const clientInput = objectInput({ client_id: uuidInput(), client_secret: required() });

/** The body beside HTTP Basic: it may repeat the id, but not hold a second secret. */
export const clientBesideBasicInput = objectInput({
  client_id: uuidInput().optional(),
  client_secret: z.never('must not be given twice').optional(),
});

/** The parameters of each grant (specification section 4.1). */
export const grantInputs = {
  password: objectInput({ grant_type: z.literal('password'), username: required(), password: required() }),
  client_credentials: objectInput({ grant_type: z.literal('client_credentials') }),
  refresh_token: objectInput({ grant_type: z.literal('refresh_token'), refresh_token: required() }),
};

/** Any other grant type, which is refused after its client is authenticated. */
const otherGrantInput = objectInput({ grant_type: required() });

/**
 * The parameters of revocation and introspection (RFC 7009 section 2.1, RFC 7662 section 2.1); `token_type_hint` is
 * ignored.
 */
export const tokenInput = objectInput({ token: required() });

export type GrantType = keyof typeof grantInputs;

export type TokenRequest = z.output<(typeof grantInputs)[GrantType]> | { grant_type: undefined };

/**
 * Parses the parameters of a grant; undefined where one is missing or malformed. An unknown grant type has the type
 * undefined.
 */
export function parseTokenRequest(parameters: unknown): TokenRequest | undefined {
  if (typeof parameters !== 'object' || parameters === null) return undefined;
  const grantType = 'grant_type' in parameters ? parameters.grant_type : undefined;
  if (typeof grantType === 'string' && isGrantType(grantType)) return grantInputs[grantType].safeParse(parameters).data;
  return otherGrantInput.safeParse(parameters).success ? { grant_type: undefined } : undefined;
}

function isGrantType(grantType: string): grantType is GrantType {
  return Object.hasOwn(grantInputs, grantType);
}
