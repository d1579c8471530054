/** What the notifications of a transaction say one after another: each tells something new. */
const STATUSES = [1, 2, 2, 3] as const;
const BEGUN_MS = Date.UTC(2026, 10, 21, 10);

/** How many notifications of one transaction tell something new, each after the one before. */
export const STEPS = STATUSES.length;

const GAS = 21_000;

/** How many notifications a transaction has behind it, by the gas that it is said to have used. */
export function stepsOf(gasUsed: number): number {
  return Math.max(0, gasUsed - GAS);
}

/** In SQL: the id of the transaction of a number. */
export const ID_IN_SQL = "'00000000-0000-4000-8000-' || lpad(n::text, 12, '0')";

/** The id of the transaction of a number. */
export function transactionId(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

/** The body of a transaction's notification, in the size of a real one. */
export function notificationBody(id: string, step: number): string {
  const at = (seconds: number) => new Date(BEGUN_MS + seconds * 1000).toISOString();
  return JSON.stringify({
    id,
    type: 1,
    status: STATUSES[step % STEPS],
    transaction_hash: `0x${id.replaceAll('-', '').padStart(64, 'a')}`,
    contract_address: `0x${id.replaceAll('-', '').padStart(40, 'c')}`,
    gas_used: GAS + step + 1,
    error: null,
    created_at: at(0),
    updated_at: at(step + 1),
  });
}
