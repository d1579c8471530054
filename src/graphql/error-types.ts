import type { Builder } from './builder.ts';
import {
  DuplicateError,
  ForbiddenError,
  type InputIssue,
  NotFoundError,
  PreconditionError,
  ValidationError,
} from './errors.ts';

/** Adds the members that mutations' unions share beside their results. */
export function addErrorTypes(builder: Builder): void {
  const error = builder.interfaceRef<Error>('Error').implement({
    description: 'What kept a mutation from being done. Nothing was changed.',
    fields: (t) => ({
      message: t.exposeString('message', { description: 'In English, for people; programs go by the type.' }),
    }),
  });
  const issue = builder.objectRef<InputIssue>('InputIssue').implement({
    description: 'What was wrong with one member of an input.',
    fields: (t) => ({
      path: t.exposeStringList('path', { description: "Where, from the input's root: names, and positions from 0." }),
      message: t.exposeString('message', { description: 'What to send instead.' }),
    }),
  });
  builder.objectType(ValidationError, {
    name: 'ValidationError',
    description: 'The input is not valid, by the same rules as in REST; `issues` say what is wrong, all at once.',
    interfaces: [error],
    fields: (t) => ({ issues: t.expose('issues', { type: [issue], description: 'Each member at fault.' }) }),
  });
  builder.objectType(NotFoundError, {
    name: 'NotFoundError',
    description: 'An id that is given names nothing, or something of another node, which is told alike.',
    interfaces: [error],
  });
  builder.objectType(ForbiddenError, {
    name: 'ForbiddenError',
    description: 'The token lacks a permission, or may not be used for this one thing.',
    interfaces: [error],
    fields: (t) => ({
      permission: t.exposeString('permission', {
        description: 'The permission that is needed, such as `accounts:read`.',
      }),
    }),
  });
  builder.objectType(DuplicateError, {
    name: 'DuplicateError',
    description: 'Something else has the same identity already.',
    interfaces: [error],
    fields: (t) => ({
      reason: t.exposeString('reason', {
        description:
          'What is taken: `duplicate_id`, `duplicate_email`, `duplicate_external_id`, `duplicate_wallet` or `duplicate_username`.',
      }),
    }),
  });
  builder.objectType(PreconditionError, {
    name: 'PreconditionError',
    description: 'What there is does not allow it, though the input is valid: the message says why.',
    interfaces: [error],
  });
}
