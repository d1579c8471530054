import { z } from 'zod';
import {
  type DocumentedSchemas,
  demanding,
  documentedInputs,
  envelope,
  FILLED,
  ISSUES,
  inputSchema,
  refTo,
  requiringMember,
} from '../../api/openapi/operation.ts';
import { instant, uuid } from '../../lib/fields.ts';
import type { userView } from '../users/users.service.ts';
import { bulkRows, migrateUserInput, migrateUsersInput } from './migration.input.ts';
import type { SkipReason } from './migration-outcome.rules.ts';

const MIGRATION_REASONS: readonly SkipReason[] = [
  'missing_email_and_external_id',
  'duplicate_email',
  'duplicate_external_id',
  'duplicate_wallet',
];

documentedInputs.set(bulkRows, { items: refTo('MigrateUserRow') });

/** What migrations of users adds to the OpenAPI document. */
export const migrationSchemas: DocumentedSchemas = {
  inputs: {
    MigrateUser: demanding(inputSchema(migrateUserInput), {
      anyOf: [requiringMember('email', FILLED), requiringMember('external_id', FILLED)],
    }),
    MigrateUserRow: inputSchema(bulkRows.out.element),
    MigrateUsers: inputSchema(migrateUsersInput),
  },
  outputs: {
    MigratedUser: z.strictObject({
      id: uuid(),
      external_id: z.string().nullable(),
      name: z.string(),
      surname: z.string(),
      email: z.string(),
      address: z.string(),
      // Not a constant: generators take one that is empty for none.
      identity_number: z.string().max(0),
      kyc: z
        .strictObject({
          is_verified: z.boolean(),
          token_sent: z.boolean(),
          token_sent_at: instant(),
          token_tx_hash: z.string().nullable(),
        })
        .nullable(),
    }) satisfies z.ZodType<Omit<ReturnType<typeof userView>, 'kyc'>>,
    BulkResult: z.strictObject({
      total: z.int().min(1).meta({ description: 'success + skipped + failed.' }),
      success: z.int().min(0),
      skipped: z.int().min(0),
      failed: z.int().min(0),
      results: z
        .array(
          z.strictObject({
            email: z.string().optional(),
            external_id: z.string().optional(),
            user_id: uuid().optional(),
            status: z.enum(['created', 'skipped', 'failed']),
            reason: z.string().optional(),
          }),
        )
        .meta({ description: 'In the order of the request.' }),
    }),
  },
  errors: {
    MigrationRefusal: { oneOf: [envelope(['invalid_request'], { errors: ISSUES }), envelope(MIGRATION_REASONS)] },
  },
  descriptions: {
    MigrateUser: {
      wallet_address: 'Trimmed and stored in lower case.',
      email:
        'Required if external_id is absent or blank. Trimmed and normalised to NFC; unique within the tenant, where letter case and invisible characters do not count.',
      external_id: 'Required if email is absent or blank. Unique within the tenant, compared exactly.',
      name: 'Normalised to NFC.',
      surname: 'Normalised to NFC.',
      kyc_sent: 'If true, the user is marked as verified and no KYC token event is published.',
    },
  },
};
