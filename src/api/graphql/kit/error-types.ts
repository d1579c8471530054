import type { DuplicateReason } from '../../../platform/errors.ts';
import { type Builder, enumOf, implement } from './builder.ts';
import {
  DuplicateError,
  ForbiddenError,
  type InputIssue,
  NotFoundError,
  PreconditionError,
  ValidationError,
} from './graphql-errors.ts';

/** Adds the error types that the unions of mutations share. */
export function addErrorTypes(builder: Builder): void {
  const error = builder.interfaceRef<Error>('Error').implement({
    description: 'The reason why a mutation was refused. Nothing was changed.',
    fields: (t) => ({
      message: t.exposeString('message', {
        description: 'A message in English for people; programs should use the type.',
      }),
    }),
  });
  const issue = implement(builder.objectRef<InputIssue>('InputIssue'), 'An error in one member of an input.', {
    path: ['[String]', 'The path from the root of the input: member names, and list indexes from 0.'],
    message: ['String', 'A message that says what to send instead.'],
  });
  builder.objectType(ValidationError, {
    name: 'ValidationError',
    description: 'The input is invalid, by the same rules as in REST; `issues` lists every error.',
    interfaces: [error],
    fields: (t) => ({ issues: t.expose('issues', { type: [issue], description: 'Every invalid member.' }) }),
  });
  builder.objectType(NotFoundError, {
    name: 'NotFoundError',
    description: 'An id is unknown or belongs to another tenant; the response does not say which.',
    interfaces: [error],
  });
  builder.objectType(ForbiddenError, {
    name: 'ForbiddenError',
    description: 'The token lacks a permission, or may not change this object.',
    interfaces: [error],
    fields: (t) => ({
      permission: t.exposeString('permission', {
        description: 'The permission that is needed, such as `accounts:read`.',
      }),
    }),
  });
  const duplicateReason = enumOf<DuplicateReason>(
    builder,
    'DuplicateReason',
    'What another object already has.',
    {
      duplicate_id: 'The id.',
      duplicate_email: 'The email, compared by its key.',
      duplicate_external_id: 'The external id.',
      duplicate_wallet: 'The wallet address.',
      duplicate_username: 'The username, compared by its key.',
    },
    String,
  );
  builder.objectType(DuplicateError, {
    name: 'DuplicateError',
    description: 'Another object already has the same identifier.',
    interfaces: [error],
    fields: (t) => ({
      reason: t.expose('reason', { type: duplicateReason, description: 'What already exists.' }),
    }),
  });
  builder.objectType(PreconditionError, {
    name: 'PreconditionError',
    description: 'The input is valid, but the current state does not allow the change; the message says why.',
    interfaces: [error],
  });
}
