import { isoFromPg } from '../../lib/instants.ts';

/** What an erasure has done: when, and the numbers of audit records and kept responses that it has erased. */
export interface ErasureReceipt {
  erasedAt: string;
  records: number;
  responses: number;
}

/** Returns a receipt as the tools and the command line show it. */
export function receiptView({ erasedAt, records, responses }: ErasureReceipt) {
  return { erased_at: isoFromPg(erasedAt), records, responses };
}
