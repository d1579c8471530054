import type { HealthReport } from './health.ts';

/** What readiness is judged by. */
export interface ReadinessFacts {
  role: 'all' | 'gateway' | 'worker';
  checks: HealthReport['checks'];
  /** Each store has answered this process once. */
  hasSeenStores: boolean;
  /** The process stops: it finishes what it has, and takes nothing new. */
  isDraining: boolean;
  /** No audit record can be kept: requests are refused. */
  isAuditFull: boolean;
  /** Only what is this process's own counts: stores that are away are away for all replicas. */
  excludesStores: boolean;
}

/** The answer of `/readyz`. */
export interface Readiness {
  status: 'ok' | 'degraded' | 'starting' | 'down' | 'draining';
  checks: HealthReport['checks'] & { audit: 'ok' | 'full' };
}

/** What a role can do nothing without. What else is away costs a part of its work, which its callers are told. */
const NEEDS = {
  all: ['database'],
  gateway: ['database'],
  worker: ['database', 'bus'],
} as const satisfies Record<ReadinessFacts['role'], readonly (keyof HealthReport['checks'])[]>;

/**
 * Whether a process can do the work of its role: `down` where it can do none of it, `degraded` where it can do a part.
 * A store that is away is away for all replicas: taken out of a load balancer for it, they could not serve the rest. One
 * that a process has never reached may be its own fault, a wrong address: it is `starting` for whoever asks after stores.
 */
export function readinessOf(facts: ReadinessFacts): Readiness {
  const { role, checks, hasSeenStores, isDraining, isAuditFull, excludesStores } = facts;
  const audit = isAuditFull ? 'full' : 'ok';
  const isWhole = Object.values(checks).every((state) => state === 'ok');
  const isStuck = !excludesStores && NEEDS[role].some((part) => checks[part] === 'down');
  const isDown = isStuck || (isAuditFull && role !== 'worker');
  const partly = hasSeenStores || excludesStores ? 'degraded' : 'starting';
  const status = isDraining ? 'draining' : isDown ? 'down' : isWhole ? 'ok' : partly;
  return { status, checks: { ...checks, audit } };
}

/** Whether it is to get work. */
export function isReady({ status }: Readiness): boolean {
  return status === 'ok' || status === 'degraded';
}
