/** One row of a node's event log: a change that was applied, with the transaction as of that change. */
export interface LoggedEvent {
  nodeId: string;
  /** One sequence for each node, equal to commit order, from 1. */
  seq: bigint;
  transactionId: string;
  /** A status of specification section 2.7. */
  status: number;
  /** Null for the first one. */
  previousStatus: number | null;
  correlationId: string;
  /** Where the trace of the change goes on; none where there is none. */
  traceparent?: string | null | undefined;
  /** ISO 8601. */
  occurredAt: string;
  transaction: Record<string, unknown>;
}
