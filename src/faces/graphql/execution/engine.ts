import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  executeSubscriptionEvent,
  GraphQLError,
  type GraphQLSchema,
  NoSchemaIntrospectionCustomRule,
  parse,
  type Source,
  specifiedRules,
  type ValidatedSubscriptionArgs,
  validate,
  validateSubscriptionArgs,
} from 'graphql';
import type { GraphqlContext } from '../kit/graphql-context.ts';
import { resultKeyOf } from '../kit/result-key.rules.ts';
import { CompiledOperations } from './compiled-operations.ts';
import { limitError } from './document-limits.ts';
import { OperationObserver } from './operation-observer.ts';
import { ResultStream, SharedResults } from './shared-results.ts';

/** The maximum number of lexical tokens in a document. */
export const MAX_TOKENS = 1_000;

/**
 * Whether a document may have more comments than it may have tokens: the parser counts none of them, and makes a token of
 * each. A `#` within a string counts as well.
 */
export function hasManyComments(document: string): boolean {
  let count = 0;
  for (let at = document.indexOf('#'); at !== -1; at = document.indexOf('#', at + 1)) {
    count += 1;
    if (count > MAX_TOKENS) return true;
  }
  return false;
}

/** How the parser's error begins then: nothing else in it says so. */
const TOO_MANY_TOKENS = `Syntax Error: Document contains more than ${MAX_TOKENS} tokens`;

/** Faults of a document that are told. */
const MAX_FAULTS = 20;

/** Faults of an operation's variables that are told: each message is made with all of the object that it is about. */
const MAX_VARIABLE_FAULTS = 5;

interface EngineOptions {
  introspection: boolean;
  /** Whether errors keep to themselves which names there are. */
  hideSuggestions: boolean;
  /** What measures and traces operations. */
  observer?: OperationObserver | undefined;
}

/** Creates the functions that parse, validate and run operations, for Envelop's `useEngine`. */
export function createEngine({ introspection, hideSuggestions, observer = new OperationObserver() }: EngineOptions) {
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  const answers = new SharedResults((event) => observer.deliveryOf(event));
  const settings = { hideSuggestions, options: { maxCoercionErrors: MAX_VARIABLE_FAULTS } };
  const operations = new CompiledOperations((args) => execute({ ...args, ...settings }));
  return {
    parse: parseWithinLimits,
    validate: (schema: GraphQLSchema, document: DocumentNode) =>
      validate(schema, document, rules, { maxErrors: MAX_FAULTS, hideSuggestions }),
    execute: (args: ExecutionArgs) => observer.run(args, (given) => operations.run(given)),
    subscribe: (args: ExecutionArgs) => observer.run(args, (given) => subscribe({ ...given, ...settings }, answers)),
  };
}

function parseWithinLimits(source: string | Source): DocumentNode {
  if (hasManyComments(typeof source === 'string' ? source : source.body)) {
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
 * Subscribes, and answers each event of the source with an execution in a context of its own, so that no loader
 * remembers what an earlier event has read; one for all whom the same answer is good for. That context has nothing of
 * its subscriber beyond what the answer's key is made from.
 */
async function subscribe(args: ExecutionArgs, answers: SharedResults): Promise<ResultStream | ExecutionResult> {
  const validated = validateSubscriptionArgs(args);
  if (!('schema' in validated)) return { errors: validated };
  const source = await createSourceEventStream(validated);
  if (!(Symbol.asyncIterator in source)) return source;
  const key = resultKeyOf(validated, (validated.contextValue as GraphqlContext).principal);
  return new ResultStream(source, (event) =>
    answers.answer(event, key, () => execution({ ...validated, rootValue: event })),
  );
}

function execution(args: ValidatedSubscriptionArgs): ReturnType<typeof executeSubscriptionEvent> {
  const { principal, services } = args.contextValue as GraphqlContext;
  const contextValue: GraphqlContext = { principal, caller: undefined, services };
  // Others may wait for it when this subscriber has left.
  return executeSubscriptionEvent({ ...args, contextValue, externalAbortSignal: undefined });
}
