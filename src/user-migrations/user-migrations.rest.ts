import { type Request, type Response, Router } from 'express';
import type { z } from 'zod';
import { exchangeOf, principalOf } from '../gateway/exchange.ts';
import { answerOnce } from '../idempotency/idempotent.rest.ts';
import type { Answer, IdempotentAnswers } from '../idempotency/idempotent-answers.ts';
import { readBody } from '../rest/body.ts';
import { parsed } from '../rest/parsed.ts';
import { migrateUserInput, migrateUsersInput } from './migration.input.ts';
import { bulkResultView, migratedUserView } from './migration-views.rules.ts';
import type { AppliedMigration, MigrationCaller, UserMigrations } from './user-migrations.service.ts';

interface MigrationParts {
  userMigrations: UserMigrations;
  idempotentAnswers: IdempotentAnswers;
}

/** POST /v2/users/migrate/with-wallet and its bulk form (specification sections 4.6 and 4.7). */
export function userMigrationsRouter({ userMigrations, idempotentAnswers: answers }: MigrationParts): Router {
  const router = Router({ caseSensitive: true, strict: true });

  function migrateOnce<Schema extends z.ZodType>(
    schema: Schema,
    migrate: (caller: MigrationCaller, input: z.output<Schema>) => Promise<Answer>,
  ) {
    return (req: Request, res: Response) =>
      answerOnce(req, res, {
        answers,
        parse: (body) => parsed(schema, body),
        work: (input) => migrate(callerOf(req), input),
        around: (work) => userMigrations.inTurn(principalOf(req).nodeId, work),
      });
  }

  router.post(
    '/v2/users/migrate/with-wallet',
    readBody,
    migrateOnce(migrateUserInput, async (caller, user) => singleAnswer(await userMigrations.migrateOne(caller, user))),
  );
  router.post(
    '/v2/users/migrate/with-wallet/bulk',
    readBody,
    migrateOnce(migrateUsersInput, async (caller, { users }) => {
      return answerOf(200, bulkResultView(await userMigrations.migrateMany(caller, users)));
    }),
  );
  return router;
}

function callerOf(req: Request): MigrationCaller {
  const { nodeId, subject } = principalOf(req);
  const { correlationId, span } = exchangeOf(req);
  return { nodeId, createdBy: subject, correlationId, traceparent: span?.traceparent };
}

/** A documented reason stands alone in its envelope (specification section 7.4). */
function singleAnswer({ rows: [row] }: AppliedMigration): Answer {
  if (row?.user) return answerOf(201, migratedUserView(row.user));
  if (row?.outcome.status !== 'skipped') throw new Error('one user is created or skipped');
  return answerOf(400, { code: -1, domain: 0, message: row.outcome.reason });
}

function answerOf(status: number, body: object): Answer {
  return { status, headers: {}, body: JSON.stringify(body) };
}
