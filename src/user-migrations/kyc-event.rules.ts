import { TOPICS } from '../events/topics.ts';
import type { NewOutboxEvent } from '../outbox/outbox-store.ts';
import type { NewUser } from './new-user.rules.ts';

/** The event that asks for a user's KYC token. */
export const KYC_EVENT = 'user.kyc_token.requested';

interface KycEventParts {
  /** A UUID v7: the event's id, and the outbox row's. */
  id: string;
  nodeId: string;
  correlationId: string;
  traceparent?: string | undefined;
  occurredAtMs: number;
}

/** The event of a user who was created without a KYC token (specification section 6). It tells no name and no email. */
export function kycEventOf(user: NewUser, parts: KycEventParts): NewOutboxEvent {
  const { id, nodeId, correlationId, traceparent, occurredAtMs } = parts;
  const payload = {
    id,
    event: KYC_EVENT,
    user_id: user.id,
    node_id: nodeId,
    wallet_address: user.address,
    external_id: user.externalId,
    occurred_at: new Date(occurredAtMs).toISOString(),
  };
  return {
    id,
    topic: TOPICS.kycToken,
    key: user.id,
    eventType: KYC_EVENT,
    payload: JSON.stringify(payload),
    correlationId,
    traceparent,
    createdAtMs: occurredAtMs,
  };
}
