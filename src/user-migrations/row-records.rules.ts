import type { FileRow } from './csv-rows.rules.ts';
import type { RowRecord } from './migration-store.ts';
import type { AppliedRow } from './row-application.ts';

/** What is kept of a row: as sent, but for what no table can hold. `index` counts from 1. */
export function recordOf({ input, outcome, user }: AppliedRow, index: number): RowRecord {
  return {
    index,
    email: storable(input.email),
    externalId: storable(input.external_id),
    userId: user?.id ?? null,
    status: outcome.status,
    reason: outcome.status === 'created' ? null : outcome.reason,
  };
}

/** The same of a row of a file that is no user to migrate. */
export function faultRecordOf({ index, fault, email, externalId }: Extract<FileRow, { fault: string }>): RowRecord {
  const identifiers = { email: storable(email), externalId: storable(externalId) };
  return { index, ...identifiers, userId: null, status: 'failed', reason: fault };
}

function storable(text: string | undefined): string | null {
  return text ? text.replaceAll('\0', '\ufffd').toWellFormed() : null;
}
