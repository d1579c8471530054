import type { Builder } from '../graphql/builder.ts';
import { STATUS } from './type-codes.rules.ts';

/** Adds the enums of transactions; inside, their values are the codes and names of the specification. */
export function addTransactionEnums(builder: Builder) {
  const status = builder.enumType('TransactionStatus', {
    description: 'How far a transaction is.',
    values: {
      STARTED: { value: STATUS.Started, description: 'The worker has queued it.' },
      IN_PROGRESS: { value: STATUS.InProgress, description: 'It is being worked on.' },
      DONE: { value: STATUS.Done, description: 'It is on the chain: final.' },
      ERROR: { value: STATUS.Error, description: 'It failed: final.' },
      PENDING_RECEIPT: { value: STATUS.PendingReceipt, description: 'It was broadcast; the receipt is awaited.' },
    } as const,
  });
  const collection = builder.enumType('TransactionCollection', {
    description: 'What a transaction belongs to; decides what its type code means.',
    values: {
      TOKEN_TRANSACTIONS: { value: 'token_transactions', description: 'Of tokenized assets.' },
      NODE_TRANSACTIONS: { value: 'node_transactions', description: 'Of the node itself.' },
      CURRENCY_TOKEN_TRANSACTIONS: { value: 'currency_token_transactions', description: 'Of currency tokens.' },
      USER_TRANSACTIONS: { value: 'user_transactions', description: 'Of users on the primary market.' },
      SECONDARY_MARKET_TRANSACTIONS: {
        value: 'secondary_market_transactions',
        description: 'Of users on the secondary market.',
      },
      OTC_TRANSACTIONS: { value: 'otc_transactions', description: 'Of users over the counter.' },
    } as const,
  });
  return { status, collection };
}

/** What `addTransactionEnums` gives. */
export type TransactionEnums = ReturnType<typeof addTransactionEnums>;
