import type { ClientRecord } from '../../access/identity/callers.ts';
import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import type { IssuedScope } from '../../access/tokens/token-issuer.ts';
import { Refusal } from '../../platform/errors.ts';

interface ScopeRequest {
  /** The `scope` of the token request (RFC 6749 section 3.3), which may have unknown names. */
  requested: string | undefined;
  client: Pick<ClientRecord, 'scopes'>;
  /** The scopes of the client, or the permissions of the supervisor. */
  granted: readonly string[];
  /** For a refresh: the scope of the refresh token when it was narrowed. */
  bound?: readonly string[] | undefined;
}

/**
 * Returns the scope to issue: what is granted within the bound, narrowed to the known names that are requested
 * (docs/contract.md, D3-33). A request without a known name narrows nothing.
 * @throws Refusal `invalid_scope` when known names are requested and none of them can be issued.
 */
export function scopeToIssue({ requested = '', client, granted, bound }: ScopeRequest): IssuedScope {
  const known = new Set<string>([...PERMISSIONS, ...client.scopes]);
  const names = requested.split(' ').filter((name) => known.has(name));
  const allowed = bound ? granted.filter((name) => bound.includes(name)) : granted;
  if (names.length === 0) return { names: allowed, isNarrowed: bound !== undefined };
  const issued = allowed.filter((name) => names.includes(name));
  if (issued.length === 0) throw new Refusal('invalid_scope');
  return { names: issued, isNarrowed: true };
}
