import type { MigrateUserInput } from './migration.input.ts';

/** A user to be, in the values of the table. */
export interface NewUser {
  id: string;
  externalId: string | null;
  name: string;
  surname: string;
  email: string;
  /** Trimmed and lower-cased. */
  address: string;
  /** When the KYC token counts as sent, ISO 8601: the user is then verified (specification section 3). */
  kycTokenSentAt: string | null;
  /** ISO 8601 to the microsecond. */
  createdAt: string;
}

/** An identifier as it counts: an empty one is absent. */
export function identifierOf(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

/** A wallet's address as it is stored and compared. */
export function addressOf(walletAddress: string): string {
  return walletAddress.trim().toLowerCase();
}

/** The user that a row asks for. Rows of one request are a microsecond apart, so that lists keep their order. */
export function newUserOf(row: MigrateUserInput, id: string, createdAt: { ms: number; micros: number }): NewUser {
  const at = new Date(createdAt.ms).toISOString();
  return {
    id,
    externalId: identifierOf(row.external_id) ?? null,
    name: row.name ?? '',
    surname: row.surname ?? '',
    email: row.email ?? '',
    address: addressOf(row.wallet_address),
    kycTokenSentAt: row.kyc_sent ? at : null,
    createdAt: `${at.slice(0, -1)}${String(createdAt.micros).padStart(3, '0')}Z`,
  };
}
