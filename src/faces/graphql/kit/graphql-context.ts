import type { Access } from '../../../access/access.ts';
import { type Administrator, administratorOf } from '../../../access/administration/administration.ts';
import type { Principal } from '../../../access/identity/principal.ts';
import type { AuditPages } from '../../../audit/audit-pages.service.ts';
import type { Domain } from '../../../domain/domain.ts';
import type { EventStreams } from '../../../events/streams/event-streams.ts';
import type { PageCursors } from '../../../lib/keyset.ts';

/** The services that fields call. */
export interface GraphqlServices
  extends Domain,
    Pick<Access, 'clientPages' | 'clientAdministration' | 'supervisorPages' | 'supervisorAdministration' | 'locks'> {
  /** Whose tokens end before their time. */
  watch: Pick<Access['watch'], 'watch'>;
  auditPages: AuditPages;
  streams: EventStreams;
  /** Signs the cursors of pages. */
  cursors: PageCursors;
}

/** The caller of an operation: what only its own result may depend on. */
export interface Caller {
  principal: Principal;
  correlationId: string;
  /** Where the trace of the request goes on, if it has one. */
  traceparent: string | undefined;
  /** The cursor that an SSE client gives when it comes back; it outranks the operation's own. */
  lastEventId: string | undefined;
}

/** The part of a principal that the result of an event may depend on; the context of an event has no other. */
export type SharedPrincipal = Pick<Principal, 'nodeId' | 'tokenClass' | 'tokenUse' | 'permissions'>;

/** The context that the fields of one operation resolve in. Each event of a subscription has a fresh one, because its result goes to every subscriber with the same `principal`. */
export interface GraphqlContext {
  principal: SharedPrincipal;
  /** Undefined where an event is answered. */
  caller: Caller | undefined;
  services: GraphqlServices;
}

/** Returns the caller of the operation. @throws Error in the context of an event, whose result goes to many. */
export function callerOf({ caller }: Pick<GraphqlContext, 'caller'>): Caller {
  if (!caller) throw new Error('the answer to an event goes to many: it has nothing of whoever asked');
  return caller;
}

/** Returns the tenant that an operation administers, and the administrator. @throws Error in the context of an event. */
export function tenantAndAdministrator(context: GraphqlContext): [nodeId: string, by: Administrator] {
  const { principal } = callerOf(context);
  return [principal.nodeId, administratorOf(principal)];
}

/** Returns what ends a stream of events together with the token of its caller. @throws Error in the context of an event. */
export function tokenOf(context: GraphqlContext) {
  const { principal } = callerOf(context);
  const watchToken = (onEnd: (error?: unknown) => void) => context.services.watch.watch(principal, onEnd);
  return { expiresAtMs: principal.expiresAtMs, watchToken };
}
