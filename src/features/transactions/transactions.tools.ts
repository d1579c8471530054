import { z } from 'zod';
import { defineTool, listPage, pageArguments, pageOutput } from '../../api/mcp/kit/tool.ts';
import type { LoggedEvent } from '../../events/streams/event-log.ts';
import { instant } from '../../lib/fields.ts';
import { objectInput, readAs } from '../../lib/input.ts';
import { isoFromPg, parseInstant } from '../../lib/instants.ts';
import { ofOneOwner } from '../../platform/database/keyset-list.ts';
import { orNotFound } from '../../platform/errors.ts';
import { STATUS, TRANSACTION_COLLECTIONS, type TransactionSnapshot } from '../../tables/transaction-content.ts';
import { transactionIdInput } from './notification.input.ts';
import { statusName, typeFlagged, typeName } from './type-codes.rules.ts';

const status = z.enum(Object.keys(STATUS) as (keyof typeof STATUS)[]).meta({
  description: 'Done and Error are final; PendingReceipt was broadcast and waits for its receipt.',
});

const transaction = z.strictObject({
  id: z.string(),
  collection: z.string(),
  type: z.int().meta({ description: 'A code whose meaning depends on the collection.' }),
  type_name: z.string().nullable().meta({ description: 'The name of the type, if it has one.' }),
  type_flagged: z
    .boolean()
    .meta({ description: 'Whether the collection has no such type: someone should look at it.' }),
  status: status.nullable().meta({ description: 'null if it is registered but has no notification yet.' }),
  transaction_hash: z.string().meta({ description: 'The hash on the chain; empty until broadcast.' }),
  contract_address: z.string().meta({ description: 'Empty if there is none.' }),
  gas_used: z.string().meta({ description: 'In units of gas; "0" while pending.' }),
  error: z.string().nullable().meta({ description: "The chain processor's error message." }),
  conflict: z.boolean().meta({ description: 'Whether both Done and Error were reported: someone should look at it.' }),
  created_at: z.string().nullable(),
  updated_at: z.string().nullable(),
});

const updatedSince = z
  .string('must be a string')
  .transform(readAs(parseInstant, 'must be an ISO 8601 date and time, such as 2026-11-21T10:30:00Z'));

function transactionView(view: TransactionSnapshot): z.input<typeof transaction> {
  const { collection, type, error, conflict, created_at, updated_at } = view;
  return {
    id: view.id,
    collection,
    type,
    type_name: typeName(collection, type),
    type_flagged: typeFlagged(collection, type),
    status: view.status === null ? null : statusName(view.status),
    transaction_hash: view.transaction_hash,
    contract_address: view.contract_address,
    gas_used: view.gas_used,
    ...{ error, conflict, created_at, updated_at },
  };
}

const transactionEvent = z.strictObject({
  sequence: z.string().meta({ description: "Its position in the tenant's event log." }),
  status: z.enum(status.options),
  previous_status: z.enum(status.options).nullable(),
  transaction_hash: z.string(),
  contract_address: z.string(),
  error: z.string().nullable(),
  correlation_id: z
    .string()
    .nullable()
    .meta({ description: 'The correlation id of the request that caused the change.' }),
  occurred_at: instant(),
});

function eventView(row: LoggedEvent): z.input<typeof transactionEvent> {
  const { transaction_hash, contract_address, error } = row.transaction;
  return {
    sequence: row.seq.toString(),
    status: statusName(row.status),
    previous_status: row.previous_status === null ? null : statusName(row.previous_status),
    transaction_hash,
    contract_address,
    error,
    correlation_id: row.correlation_id || null,
    occurred_at: isoFromPg(row.occurred_at),
  };
}

export const transactionTools = [
  defineTool({
    name: 'list_transactions',
    title: 'List transactions',
    description:
      "Lists the tenant's blockchain transactions in the order of their registration. For failed ones, pass status Error; for recent changes, updated_since.",
    scope: 'transactions:read',
    input: objectInput({
      collection: z.enum(TRANSACTION_COLLECTIONS, `must be one of ${TRANSACTION_COLLECTIONS.join(', ')}`).optional(),
      status: z.enum(status.options, `must be one of ${status.options.join(', ')}`).optional(),
      type: z
        .int32('must be a whole number of 32 bits')
        .optional()
        .meta({ description: 'A type code of the collection.' }),
      updated_since: updatedSince
        .optional()
        .meta({ format: 'date-time', description: "Updated at this time or later, by the chain processor's clock." }),
      ...pageArguments,
    }),
    output: pageOutput(transaction),
    run({ collection, status: statusName, type, updated_since, ...page }, call) {
      const filter = {
        collection: collection,
        status: statusName && STATUS[statusName],
        type,
        updatedSince: updated_since,
      };
      return listPage(page, call, {
        tool: 'list_transactions',
        list: ({ transactionPages }) => transactionPages.exact,
        filter,
        viewOf: transactionView,
      });
    },
  }),
  defineTool({
    name: 'get_transaction',
    title: 'Get a transaction',
    description:
      'Returns a blockchain transaction in its current state, and on request the changes applied to it. To wait for it, call again every few seconds.',
    scope: 'transactions:read',
    input: objectInput({
      transaction_id: transactionIdInput.meta({ description: "The chain processor's id, from list_transactions." }),
      events: pageArguments.limit.meta({
        description: 'How many of its events to include, oldest first; none by default. Old events are deleted.',
      }),
      cursor: pageArguments.cursor,
    }),
    output: transaction.extend({ events: pageOutput(transactionEvent).optional() }),
    missing: 'this tenant has no transaction with that transaction_id: get it from list_transactions',
    async run({ transaction_id: id, events: limit, cursor }, call) {
      const view = transactionView(orNotFound(await call.services.transactionPages.find(call.caller.nodeId, id)));
      if (limit === undefined && cursor === undefined) return view;
      const events = await listPage({ limit, cursor }, call, {
        tool: 'get_transaction',
        list: ({ transactionPages }) => ofOneOwner(transactionPages.events),
        filter: id,
        viewOf: eventView,
      });
      return { ...view, events };
    },
  }),
];
