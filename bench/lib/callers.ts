import { createHmac } from 'node:crypto';

/** Clients like the demo's: of the demo's tenant, or of so many others in turn. */
export interface Callers {
  clients: number;
  tenants: number;
}

/** What the ids of the tenants and of the clients begin with; a number of twelve digits follows. */
export const TENANT = '00000000-0000-4000-a000-';
export const CLIENT = '00000000-0000-4000-9000-';

/** The id of the other tenant of a number. */
export function tenantId(n: number): string {
  return TENANT + String(n).padStart(12, '0');
}

/** The tokens of the clients, each like a token of the demo's client. */
export function callerTokens(token: string, secret: string, { clients, tenants }: Callers): string[] {
  const sign = tokenSigner(token, secret);
  return Array.from({ length: clients }, (_, n) => {
    const id = CLIENT + String(n).padStart(12, '0');
    return sign({ sub: id, client_id: id, jti: id, ...(tenants === 0 ? {} : { aud: tenantId(n % tenants) }) });
  });
}

/** Signs tokens that have other claims in the place of some of a token's. */
export function tokenSigner(token: string, secret: string): (claims: object) => string {
  const [head, claims = ''] = token.replace(/^Bearer /, '').split('.');
  const read = JSON.parse(Buffer.from(claims, 'base64url').toString());
  return (others) => {
    const written = Buffer.from(JSON.stringify({ ...read, ...others })).toString('base64url');
    const signature = createHmac('sha256', secret).update(`${head}.${written}`).digest('base64url');
    return `${head}.${written}.${signature}`;
  };
}
