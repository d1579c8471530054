/** The most bytes that the incomplete bodies of one tenant take in this process. Those of no tenant count together. */
const MAX_INCOMPLETE_BYTES = 64 * 1024 * 1024;

/** A body of which the end has not come. */
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
 * Counts bytes that were added to a body. If those of the tenant's bodies are too many, the oldest ones are given up:
 * others come to their end soon.
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

/** Counts a body no longer, because it is complete or nothing more of it is taken. */
export function leaveBody(body: IncompleteBody, tenant = ''): void {
  const incomplete = byTenant.get(tenant);
  if (!incomplete?.bodies.delete(body)) return;
  incomplete.bytes -= body.length;
  if (incomplete.bodies.size === 0) byTenant.delete(tenant);
}
