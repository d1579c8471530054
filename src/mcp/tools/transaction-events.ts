import { z } from 'zod';
import { notFoundRefusal } from '../../errors/refusal.ts';
import { objectInput } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/pg-time.ts';
import type { TransactionEventRow } from '../../transactions/transaction-event-pages.service.ts';
import { statusOfCode } from '../../transactions/transaction-status.ts';
import { viewOfLogged } from '../../transactions/transaction-view.ts';
import { statusName } from '../../transactions/type-codes.rules.ts';
import { instant } from '../members.ts';
import { listPage, pageArguments, pageOutput } from '../pages.ts';
import { defineTool } from '../tool.ts';
import { status, transactionId } from './transactions.ts';

const transactionEvent = z.strictObject({
  sequence: z.string().meta({ description: "Its place in the node's event log." }),
  status,
  previous_status: status.nullable(),
  transaction_hash: z.string(),
  contract_address: z.string(),
  error: z.string().nullable(),
  correlation_id: z.string().nullable().meta({ description: 'Of the request that brought the change.' }),
  occurred_at: instant(),
});

const listTransactionEvents = defineTool({
  name: 'list_transaction_events',
  title: 'List the events of a transaction',
  description: 'Each change that was applied to a transaction, in order, with the transaction as of it. Old ones go.',
  scope: 'transactions:read',
  input: objectInput({ transaction_id: transactionId, ...pageArguments }),
  output: pageOutput(transactionEvent),
  missing: 'this node has no transaction with that transaction_id: take it from list_transactions',
  async run({ transaction_id: id, ...page }, call) {
    const { transactionPages, transactionEventPages: events } = call.services;
    const { nodeId } = call.caller;
    if ((await transactionPages.byIds(nodeId, [id])).length === 0) throw notFoundRefusal();
    return listPage(page, call, {
      list: 'list_transaction_events',
      read: async (request) => (await events.ofTransactions(nodeId, [id], request)).get(id),
      keyOf: ({ seq }) => ({ at: seq, id: '' }),
      viewOf: eventView,
      count: async () => (await events.countOfTransactions(nodeId, [id])).get(id) ?? 0,
    });
  },
});

function eventView(row: TransactionEventRow): z.input<typeof transactionEvent> {
  const { transaction_hash, contract_address, error } = viewOfLogged(row.transaction);
  return {
    sequence: row.seq,
    status: statusName(statusOfCode(row.status)),
    previous_status: row.previous_status === null ? null : statusName(statusOfCode(row.previous_status)),
    transaction_hash,
    contract_address,
    error,
    correlation_id: row.correlation_id || null,
    occurred_at: isoFromPg(row.occurred_at),
  };
}

export const transactionEventTools = [listTransactionEvents];
