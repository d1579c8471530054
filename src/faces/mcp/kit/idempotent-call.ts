import { z } from 'zod';
import { IDEMPOTENCY_KEY, type StoredResponse } from '../../../domain/idempotency/idempotent-responses.ts';
import { notFoundRefusal, RefusalError } from '../../../platform/errors.ts';
import { failureOfRefusal, type ToolCall, ToolError, type ToolFailure } from './tool.ts';

/** The argument that makes a repeated call of a tool safe. */
export const idempotencyKey = z
  .string('must be a string')
  .regex(IDEMPOTENCY_KEY, 'must be 1 to 255 printable ASCII characters')
  .optional()
  .meta({
    description:
      'Your own text, unique for each change: repeating a call with the same key and arguments within a day changes nothing and returns the first result. Give one if you may have to repeat the call.',
  });

interface IdempotentCall<Result> {
  /** The tool. */
  name: string;
  key: string | undefined;
  /** What the key stands for: the arguments, as they were read. */
  input: unknown;
  work(): Promise<Result>;
  /** Runs before any transaction, around the whole of it. */
  around?<Outcome>(work: () => Promise<Outcome>): Promise<Outcome>;
}

/**
 * Does something, or gives the result of the first time under the same key; refusals too. Arguments that do not hold
 * never come here: they leave the key free.
 * @throws AppError 409 for a key that came with other arguments.
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
    // What was decided stands, as the record of a user who was skipped.
    if (error instanceof ToolError) return faultAnswer(error.fault);
    throw error;
  }
}

/** What leaves nothing behind. Each tool has its own words for what is not found. */
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
  if (status === 200 && body !== null) return JSON.parse(body) as Result;
  if (status === 400 && body !== null) throw new ToolError(JSON.parse(body) as ToolFailure);
  throw notFoundRefusal();
}
