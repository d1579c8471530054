import { z } from 'zod';
import { ERASED_BODY, IDEMPOTENCY_KEY, type StoredResponse } from '../../../domain/idempotency/idempotent-responses.ts';
import { notFoundRefusal, RefusalError } from '../../../platform/errors.ts';
import { failureOfRefusal, type ToolCall, ToolError, type ToolFailure } from './tool.ts';

/** The argument that makes it safe to repeat a call of a tool. */
export const idempotencyKey = z
  .string('must be a string')
  .regex(IDEMPOTENCY_KEY, 'must be 1 to 255 printable ASCII characters')
  .optional()
  .meta({
    description:
      'Your own text, unique for each change: repeating a call with the same key and arguments within a day changes nothing and returns the first result. Give one if you may have to repeat the call.',
  });

interface IdempotentCall<Result> {
  /** The name of the tool. */
  name: string;
  key: string | undefined;
  /** The parsed arguments that the key stands for. */
  input: unknown;
  work(): Promise<Result>;
  /** Wraps the work, including its transaction, for instance in a mutex. */
  around?<Outcome>(work: () => Promise<Outcome>): Promise<Outcome>;
}

/**
 * Does the work once per key, and returns the stored result for a repetition; a refusal is stored too. Invalid
 * arguments are refused earlier, so they do not use up the key.
 * @throws AppError 409 for a key that was used with other arguments.
 */
export async function idempotentCall<Result extends object>(
  call: ToolCall,
  { name, key, ...what }: IdempotentCall<Result>,
): Promise<Result> {
  const { input, work, around = (run) => run() } = what;
  if (key === undefined) return around(work);
  const { nodeId, clientId } = call.caller;
  const bytes = Buffer.from(JSON.stringify(input));
  const request = { nodeId, subject: clientId, clientId, method: 'MCP', path: name, key, bytes };
  const { idempotentResponses: answers } = call.services;
  return resultOf(await answers.respond(request, () => answerOf(work), { around, refusedAs: refusalAnswer }));
}

async function answerOf(work: () => Promise<object>): Promise<StoredResponse> {
  try {
    return { status: 200, headers: {}, body: JSON.stringify(await work()) };
  } catch (error) {
    // The decision is final and is committed with its effects, such as the record of a user who was skipped.
    if (error instanceof ToolError) return faultAnswer(error.fault);
    throw error;
  }
}

/**
 * Returns the stored response of a refusal that left no effects; undefined for any other error. `not_found` has no
 * body, since each tool has its own message for it.
 */
function refusalAnswer(error: unknown): StoredResponse | undefined {
  if (!(error instanceof RefusalError)) return undefined;
  const { refusal } = error;
  return refusal.kind === 'not_found'
    ? { status: 404, headers: {}, body: null }
    : faultAnswer(failureOfRefusal(refusal));
}

function faultAnswer(fault: ToolFailure): StoredResponse {
  return { status: 400, headers: {}, body: JSON.stringify(fault) };
}

function resultOf<Result extends object>({ status, body }: StoredResponse): Result {
  if (body === ERASED_BODY)
    throw new ToolError({ code: 'erased', message: 'the result was erased with the data of a user' });
  if (status === 200 && body !== null) return JSON.parse(body) as Result;
  if (status === 400 && body !== null) throw new ToolError(JSON.parse(body) as ToolFailure);
  throw notFoundRefusal();
}
