import DataLoader from 'dataloader';
import type { FieldNode, GraphQLResolveInfo } from 'graphql';
import { type Administrator, administratorOf } from '../../../access/administration/administration.ts';
import type { Caller, Principal } from '../../../access/identity/callers.ts';
import type { FeatureServices } from '../../shared/services.ts';

/** The caller of an operation, on which only that operation's own result may depend. */
interface OperationCaller extends Principal, Caller {
  /** The `Last-Event-ID` of an SSE client that reconnects; it takes precedence over the operation's `after`. */
  lastEventId: string | undefined;
  /** Whether the operation is a mutation with an idempotency key. */
  hasIdempotencyKey: boolean;
  /** Whether the domain has refused a mutation of the operation. */
  isRefused: boolean;
}

/**
 * The part of a principal that the result of an event may depend on. The context of an event contains only this part.
 */
export type SharedPrincipal = Pick<Principal, 'nodeId' | 'tokenClass' | 'tokenUse' | 'permissions'>;

/**
 * The context of the fields of one operation. Each event of a subscription has a fresh one, because its result goes to
 * every subscriber with the same `principal`.
 */
export interface GraphqlContext {
  principal: SharedPrincipal;
  /** Undefined in the context of an event. */
  caller: OperationCaller | undefined;
  services: FeatureServices;
  /**
   * What fields share, such as loaders, by what creates it. Not in a weak map by context: V8's young collections take
   * its values for live.
   */
  perOperation: Map<object, unknown>;
}

/** Returns a context with only these members, in which fields have shared nothing yet. */
export function freshContext({ principal, caller, services }: Omit<GraphqlContext, 'perOperation'>): GraphqlContext {
  return { principal, caller, services, perOperation: new Map() };
}

/**
 * Returns the caller of the operation.
 * @throws Error in the context of an event, whose result goes to many subscribers.
 */
export function callerOf({ caller }: Pick<GraphqlContext, 'caller'>): OperationCaller {
  if (!caller) throw new Error('the result of an event is shared by subscribers: it has no caller');
  return caller;
}

/**
 * Returns the tenant of the caller and the administrator that the caller acts as.
 * @throws Error in the context of an event.
 */
export function tenantAndAdministrator(context: GraphqlContext): [nodeId: string, by: Administrator] {
  const caller = callerOf(context);
  return [caller.nodeId, administratorOf(caller)];
}

/** Reads the values of keys, in their order; an Error stands for a key whose value cannot be read. */
type Load<Value, Args extends unknown[] = []> = (
  keys: readonly string[],
  context: GraphqlContext,
  ...args: Args
) => Promise<readonly (Value | Error)[]>;

/** Returns a function that creates one value per operation, on its first call for it. */
function perOperation<Value>(create: (context: GraphqlContext) => Value): (context: GraphqlContext) => Value {
  return (context) => context.perOperation.getOrInsertComputed(create, () => create(context)) as Value;
}

/** Creates a DataLoader for each operation. With `cache: false` a key that is loaded again is read again. */
export function loaderPerOperation<Value>(load: Load<Value>, options: { cache?: boolean } = {}) {
  return perOperation((context) => new DataLoader<string, Value>((keys) => load(keys, context), options));
}

/**
 * Creates a DataLoader for each field of an operation: all objects that have the field at the same place in the
 * document, and thus with the same arguments, are read together.
 */
export function loaderPerField<Args, Value>(load: Load<Value, [Args]>) {
  const loadersOf = perOperation(() => new Map<FieldNode | undefined, DataLoader<string, Value>>());
  return (args: Args, context: GraphqlContext, { fieldNodes: [field] }: GraphQLResolveInfo) => {
    const create = () => new DataLoader<string, Value>((keys) => load(keys, context, args), { cache: false });
    return loadersOf(context).getOrInsertComputed(field, create);
  };
}
