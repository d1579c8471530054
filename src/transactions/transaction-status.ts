import type { TransactionStatus } from './type-codes.rules.ts';

/** The status of a code that this service has stored itself. */
export function statusOfCode(code: number): TransactionStatus {
  switch (code) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return code;
    default:
      throw new Error(`${code} is no transaction status`);
  }
}
