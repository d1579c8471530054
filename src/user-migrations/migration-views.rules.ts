import type { NewUser } from './new-user.rules.ts';
import type { AppliedRow } from './row-application.ts';
import type { AppliedMigration } from './user-migrations.service.ts';

/** A migrated user as REST shows it, in the documented order (specification section 2.8). */
export function migratedUserView(user: NewUser) {
  const { id, externalId, name, surname, email, address, kycTokenSentAt } = user;
  return {
    id,
    external_id: externalId,
    name,
    surname,
    email,
    address,
    identity_number: '',
    kyc:
      kycTokenSentAt === null
        ? null
        : { is_verified: true, token_sent: true, token_sent_at: kycTokenSentAt, token_tx_hash: null },
  };
}

/** The result of a bulk migration as REST shows it (specification section 2.9). */
export function bulkResultView({ total, success, skipped, failed, rows }: AppliedMigration) {
  return { total, success, skipped, failed, results: rows.map(rowView) };
}

function rowView({ input, outcome, user }: AppliedRow) {
  return {
    ...(input.email ? { email: input.email } : {}),
    ...(input.external_id ? { external_id: input.external_id } : {}),
    ...(user ? { user_id: user.id } : {}),
    status: outcome.status,
    ...(outcome.status === 'created' ? {} : { reason: outcome.reason }),
  };
}
