import { isUuid } from '../../lib/input.ts';
import type { Db } from '../../platform/database/database.ts';
import { Refusal } from '../../platform/errors.ts';
import type { ClientRow } from '../clients/clients.service.ts';
import { type Author, setAuthor } from '../identity/authors.ts';
import type { Principal } from '../identity/callers.ts';
import { type Permission, permissionsOfRole } from '../identity/permissions.rules.ts';
import { areAllNetworksWithin, plainFingerprint } from '../limits/client-guards.ts';
import type { SupervisorRow } from '../supervisors/supervisors.service.ts';

const LIMITS = [
  { name: 'requests_per_second', text: 'a limit on requests per second' },
  { name: 'requests_per_minute', text: 'a limit on requests per minute' },
  { name: 'requests_per_hour', text: 'a limit on requests per hour' },
  { name: 'monthly_limit', text: 'a monthly limit' },
] as const;

/** The restrictions of a client in addition to its scopes; an empty list and null mean unrestricted. */
export type ClientBounds = Pick<
  ClientRow,
  'allowed_ips' | 'require_certificate' | 'cert_fingerprint' | (typeof LIMITS)[number]['name']
>;

/** The restrictions of a supervisor's login, once it is issued: none. */
export const UNBOUND: ClientBounds = {
  allowed_ips: [],
  require_certificate: false,
  cert_fingerprint: null,
  requests_per_second: null,
  requests_per_minute: null,
  requests_per_hour: null,
  monthly_limit: null,
};

/**
 * Returns what must change in a client so that it is at least as restricted as the client that administers it
 * (`maker`); empty when nothing must (docs/contract.md, D3-30).
 */
export function freerThanMaker(maker: ClientBounds, target: ClientBounds): string[] {
  const wanting: string[] = [];
  const { allowed_ips: outer, require_certificate: isRequired, cert_fingerprint: fingerprint } = maker;
  const hasAddresses = target.allowed_ips.length > 0 && areAllNetworksWithin(outer, target.allowed_ips);
  if (outer.length > 0 && !hasAddresses) wanting.push('allow only addresses that your client may use');
  // A different certificate has a different holder.
  const isSame = plainFingerprint(target.cert_fingerprint) === plainFingerprint(fingerprint);
  if (isRequired && !(target.require_certificate && isSame)) wanting.push('require the certificate of your client');
  for (const { name, text } of LIMITS) {
    const most = maker[name] ?? Number.POSITIVE_INFINITY;
    if ((target[name] ?? Number.POSITIVE_INFINITY) > most)
      wanting.push(`set ${text} that does not exceed your client's`);
  }
  return wanting;
}

const NEEDED: Permission = 'clients:manage';
const ADMIN = 'admin';

/** The caller of an administrative operation, with its permissions. */
export interface Administrator {
  holds(scope: string): boolean;
  /** The client id when a client's own token is used; undefined for a supervisor's login and for the operator. */
  ownClientId: string | undefined;
  /** Undefined for the operator. */
  author?: Author;
}

/** The operator on the command line, who may do everything; also a supervisor who changes their own account. */
export const OPERATOR: Administrator = { holds: () => true, ownClientId: undefined };

/** Returns a principal as an administrator. */
export function administratorOf(caller: Principal & Author): Administrator {
  const { tokenUse, permissions, clientId, subject } = caller;
  return {
    author: caller,
    holds: (scope) => permissions.has(scope),
    ownClientId: tokenUse === 'login' ? undefined : (clientId ?? subject).toLowerCase(),
  };
}

/** The administrative operations on clients and supervisors. */
export type AdministrativeChange =
  | 'create'
  | 'replace'
  | 'rotate'
  | 'enable'
  | 'disable'
  | 'set_password'
  | 'set_role'
  | 'rename'
  | 'unlock'
  | 'revoke_sessions';

/** The operations that give no control of a client or supervisor. */
const GIVES_NO_HOLD: ReadonlySet<AdministrativeChange> = new Set(['disable', 'revoke_sessions']);

/** The client or supervisor that an operation concerns. */
interface AdministeredTarget {
  /** The id of a client that exists; undefined for a new client and for a supervisor. */
  clientId?: string;
  /** All scopes that the client or supervisor has or will have. */
  scopes: readonly string[];
  /** The future restrictions of a client; undefined for a supervisor, whose logins have none. */
  bounds?: ClientBounds;
}

/**
 * Returns why an administrator may not make a change (docs/contract.md, D3-30); undefined when it may. No
 * administrator may grant, or take control of, rights that it lacks: neither scopes nor, with a client's own token,
 * fewer restrictions. `maker` has the restrictions of the client whose token is used.
 */
export function administrationRefusal(
  administrator: Administrator,
  change: AdministrativeChange,
  { clientId, scopes, bounds }: AdministeredTarget,
  maker?: ClientBounds,
): Refusal | undefined {
  const givesHold = !GIVES_NO_HOLD.has(change);
  const needed = givesHold ? [NEEDED, ...scopes] : [NEEDED];
  const missing = needed.find((scope) => !administrator.holds(scope));
  if (missing !== undefined) {
    return new Refusal('forbidden', { permission: missing, message: `the permission ${missing} is missing` });
  }
  if (clientId !== undefined && clientId === administrator.ownClientId) {
    const message = 'an API token cannot change the client that it was issued to';
    return new Refusal('forbidden', { permission: NEEDED, message });
  }
  const wanting = maker && givesHold ? freerThanMaker(maker, bounds ?? UNBOUND) : [];
  if (wanting.length === 0) return undefined;
  const way = bounds ? wanting.join('; ') : 'use a login token';
  const message = `an API token cannot create or change a client or supervisor with fewer restrictions than its own client: ${way}`;
  return new Refusal('forbidden', { permission: NEEDED, message });
}

/** Checks whether a role exists. */
export function isRole(name: string): boolean {
  return permissionsOfRole(name).length > 0;
}

/** The role and status of a supervisor. */
export type Standing = Pick<SupervisorRow, 'id' | 'role' | 'status'>;

/** Checks whether a supervisor can administer its tenant. */
function isActiveAdmin({ role, status }: Standing): boolean {
  return role === ADMIN && status === 'active';
}

/**
 * Returns why a supervisor may not become `after`: the last active admin of a tenant must stay an active admin.
 * Undefined when it may. `all` must contain at least all admins of the tenant.
 */
export function lastAdminRefusal(after: Standing, supervisors: readonly Standing[]): Refusal | undefined {
  const admins = supervisors.filter(isActiveAdmin);
  const wasAdmin = admins.some(({ id }) => id === after.id);
  if (!wasAdmin || isActiveAdmin(after) || admins.length > 1) return undefined;
  return new Refusal('precondition_failed', {
    message: 'the last active admin of a tenant cannot be disabled or get another role',
  });
}

/**
 * Reads the restrictions of the administering client and applies the rules of administration. The changes of the
 * transaction that follow have the administrator as their author.
 * @throws Refusal when they forbid the change.
 */
export async function refuseAdministration(
  db: Db,
  nodeId: string,
  administrator: Administrator,
  change: AdministrativeChange,
  target: AdministeredTarget,
): Promise<void> {
  const refusal = administrationRefusal(
    administrator,
    change,
    target,
    await boundsOf(db, nodeId, administrator.ownClientId),
  );
  if (refusal) throw refusal;
  if (administrator.author) await setAuthor(db, administrator.author);
}

async function boundsOf(db: Db, nodeId: string, clientId: string | undefined): Promise<ClientBounds | undefined> {
  if (clientId === undefined || !isUuid(clientId)) return undefined;
  const [client] = await db.forNode(nodeId).run((k) => k.selectFrom('clients').selectAll().where('id', '=', clientId));
  return client;
}
