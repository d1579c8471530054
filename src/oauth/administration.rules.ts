import type { Refusal } from '../errors/refusal.ts';
import { type ClientBounds, freerThanMaker, UNBOUND } from './client-bounds.rules.ts';
import { type Permission, permissionsOfRole } from './permissions.rules.ts';
import type { Principal } from './principal.ts';

const NEEDED: Permission = 'clients:manage';
const ADMIN = 'admin';

/** Who administers clients and supervisors. */
export interface Administrator {
  holds(scope: string): boolean;
  /** The client whose own token this is; undefined for a login and for the operator. */
  ownClientId: string | undefined;
}

/** Whoever has the server: may do everything. */
export const OPERATOR: Administrator = { holds: () => true, ownClientId: undefined };

/** The administrator that a token speaks for. */
export function administratorOf({ tokenUse, permissions, clientId, subject }: Principal): Administrator {
  return {
    holds: (scope) => permissions.has(scope),
    ownClientId: tokenUse === 'login' ? undefined : (clientId ?? subject).toLowerCase(),
  };
}

/** What is done to a client or a supervisor. */
export type AdministrativeChange =
  | 'create'
  | 'replace'
  | 'rotate'
  | 'enable'
  | 'disable'
  | 'set_password'
  | 'set_role'
  | 'unlock'
  | 'revoke_sessions';

/** What is changed. */
export interface AdministeredTarget {
  /** Where it is a client that exists. */
  clientId?: string;
  /** Every scope that it has or will have. */
  scopes: readonly string[];
  /** What will hold it back; absent for a supervisor, whose logins have no bounds. */
  bounds?: ClientBounds;
}

/**
 * Why this change may not be made by this administrator (decisions: who may administer); undefined where it may.
 * Nobody gives, or takes hold of, what they do not have: neither a scope nor, by a client's own token, a freedom.
 * `maker` is what holds back the client whose token it is.
 */
export function administrationRefusal(
  by: Administrator,
  change: AdministrativeChange,
  { clientId, scopes, bounds }: AdministeredTarget,
  maker?: ClientBounds,
): Refusal | undefined {
  const needed = givesHold(change) ? [NEEDED, ...scopes] : [NEEDED];
  const missing = needed.find((scope) => !by.holds(scope));
  if (missing !== undefined) {
    return { kind: 'forbidden', permission: missing, message: `the permission ${missing} is missing` };
  }
  if (clientId !== undefined && clientId === by.ownClientId) {
    return { kind: 'forbidden', permission: NEEDED, message: "a client's own token never changes that client" };
  }
  const wanting = maker && givesHold(change) ? freerThanMaker(maker, bounds ?? UNBOUND) : [];
  if (wanting.length === 0) return undefined;
  const way = bounds ? wanting.join('; ') : "use a supervisor's login";
  const message = `a client's own token gives nobody more freedom than it has: ${way}`;
  return { kind: 'forbidden', permission: NEEDED, message };
}

/** Whether there is a role of this name. */
export function isRole(name: string): boolean {
  return permissionsOfRole(name).length > 0;
}

/** As far as it counts towards a node's admins. */
export interface Standing {
  id: string;
  role: string;
  status: 'active' | 'disabled';
}

/** Whether the supervisor can administer its node. */
function isActiveAdmin({ role, status }: Standing): boolean {
  return role === ADMIN && status === 'active';
}

/** Why this may not become of a supervisor: the last active admin of a node stays one. `all` are its admins at least. */
export function lastAdminRefusal(after: Standing, all: readonly Standing[]): Refusal | undefined {
  const admins = all.filter(isActiveAdmin);
  const wasAdmin = admins.some(({ id }) => id === after.id);
  if (!wasAdmin || isActiveAdmin(after) || admins.length > 1) return undefined;
  return { kind: 'precondition', message: 'the last active admin of a node stays' };
}

function givesHold(change: AdministrativeChange): boolean {
  switch (change) {
    case 'create':
    case 'replace':
    case 'rotate':
    case 'enable':
    case 'set_password':
    case 'set_role':
    case 'unlock':
      return true;
    case 'disable':
    case 'revoke_sessions':
      return false;
    default:
      return change satisfies never;
  }
}
