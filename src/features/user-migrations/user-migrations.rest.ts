import type { RequestHandler } from 'express';
import type { z } from 'zod';
import { json, limitedHeadersOf, parameterOf, refTo, responseOf } from '../../api/openapi/operation.ts';
import { respondIdempotently, route } from '../../api/rest/route.ts';
import { callerOf, readBody } from '../../gateway/exchange/exchange.ts';
import type { IdempotentResponses, StoredResponse } from '../../idempotency/idempotent-responses.ts';
import { parseOrReject } from '../../platform/errors.ts';
import { userView } from '../users/users.service.ts';
import { migrateUserInput, migrateUsersInput } from './migration.input.ts';
import { bulkResultView, type MigrationCaller, type UserMigrations } from './user-migrations.service.ts';

const USER = {
  wallet_address: '0xAbC1230000000000000000000000000000000456',
  email: 'ada@example.com',
  external_id: 'crm-4711',
  name: 'Ada',
  surname: 'Lovelace',
  kyc_sent: true,
};

const MIGRATED = {
  id: '0193501f-2c1f-7c0a-9c4e-5b1f3a0d7e11',
  external_id: 'crm-4711',
  name: 'Ada',
  surname: 'Lovelace',
  email: 'ada@example.com',
  address: '0xabc1230000000000000000000000000000000456',
  identity_number: '',
  kyc: { is_verified: true, token_sent: true, token_sent_at: '2026-11-21T10:30:00.000Z', token_tx_hash: null },
};

interface MigrationServices {
  userMigrations: UserMigrations;
  idempotentResponses: IdempotentResponses;
}

const tag = 'Users';
const parameters = [parameterOf('Idempotency-Key')];

/** Migrates one user (docs/contract.md, 4.6-01). */
const migrateUser = route({
  method: 'POST',
  path: '/v2/users/migrate/with-wallet',
  operation: {
    operationId: 'migrateUser',
    tag,
    summary: 'Migrate a user who already has a wallet',
    description:
      'If `kyc_sent` is true, the user is marked as verified; otherwise a KYC token event is published. `email` or `external_id` is required; a blank value counts as absent.',
    parameters,
    requestBody: {
      required: true,
      description: 'At most 1 MiB; a longer body returns 400.',
      content: { 'application/json': { schema: refTo('MigrateUser'), example: USER } },
    },
    responses: {
      201: json('The migrated user.', 'MigratedUser', MIGRATED),
      400: json(
        'The user is invalid, with `errors`; or is rejected for a documented reason, without `errors`.',
        'MigrationRefusal',
        { code: -1, domain: 0, message: 'duplicate_email' },
        limitedHeadersOf(),
      ),
      409: responseOf('Conflict'),
    },
  },
  handlers: (services: MigrationServices) =>
    migrateOnce(services, migrateUserInput, async (caller, user) => {
      const migrated = await services.userMigrations.migrateOne(caller, user);
      // A 400 has only the documented reason (docs/contract.md, 7.4).
      return 'user' in migrated
        ? answerOf(201, userView(migrated.user))
        : answerOf(400, { code: -1, domain: 0, message: migrated.skipped });
    }),
});

/** Migrates 1 to 500 users (docs/contract.md, 4.7-01). */
const migrateUsers = route({
  method: 'POST',
  path: '/v2/users/migrate/with-wallet/bulk',
  operation: {
    operationId: 'migrateUsers',
    tag,
    summary: 'Migrate 1 to 500 users',
    description:
      'Each row has its own outcome, in the order of the request: created, skipped for a documented reason, or failed. Rows are also compared with the preceding rows of the request.',
    parameters,
    requestBody: {
      required: true,
      description: 'At most 2 MiB; a longer body returns 400. A row without `wallet_address` makes the body invalid.',
      content: {
        'application/json': {
          schema: refTo('MigrateUsers'),
          example: { users: [USER, { wallet_address: '0xdef0000000000000000000000000000000000789' }] },
        },
      },
    },
    responses: {
      200: json('The outcome of every row.', 'BulkResult', {
        total: 2,
        success: 1,
        skipped: 1,
        failed: 0,
        results: [
          { email: USER.email, external_id: USER.external_id, user_id: MIGRATED.id, status: 'created' },
          { status: 'skipped', reason: 'missing_email_and_external_id' },
        ],
      }),
      409: responseOf('Conflict'),
    },
  },
  handlers: (services: MigrationServices) =>
    migrateOnce(services, migrateUsersInput, async (caller, { users }) =>
      answerOf(200, bulkResultView(await services.userMigrations.migrateMany(caller, users))),
    ),
});

/** The routes for the migration of users who have a wallet. */
export const userMigrationRoutes = [migrateUser, migrateUsers];

/**
 * Returns handlers that parse a body and answer with the response of `migrate`, which runs once per `Idempotency-Key`.
 */
function migrateOnce<Schema extends z.ZodType>(
  { userMigrations, idempotentResponses: answers }: MigrationServices,
  schema: Schema,
  migrate: (caller: MigrationCaller, input: z.output<Schema>) => Promise<StoredResponse>,
): RequestHandler[] {
  return [
    readBody,
    (req, res) => {
      const caller = callerOf(req);
      return respondIdempotently(req, res, {
        answers,
        parse: (body) => parseOrReject(schema, body),
        work: (input) => migrate(caller, input),
        wrapTransaction: (work) => userMigrations.exclusively(caller.nodeId, work),
      });
    },
  ];
}

function answerOf(status: number, body: object): StoredResponse {
  return { status, headers: {}, body: JSON.stringify(body) };
}
