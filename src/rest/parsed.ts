import type { z } from 'zod';
import { invalidRequest } from '../errors/app-error.ts';
import { issuesOf } from '../errors/issues.ts';

/**
 * What an input's schema gives.
 * @throws AppError 400 that names each member at fault.
 */
export function parsed<Schema extends z.ZodType>(schema: Schema, given: unknown): z.output<Schema> {
  const result = schema.safeParse(given);
  if (!result.success) throw invalidRequest(issuesOf(result.error));
  return result.data;
}
