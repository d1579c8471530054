import type { Builder } from '../graphql/builder.ts';
import { nestedPages } from '../graphql/nested-pages.ts';
import type { Refs } from '../graphql/refs.ts';
import { isoFromPg } from '../lib/pg-time.ts';
import type { TransactionEnums } from './transaction-enums.graphql.ts';
import { statusOfCode } from './transaction-status.ts';
import { viewOfLogged } from './transaction-view.ts';

const CONNECTION = 'transaction-events';

/** Adds the type of events and the events of a transaction. */
export function addTransactionEvents(builder: Builder, refs: Refs, enums: TransactionEnums): void {
  implementEvent(refs, enums);
  const connection = builder.connectionObject(
    { type: refs.transactionEvent, name: 'TransactionEventConnection', description: 'A page of events.' },
    { name: 'TransactionEventEdge', description: 'An event and its place in the list.' },
  );
  const ofTransactions = nestedPages({
    connection: CONNECTION,
    read: ({ services, principal }, ids, request) =>
      services.transactionEventPages.ofTransactions(principal.nodeId, ids, request),
    count: ({ services, principal }, ids) => services.transactionEventPages.countOfTransactions(principal.nodeId, ids),
    keyOf: (row) => ({ at: row.seq, id: '' }),
  });
  builder.objectField(refs.transaction, 'events', (t) =>
    t.field({
      type: connection,
      description: 'Each applied change, in the order of the log. Needs transactions:read.',
      authScopes: { permission: 'transactions:read' },
      args: t.arg.connectionArgs(),
      resolve: ({ id }, args, context, info) => ofTransactions.resolve(id, args, context, info),
    }),
  );
}

function implementEvent({ transactionEvent }: Refs, { status }: TransactionEnums): void {
  transactionEvent.implement({
    description: 'A change that was applied to a transaction, with the transaction as of it.',
    fields: (t) => ({
      cursor: t.exposeString('seq', {
        description: 'Its place in the event log: good for `after` of transactionUpdates.',
      }),
      status: t.field({
        type: status,
        description: 'The status after it.',
        resolve: (row) => statusOfCode(row.status),
      }),
      previousStatus: t.field({
        type: status,
        nullable: true,
        description: 'The status before it; null for the first.',
        resolve: (row) => (row.previous_status === null ? null : statusOfCode(row.previous_status)),
      }),
      transactionHash: t.string({
        description: 'The hash on the chain; empty until broadcast.',
        resolve: (row) => viewOfLogged(row.transaction).transaction_hash,
      }),
      contractAddress: t.string({
        description: 'The contract it deals with; empty for none.',
        resolve: (row) => viewOfLogged(row.transaction).contract_address,
      }),
      error: t.string({
        nullable: true,
        description: 'What went wrong, in the words of the worker.',
        resolve: (row) => viewOfLogged(row.transaction).error,
      }),
      correlationId: t.string({
        nullable: true,
        description: 'The correlation id of the request that brought the change.',
        resolve: (row) => row.correlation_id || null,
      }),
      occurredAt: t.field({
        type: 'DateTime',
        description: 'When it was applied.',
        resolve: (row) => isoFromPg(row.occurred_at),
      }),
    }),
  });
}
