import { z } from 'zod';
import { ERASED_BODY, ERASED_MESSAGE, IDEMPOTENCY_KEY } from '../../../idempotency/idempotent-responses.ts';
import { type ToolCall, ToolError } from './tool.ts';

/** The argument that makes it safe to repeat a call of a tool. */
export const idempotencyKey = z
  .string('must be a string')
  .regex(IDEMPOTENCY_KEY, 'must be 1 to 255 printable ASCII characters')
  .optional()
  .meta({
    description:
      'Your own text, unique for each change. Repeating a call with the same key and arguments within a day changes nothing and returns the first result. Pass one if you may have to repeat the call.',
  });

/**
 * Does the work once per key, and returns the stored result for a repetition. A refusal leaves the key free.
 * @throws Refusal 409 for a key that was used with other arguments.
 */
export async function idempotentCall<Result extends object>(
  { caller, services }: ToolCall,
  {
    name,
    key,
    input,
    work,
    wrapTransaction = (run) => run(),
  }: {
    /** The name of the tool. */
    name: string;
    key: string | undefined;
    /** The parsed arguments that the key stands for. */
    input: unknown;
    work(): Promise<Result>;
    /** Wraps the work, including its transaction, for instance in a mutex. */
    wrapTransaction?<Outcome>(work: () => Promise<Outcome>): Promise<Outcome>;
  },
): Promise<Result> {
  if (key === undefined) return wrapTransaction(work);
  const { nodeId, subject, clientId } = caller;
  const bytes = Buffer.from(JSON.stringify(input));
  const request = { nodeId, subject, clientId, method: 'MCP', path: name, key, bytes };
  const answer = async () => ({ status: 200, headers: {}, body: JSON.stringify(await work()) });
  const { body } = await services.idempotentResponses.respond(request, answer, wrapTransaction);
  if (body === ERASED_BODY) throw new ToolError({ code: 'erased', message: ERASED_MESSAGE });
  return JSON.parse(body ?? '{}');
}
