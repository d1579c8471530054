import { AppError, forbidden, invalidRequest, notFound } from '../errors/app-error.ts';
import { type Refusal, RefusalError } from '../errors/refusal.ts';

/** What a service gives; what it refuses is thrown with its documented status. */
export async function orRefuse<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof RefusalError ? answerOf(error.refusal) : error;
  }
}

function answerOf(refusal: Refusal): AppError {
  switch (refusal.kind) {
    case 'not_found':
      return notFound();
    case 'forbidden':
      return forbidden();
    case 'precondition':
      return new AppError(412, 'precondition_failed');
    case 'duplicate':
      return new AppError(409, 'idempotency_conflict');
    case 'invalid':
      return invalidRequest([{ path: refusal.path, message: refusal.message }]);
    default:
      return refusal satisfies never;
  }
}
