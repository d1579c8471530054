/** The maximum size of one tenant's incomplete bodies in this process, in bytes. Bodies without a tenant count together. */
const MAX_INCOMPLETE_BYTES = 64 * 1024 * 1024;

/** A request body that has not arrived completely. */
interface IncompleteBody {
  readonly length: number;
  /** Ends the request, to make room for others. */
  giveUp(): void;
}

/** The incomplete bodies of a tenant, the oldest first. */
interface Incomplete {
  bodies: Set<IncompleteBody>;
  bytes: number;
}

const byTenant = new Map<string, Incomplete>();

/**
 * Counts bytes that were added to a body. Beyond the limit, ends the tenant's oldest incomplete bodies, because newer ones
 * are more likely to arrive soon.
 */
export function countBody(body: IncompleteBody, bytes: number, tenant = ''): void {
  const incomplete = byTenant.get(tenant) ?? { bodies: new Set(), bytes: 0 };
  byTenant.set(tenant, incomplete);
  incomplete.bodies.add(body);
  incomplete.bytes += bytes;
  for (const oldest of incomplete.bodies) {
    if (incomplete.bytes <= MAX_INCOMPLETE_BYTES) return;
    leaveBody(oldest, tenant);
    oldest.giveUp();
  }
}

/** Stops counting a body, because it is complete or was refused. */
export function leaveBody(body: IncompleteBody, tenant = ''): void {
  const incomplete = byTenant.get(tenant);
  if (!incomplete?.bodies.delete(body)) return;
  incomplete.bytes -= body.length;
  if (incomplete.bodies.size === 0) byTenant.delete(tenant);
}
