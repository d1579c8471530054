import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  executeSubscriptionEvent,
  GraphQLError,
  type GraphQLFieldMap,
  type GraphQLSchema,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
  parse,
  type Source,
  specifiedRules,
  type ValidatedSubscriptionArgs,
  validate,
  validateSubscriptionArgs,
} from 'graphql';
import { noteUsers, notingUsers, type UserNotes, userNotes } from '../../../audit/noted-users.ts';
import {
  ERASED_BODY,
  ERASED_MESSAGE,
  IDEMPOTENCY_KEY,
  type KeyedRequest,
  type StoredResponse,
} from '../../../idempotency/idempotent-responses.ts';
import { CompiledOperations } from '../../../lib/fast/compiled-operations.ts';
import { heapWeight, textWeight } from '../../../lib/heap-weight.ts';
import { limitedJson, runCooperatively } from '../../../lib/yielding.ts';
import { heldMemory } from '../../../platform/held-memory.ts';
import type { FeatureServices } from '../../shared/services.ts';
import { traitsOf } from '../kit/builder.ts';
import { callerOf, freshContext, type GraphqlContext } from '../kit/resolvers.ts';
import {
  areVariablesGood,
  badRequest,
  fragmentsOf,
  limitError,
  type OperationRequest,
  rootFieldsOf,
} from './documents.ts';
import { MAX_RESULT_BYTES, type MaskedResult, originOf, pageTooLarge } from './error-masking.ts';
import { OperationObserver } from './operation-observer.ts';
import { EventExecutions, type EventResults, type EventSource, resultKeyOf, SharedResults } from './shared-results.ts';

/** The maximum number of lexical tokens in a document. */
const MAX_TOKENS = 1_000;

/** The beginning of the parser's error for too many tokens, which only its message identifies. */
const TOO_MANY_TOKENS = `Syntax Error: Document contains more than ${MAX_TOKENS} tokens`;

/** The maximum number of validation errors of a document. */
const MAX_FAULTS = 20;

/**
 * The maximum number of errors about an operation's variables; each message quotes the whole object that it concerns.
 */
const MAX_VARIABLE_FAULTS = 5;

/** Creates the functions that parse, validate and execute operations, for Envelop's `useEngine`. */
export function createEngine({
  introspection,
  hideSuggestions,
  jit,
  observer = new OperationObserver(),
}: {
  introspection: boolean;
  /** Whether errors suggest no names of the schema. */
  hideSuggestions: boolean;
  /** Whether frequent queries run as compiled code. */
  jit: boolean;
  /** Measures and traces operations. */
  observer?: OperationObserver | undefined;
}) {
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  const executions = new EventExecutions(new SharedResults((event) => observer.deliveryOf(event)));
  const settings = { hideSuggestions, options: { maxCoercionErrors: MAX_VARIABLE_FAULTS } };
  const reference = (args: ExecutionArgs) => execute({ ...args, ...settings });
  const operations = jit ? new CompiledOperations({ reference, areVariablesGood, fragmentsOf }) : { run: reference };
  return {
    parse: parseWithinLimits,
    validate: (schema: GraphQLSchema, document: DocumentNode) =>
      validate(schema, document, rules, { maxErrors: MAX_FAULTS, hideSuggestions }),
    execute: (args: ExecutionArgs) =>
      observer.run(args, (observedArgs) => withIdempotency(observedArgs, (actual) => executed(actual, operations))),
    subscribe: (args: ExecutionArgs) =>
      observer.run(args, (observedArgs) => subscribe({ ...observedArgs, ...settings }, executions)),
  };
}

/**
 * Executes an operation. Fields get a context without the request, and shared values are dropped at the end: Pothos
 * keeps each context in a weak map, and V8's young collections take the values of one for live.
 */
async function executed(args: ExecutionArgs, operations: Pick<CompiledOperations, 'run'>): Promise<ExecutionResult> {
  const contextValue = freshContext(args.contextValue as GraphqlContext);
  try {
    return await runCooperatively(() => operations.run({ ...args, contextValue }), heldMemory(), { isBegun: true });
  } catch (cause) {
    // On a WebSocket, what is thrown closes the socket.
    return { errors: [new GraphQLError('the operation failed', { cause })] };
  } finally {
    contextValue.perOperation.clear();
  }
}

function parseWithinLimits(source: string | Source): DocumentNode {
  // The parser makes a token of each comment, but does not count it. A `#` inside a string counts as well.
  const text = typeof source === 'string' ? source : source.body;
  if (text.split('#', MAX_TOKENS + 2).length > MAX_TOKENS + 1) {
    throw limitError(`the document has more than ${MAX_TOKENS} comments`);
  }
  try {
    return parse(source, { maxLexicalTokens: MAX_TOKENS });
  } catch (error) {
    if (!(error instanceof GraphQLError && error.message.startsWith(TOO_MANY_TOKENS))) throw error;
    throw limitError(`the document has more than ${MAX_TOKENS} tokens`);
  }
}

/**
 * Begins a subscription. Each event is executed in a fresh context, so that no loader reuses what an earlier event has
 * read, and once for all subscribers with the same key. That context contains nothing of the subscriber but what the
 * key is made from.
 */
async function subscribe(
  args: ExecutionArgs,
  executions: EventExecutions,
): Promise<AsyncIterable<ExecutionResult> | ExecutionResult> {
  const validated = validateSubscriptionArgs(args);
  if (!('schema' in validated)) return { errors: validated };
  const { principal } = validated.contextValue as GraphqlContext;
  const held = heldMemory();
  // A refusal is this operation's error, until its results can end with one.
  if (held) held.giveUp = undefined;
  if (held?.charge(subscriptionBytes(validated)) === false)
    throw limitError('the open subscriptions of this tenant use too much memory: end some, or use shorter documents');
  const source = await createSourceEventStream(validated);
  if (!(Symbol.asyncIterator in source)) return source;
  const subscription = {
    nodeId: principal.nodeId,
    key: resultKeyOf(validated, principal),
    source: source as EventSource,
  };
  return resultsOf(
    source,
    (event) => executions.answer(event as object, subscription, () => execution({ ...validated, rootValue: event })),
    (event) => executions.results.ready(event, subscription.key),
  );
}

/**
 * A subscription without its document and variables: its connection, its stream, its queue and its place among the
 * others, in bytes.
 */
export const SUBSCRIPTION_BYTES = 6.5 * 1024;
/** A token of a document in memory: itself, and its share of the nodes that refer to it. */
const TOKEN_BYTES = 280;
/** A shorter document is charged as one of so many tokens: much of what a subscription holds does not grow with it. */
const MIN_TOKENS = 27;
/** The variables of a subscription are held as they were sent, as they were coerced, and as its record has them. */
const COPIES = 3;

/** Returns about the memory of a subscription, in bytes. */
export function subscriptionBytes({
  document,
  rawVariableValues = {},
}: Pick<ValidatedSubscriptionArgs, 'document' | 'rawVariableValues'>): number {
  let tokens = 0;
  for (let token = document.loc?.startToken; token; token = token.next ?? undefined) tokens += 1;
  return (
    SUBSCRIPTION_BYTES +
    Math.max(tokens, MIN_TOKENS) * TOKEN_BYTES +
    COPIES * (textWeight(document.loc?.source.body ?? '') + heapWeight(rawVariableValues))
  );
}

const NOTED = Symbol('noted users');

/**
 * Returns the results of a subscription's events, each executed in the async context of its reader. Counts the memory of a
 * result until the next one is asked for, since it has been sent by then. If the memory is needed for others, the
 * subscription ends with the refusal. The mapping of graphql-js would hold the last result while it waits.
 */
function resultsOf(
  source: EventSource,
  resultOf: (event: unknown) => Promise<ExecutionResult>,
  readyOf: (event: object) => ExecutionResult | undefined,
): AsyncIterableIterator<ExecutionResult> {
  const held = heldMemory();
  const notes = userNotes();
  const events = source[Symbol.asyncIterator]();
  const giveUp = () => void events.return?.();
  if (held) held.giveUp = giveUp;
  // Its memory may have been needed while the source began.
  if (held?.refusal) giveUp();
  // Those that the execution of the event has noted, for all subscribers that share its result.
  const noted = (result: ExecutionResult | undefined) => {
    noteUsers(Object(result)[NOTED] ?? [], notes);
    return result;
  };
  const sendEventNow = (event: object) => results.sendNow?.(noted(readyOf(event))) === true;
  source.sendEventNow = sendEventNow;
  const results: EventResults & AsyncIterableIterator<ExecutionResult> = {
    async next() {
      held?.lowerTo(0);
      try {
        const { done, value: event } = await events.next();
        const result = done ? undefined : noted(await resultOf(event));
        if (held?.refusal) throw held.refusal;
        return result ? { done: false, value: result } : { done: true, value: undefined };
      } catch (error) {
        giveUp();
        throw error;
      }
    },
    async return() {
      await events.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => results,
  };
  return results;
}

async function execution(args: ValidatedSubscriptionArgs): Promise<ExecutionResult> {
  const { principal, services } = args.contextValue as GraphqlContext;
  const contextValue = freshContext({ principal, caller: undefined, services });
  const notes: UserNotes = { notedUsers: undefined };
  // Other subscribers may wait for the result when this one has left.
  const event = { ...args, contextValue, externalAbortSignal: undefined };
  const result = await notingUsers(notes, () => executeSubscriptionEvent(event));
  return notes.notedUsers ? Object.assign(result, { [NOTED]: notes.notedUsers }) : result;
}

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
