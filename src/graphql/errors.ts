import { GraphQLError } from 'graphql';
import type { z } from 'zod';
import type { AppError } from '../errors/app-error.ts';

/** What was wrong with one member of an input; the path starts at the input's root, in camelCase. */
export interface InputIssue {
  path: string[];
  message: string;
}

/** Union member of mutations: the input does not hold. */
export class ValidationError extends Error {
  override name = 'ValidationError';
  readonly issues: InputIssue[];

  constructor(issues: InputIssue[]) {
    super('the input is not valid');
    this.issues = issues;
  }
}

/** Union member of mutations: the id names nothing of the caller's node. */
export class NotFoundError extends Error {
  override name = 'NotFoundError';

  constructor() {
    super('not found');
  }
}

/** Union member of mutations: the token lacks a permission, or may not be used for this one thing. */
export class ForbiddenError extends Error {
  override name = 'ForbiddenError';
  readonly permission: string;

  constructor(permission: string, message = `the permission ${permission} is missing`) {
    super(message);
    this.permission = permission;
  }
}

/** Union member of mutations: something else has the same identity. */
export class DuplicateError extends Error {
  override name = 'DuplicateError';
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Union member of mutations: what there is does not allow it. */
export class PreconditionError extends Error {
  override name = 'PreconditionError';
}

/** Outside mutations: the token lacks a permission. */
export function forbiddenError(permission: string): GraphQLError {
  const { message } = new ForbiddenError(permission);
  return new GraphQLError(message, { extensions: { code: 'FORBIDDEN', permission } });
}

/** Where null is not possible: the id is unknown or of another node, which are one and the same. */
export function notFoundError(): GraphQLError {
  return new GraphQLError('not found', { extensions: { code: 'NOT_FOUND' } });
}

/** Outside mutations: an argument does not hold. */
export function badInputError(issues: InputIssue[]): GraphQLError {
  const message = issues.map(({ path, message: text }) => `${path.join('.')}: ${text}`).join('; ');
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', issues } });
}

/** The operation's token has ended, or is revoked. */
export function unauthenticatedError(): GraphQLError {
  return new GraphQLError('the token has ended', { extensions: { code: 'UNAUTHENTICATED' } });
}

/** A guard of the client refuses the operation; `retryAfter` in seconds. Whatever is no refusal stays what it is. */
export function refusedError(error: AppError): GraphQLError | AppError {
  const { status, message, headers } = error;
  if (status === 403) return new GraphQLError(message, { extensions: { code: 'FORBIDDEN' } });
  if (status !== 429) return error;
  return new GraphQLError(message, {
    extensions: { code: 'RATE_LIMITED', retryAfter: Number(headers['Retry-After']) },
  });
}

/** The issues of a failed parse of all arguments; those of `input` are told from its own root. */
export function inputIssues(error: z.ZodError): InputIssue[] {
  return error.issues.map(({ path, message }) => {
    const parts = path.map(String);
    return { path: parts[0] === 'input' ? parts.slice(1) : parts, message };
  });
}
