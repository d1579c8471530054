import type { z } from 'zod';
import {
  AppError,
  forbidden,
  invalidRequest,
  issuesOf,
  notFound,
  type Refusal,
  RefusalError,
} from '../../platform/errors.ts';

/**
 * Parses an input.
 * @throws AppError 400 that names each member at fault.
 */
export function parsed<Schema extends z.ZodType>(schema: Schema, given: unknown): z.output<Schema> {
  const result = schema.safeParse(given);
  if (!result.success) throw invalidRequest(issuesOf(result.error));
  return result.data;
}

/**
 * Waits for a service.
 * @throws AppError with the documented status of what the service refuses.
 */
export async function orRefuse<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof RefusalError ? statusOf(error.refusal) : error;
  }
}

function statusOf(refusal: Refusal): AppError {
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
