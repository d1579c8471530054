import { z } from 'zod';
import {
  ERASED_BODY,
  ERASED_MESSAGE,
  IDEMPOTENCY_KEY,
  type StoredResponse,
} from '../../../domain/idempotency/idempotent-responses.ts';
import { type ToolCall, ToolError, type ToolFailure } from './tool.ts';

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
 * Does the work once per key, and returns the stored result for a repetition. A ToolError of the work, such as the
 * reason why a user was skipped, is stored as well; any other refusal leaves the key free, and so do invalid arguments.
 * @throws Refusal 409 for a key that was used with other arguments.
 */
export async function idempotentCall<Result extends object>(
  call: ToolCall,
  { name, key, input, work, around = (run) => run() }: IdempotentCall<Result>,
): Promise<Result> {
  if (key === undefined) return around(work);
  const { nodeId, clientId } = call.caller;
  const bytes = Buffer.from(JSON.stringify(input));
  const request = { nodeId, subject: clientId, clientId, method: 'MCP', path: name, key, bytes };
  const { status, body } = await call.services.idempotentResponses.respond(request, () => answerOf(work), around);
  if (body === ERASED_BODY) {
    throw new ToolError({ code: 'erased', message: ERASED_MESSAGE });
  }
  const stored: unknown = JSON.parse(body ?? '{}');
  if (status !== 200) throw new ToolError(stored as ToolFailure);
  return stored as Result;
}

async function answerOf(work: () => Promise<object>): Promise<StoredResponse> {
  try {
    return { status: 200, headers: {}, body: JSON.stringify(await work()) };
  } catch (error) {
    // The decision is final and is committed with its effects, such as the record of a user who was skipped.
    if (error instanceof ToolError) return { status: 400, headers: {}, body: JSON.stringify(error.fault) };
    throw error;
  }
}
