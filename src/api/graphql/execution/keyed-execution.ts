import { type ExecutionArgs, type ExecutionResult, GraphQLError, type GraphQLFieldMap, getOperationAST } from 'graphql';
import {
  ERASED_BODY,
  ERASED_MESSAGE,
  IDEMPOTENCY_KEY,
  type KeyedRequest,
  type StoredResponse,
} from '../../../idempotency/idempotent-responses.ts';
import { limitedJson } from '../../../lib/json-slices.ts';
import { heldMemory } from '../../../platform/waiting-request.ts';
import type { FeatureServices } from '../../shared/services.ts';
import { traitsOf } from '../kit/field-options.ts';
import { originOf } from '../kit/graphql-errors.ts';
import { callerOf, type GraphqlContext } from '../kit/resolvers.ts';
import { badRequest, type OperationRequest, rootFieldsOf } from './documents.ts';
import { MAX_RESULT_BYTES, type MaskedResult, pageTooLarge } from './error-masking.ts';

/**
 * Thrown in a trial where a field takes a service, so that it has passed its permission and the validation of its
 * arguments; and to roll back a mutation that was refused.
 */
class StoppedError extends Error {}

const UNREACHABLE = new Proxy({} as FeatureServices, {
  get() {
    throw new StoppedError();
  },
});

/**
 * Executes an operation. A mutation that came with an idempotency key is executed once, in the transaction that stores
 * its result; a repetition gets that result, with the text of the first response. A refusal, a result with errors and
 * one that is too long roll back and leave the key free; the documented reasons of a migration are stored. Errors are
 * returned, not thrown, because on a WebSocket what is thrown closes the socket.
 */
export async function withIdempotency(
  args: ExecutionArgs,
  execute: (args: ExecutionArgs) => Promise<ExecutionResult>,
): Promise<MaskedResult> {
  const mutations = args.schema.getMutationType()?.getFields() ?? {};
  const request = keyedRequest(args, mutations);
  if (request instanceof GraphQLError) return { errors: [request] };
  if (!request) return execute(args);
  const context = args.contextValue as GraphqlContext;
  callerOf(context).hasIdempotencyKey = true;
  const { idempotentResponses } = context.services;
  const wrap = traitsOf(mutations[request.path]).idempotent?.(context.services);
  // As on REST, permission and validation are checked before the key.
  const trial = await execute({ ...args, contextValue: { ...context, services: UNREACHABLE } });
  if (!trial.errors?.some((error) => originOf(error) instanceof StoppedError)) return trial;
  let unstoredResult: MaskedResult | undefined;
  async function work(): Promise<StoredResponse> {
    const result = await execute(args);
    const body = await limitedJson(result, MAX_RESULT_BYTES, heldMemory());
    const isRefused = result.errors !== undefined || callerOf(context).isRefused;
    if (body !== undefined && !isRefused) return { status: 200, headers: {}, body };
    unstoredResult = body === undefined ? pageTooLarge() : result.errors ? { ...result, data: null } : result;
    throw new StoppedError();
  }
  try {
    const { body } = await idempotentResponses.respond(request, work, (run) =>
      wrap ? wrap(request.nodeId, run) : run(),
    );
    if (body === ERASED_BODY) {
      return { data: null, errors: [new GraphQLError(ERASED_MESSAGE, { extensions: { code: 'ERASED' } })] };
    }
    return { data: null, stringify: () => body ?? '{}' };
  } catch (error) {
    if (unstoredResult) return unstoredResult;
    return { data: null, errors: [new GraphQLError('the mutation failed', { cause: error })] };
  }
}

/**
 * Returns the request that the idempotency key of a mutation stands for; undefined for one without, and for a query; an
 * error for a key that is malformed or not taken there.
 */
function keyedRequest(
  { document, operationName, contextValue }: ExecutionArgs,
  mutations: GraphQLFieldMap<unknown, unknown>,
): KeyedRequest | GraphQLError | undefined {
  const { exchange, isLater, bearer, body, params } = contextValue as OperationRequest &
    GraphqlContext & {
      /** The body of a POST with JSON. */
      body?: Buffer;
      params: object;
    };
  const [key, ...otherKeys] = exchange.req.headersDistinct['idempotency-key'] ?? [];
  const operation = getOperationAST(document, operationName);
  if (key === undefined || operation?.operation !== 'mutation') return undefined;
  const names = rootFieldsOf(document, operation).filter((name) => name !== '__typename');
  const [path = ''] = names;
  const keyed = Object.keys(mutations).filter((name) => traitsOf(mutations[name]).idempotent);
  const fault =
    otherKeys.length > 0 || !IDEMPOTENCY_KEY.test(key)
      ? 'must be 1 to 255 printable ASCII characters, once'
      : isLater
        ? 'is only for operations over HTTP, not over a WebSocket'
        : names.length !== 1
          ? `is for operations with a single mutation; this one has ${names.length} root fields`
          : !keyed.includes(path) && `is not supported for ${path}, only for ${keyed.join(', ')}`;
  if (fault) return badRequest(`Idempotency-Key ${fault}`);
  const { nodeId, subject, clientId } = bearer;
  return {
    ...{ nodeId, subject, clientId, method: 'GraphQL', path, key },
    bytes: body ?? Buffer.from(JSON.stringify(params)),
  };
}
