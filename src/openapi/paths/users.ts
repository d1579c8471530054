import { MIGRATED, USER } from '../examples.ts';
import { limitedHeadersOf } from '../headers.ts';
import { refTo } from '../json-schema.ts';
import type { Operations } from '../operation.ts';
import { parameterOf } from '../parameters.ts';
import { json, responseOf } from '../responses.ts';

const tag = 'Users';
const parameters = [parameterOf('Idempotency-Key')];

export const userOperations: Operations = {
  'POST /v2/users/migrate/with-wallet': {
    operationId: 'migrateUser',
    tag,
    summary: 'Migrate a user that has a wallet',
    description:
      'Without `kyc_sent` a KYC token event is published for the user; with it the user is marked as verified. An empty email or external_id counts as absent; one of them is needed.',
    parameters,
    requestBody: {
      required: true,
      description: 'At most 1 MiB; a longer one is a 400.',
      content: { 'application/json': { schema: refTo('MigrateUser'), example: USER } },
    },
    responses: {
      201: json('The migrated user.', 'MigratedUser', MIGRATED, limitedHeadersOf()),
      400: {
        ...json(
          'Not valid, with `errors`; or one of the documented reasons alone.',
          'MigrationRefusal',
          { code: -1, domain: 0, message: 'duplicate_email' },
          limitedHeadersOf(),
        ),
      },
      409: responseOf('Conflict'),
    },
  },
  'POST /v2/users/migrate/with-wallet/bulk': {
    operationId: 'migrateUsers',
    tag,
    summary: 'Migrate 1 to 500 users',
    description:
      'Each row has an outcome of its own, in the order of the request: created, skipped for a documented reason, or failed. Rows see the created rows before them.',
    parameters,
    requestBody: {
      required: true,
      description: 'At most 2 MiB; a longer one is a 400. A row without `wallet_address` makes the body invalid.',
      content: {
        'application/json': {
          schema: refTo('MigrateUsers'),
          example: { users: [USER, { wallet_address: '0xdef0000000000000000000000000000000000789' }] },
        },
      },
    },
    responses: {
      200: json(
        'The outcome of every row.',
        'BulkResult',
        {
          total: 2,
          success: 1,
          skipped: 1,
          failed: 0,
          results: [
            { email: USER.email, external_id: USER.external_id, user_id: MIGRATED.id, status: 'created' },
            { status: 'skipped', reason: 'missing_email_and_external_id' },
          ],
        },
        limitedHeadersOf(),
      ),
      409: responseOf('Conflict'),
    },
  },
};
