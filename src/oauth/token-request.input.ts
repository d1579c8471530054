import { z } from 'zod';
import { objectInput, textInput, uuidInput } from '../lib/input.ts';

const required = () => textInput().min(1, 'must not be empty');

const client = { client_id: uuidInput(), client_secret: required() };

/** The parameters of each grant (specification section 4.1). */
export const tokenRequestInputs = {
  password: objectInput({ grant_type: z.literal('password'), ...client, username: required(), password: required() }),
  client_credentials: objectInput({ grant_type: z.literal('client_credentials'), ...client }),
  refresh_token: objectInput({ grant_type: z.literal('refresh_token'), ...client, refresh_token: required() }),
};

/** Any other grant: its client is authenticated before the grant is refused. */
const otherGrant = objectInput({ grant_type: required(), ...client });

export type GrantType = keyof typeof tokenRequestInputs;

export type TokenRequest =
  | z.output<(typeof tokenRequestInputs)[GrantType]>
  | { grant_type: undefined; client_id: string; client_secret: string };

/** The parsed parameters, or undefined where one is missing or malformed. */
export function parseTokenRequest(body: unknown): TokenRequest | undefined {
  const other = otherGrant.safeParse(body);
  if (!other.success) return undefined;
  const { grant_type: grantType, client_id, client_secret } = other.data;
  if (!isGrantType(grantType)) return { grant_type: undefined, client_id, client_secret };
  const parsed = tokenRequestInputs[grantType].safeParse(body);
  return parsed.success ? parsed.data : undefined;
}

function isGrantType(grantType: string): grantType is GrantType {
  return Object.hasOwn(tokenRequestInputs, grantType);
}
