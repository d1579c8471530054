import { AppError, type Issue } from '../errors/app-error.ts';
import { type Refusal, RefusalError } from '../errors/refusal.ts';

/** Why a tool did not do what it was asked for, in words that say what to change. */
export interface ToolFault {
  /** For programs: `not_found`, `invalid_arguments`, `duplicate_email` … */
  code: string;
  /** For whoever called. */
  message: string;
  /** The arguments at fault, by path: `rule.auto_transfer_rule.amount`. */
  issues?: readonly Issue[];
}

/** Thrown by a tool that refuses. Nothing was changed. */
export class ToolError extends Error {
  override name = 'ToolError';
  readonly fault: ToolFault;

  constructor(fault: ToolFault) {
    super(fault.message);
    this.fault = fault;
  }
}

/** Arguments that do not hold. */
export function invalidArguments(issues: readonly Issue[]): ToolError {
  return new ToolError({ code: 'invalid_arguments', message: 'change these arguments and call again', issues });
}

/**
 * The fault that an error stands for; undefined where it was not expected. What is not found is told in the tool's own
 * words: whose id it was and where ids are, and never whether another node has it.
 */
export function faultOf(error: unknown, missing: string): ToolFault | undefined {
  if (error instanceof ToolError) return error.fault;
  if (error instanceof RefusalError) {
    const { refusal } = error;
    return refusal.kind === 'not_found' ? { code: 'not_found', message: missing } : faultOfRefusal(refusal);
  }
  if (!(error instanceof AppError)) return undefined;
  if (error.message === 'idempotency_conflict') {
    const message =
      'the idempotency_key came with other arguments before, or a call under it is still under way: take another key for another change, or wait a few seconds and repeat the same call';
    return { code: error.message, message };
  }
  if (error.message === 'gateway_timeout') {
    return { code: error.message, message: 'it took too long: ask for less, or call again later' };
  }
  if (error.status !== 503) return undefined;
  const seconds = error.headers['Retry-After'] ?? '1';
  return { code: error.message, message: `too much is under way: call again in ${seconds} s` };
}

/** A fault as a text: a line of its code and message, and a line for each issue. */
export function textOfFault({ code, message, issues = [] }: ToolFault): string {
  const lines = issues.map(({ path, message: wrong }) => (path === '' ? `- ${wrong}` : `- ${path}: ${wrong}`));
  return [`${code}: ${message}`, ...lines].join('\n');
}

/** The fault of a refusal that is the same for every tool. */
export function faultOfRefusal(refusal: Exclude<Refusal, { kind: 'not_found' }>): ToolFault {
  switch (refusal.kind) {
    case 'forbidden':
      return { code: 'forbidden', message: refusal.message };
    case 'duplicate':
      return { code: refusal.reason, message: refusal.message };
    case 'precondition':
      return { code: 'precondition_failed', message: refusal.message };
    case 'invalid':
      return invalidArguments([{ path: refusal.path, message: refusal.message }]).fault;
    default:
      return refusal satisfies never;
  }
}
