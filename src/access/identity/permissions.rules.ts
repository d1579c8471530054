/** Matches the name of a permission (RFC 6749 section 3.3): visible ASCII without quotes and backslashes. */
export const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** All permissions, in the order in which a token's scope lists them. */
export const PERMISSIONS = [
  'accounts:read',
  'wallets:read',
  'wallets:write',
  'wallet-rules:read',
  'wallet-rules:write',
  'users:read',
  'users:migrate',
  'users:erase',
  'transactions:read',
  'transactions:write',
  'tokens:read',
  'clients:manage',
  'audit:read',
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** The permissions that only administrators have. */
const ADMINISTRATIVE: ReadonlySet<string> = new Set(['clients:manage', 'audit:read', 'users:erase']);

const ROLES: ReadonlyMap<string, readonly Permission[]> = new Map<string, readonly Permission[]>([
  ['admin', PERMISSIONS],
  ['operator', PERMISSIONS.filter((permission) => !ADMINISTRATIVE.has(permission))],
  ['viewer', PERMISSIONS.filter((permission) => permission.endsWith(':read') && permission !== 'audit:read')],
]);

/** Returns the permissions of a role; none when the role does not exist. */
export function permissionsOfRole(role: string): readonly Permission[] {
  return ROLES.get(role) ?? [];
}
