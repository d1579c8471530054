import { type Refusal, RefusalError } from '../errors/refusal.ts';
import { DuplicateError, ForbiddenError, NotFoundError, PreconditionError, ValidationError } from './errors.ts';

/** What a service gives; what it refuses is thrown as the member of the mutation's union. */
export async function orMember<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof RefusalError ? memberOf(error.refusal) : error;
  }
}

function memberOf(refusal: Refusal): Error {
  switch (refusal.kind) {
    case 'not_found':
      return new NotFoundError();
    case 'forbidden':
      return new ForbiddenError(refusal.permission, refusal.message);
    case 'duplicate':
      return new DuplicateError(refusal.reason, refusal.message);
    case 'precondition':
      return new PreconditionError(refusal.message);
    case 'invalid':
      return new ValidationError([{ path: [refusal.path], message: refusal.message }]);
    default:
      return refusal satisfies never;
  }
}
