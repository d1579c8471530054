import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  executeSubscriptionEvent,
  type GraphQLSchema,
  mapSourceToResponseEvent,
  NoSchemaIntrospectionCustomRule,
  parse,
  type Source,
  specifiedRules,
  type ValidatedSubscriptionArgs,
  validate,
  validateSubscriptionArgs,
} from 'graphql';
import type { GraphqlContext } from './context.ts';

/** Lexical tokens that a document may have. */
const MAX_TOKENS = 1_000;

/** Faults of a document that are told. */
const MAX_FAULTS = 20;

const EVENT_ID = Symbol('event id');

/** The cursor of the event that a result was made from, where it has one. */
export function eventIdOf(result: object): string | undefined {
  const id = EVENT_ID in result ? result[EVENT_ID] : undefined;
  return typeof id === 'string' ? id : undefined;
}

interface EngineOptions {
  introspection: boolean;
  /** Whether errors keep to themselves which names there are. */
  hideSuggestions: boolean;
}

/** What parses, validates and runs operations, for Envelop's `useEngine`. */
export function createEngine({ introspection, hideSuggestions }: EngineOptions) {
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  return {
    parse: (source: string | Source) => parse(source, { maxLexicalTokens: MAX_TOKENS }),
    validate: (schema: GraphQLSchema, document: DocumentNode) =>
      validate(schema, document, rules, { maxErrors: MAX_FAULTS, hideSuggestions }),
    execute: (args: ExecutionArgs) => execute({ ...args, hideSuggestions }),
    subscribe: (args: ExecutionArgs) => subscribe({ ...args, hideSuggestions }),
  };
}

/**
 * Subscribes, and answers each event of the source with an execution in a context of its own, so that no loader
 * remembers what an earlier event has read.
 */
async function subscribe(args: ExecutionArgs): Promise<AsyncGenerator<ExecutionResult, void, void> | ExecutionResult> {
  const validated = validateSubscriptionArgs(args);
  if (!('schema' in validated)) return { errors: validated };
  const source = await createSourceEventStream(validated);
  return Symbol.asyncIterator in source ? mapSourceToResponseEvent(validated, source, answerEvent) : source;
}

async function answerEvent(args: ValidatedSubscriptionArgs): Promise<ExecutionResult> {
  const { principal, correlationId, lastEventId, services } = args.contextValue as GraphqlContext;
  const contextValue: GraphqlContext = { principal, correlationId, lastEventId, services };
  const result = await executeSubscriptionEvent({ ...args, contextValue });
  const { rootValue } = args;
  const isLogged = typeof rootValue === 'object' && rootValue !== null && 'seq' in rootValue;
  return isLogged ? Object.assign(result, { [EVENT_ID]: String(rootValue.seq) }) : result;
}
